package natslog

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A claim is a message by which a writer takes over a log. It does not name a sequence that it must follow, so it
// always succeeds, however fast the previous writer appends. It fences that writer, because its next frame names a
// sequence that is no longer the last. The claimant then reads the end of the log before its claim, and opens its epoch
// with a frame that must follow the claim. If several processes claim the log, the last one gets it.
//
// Claims carry no entries, and readers of the log skip them.
const claimText = "VLOGCLAIM"

func isClaim(data []byte) bool { return string(data) == claimText }

// errClaim means that a message is a claim rather than a frame.
var errClaim = errors.New("the message is a claim")

// claim claims the log, and returns the claim's message number. After a lost acknowledgement the message is sent again,
// and the server drops the copy.
func (s *Store) claim(ctx context.Context) (uint64, error) {
	ack, err := ask(ctx, s, func(ctx context.Context) (*jetstream.PubAck, error) {
		return s.js.PublishMsg(ctx, &nats.Msg{Subject: s.subject(), Data: []byte(claimText), Header: nats.Header{
			writerHeader: {s.writer}, jetstream.MsgIDHeader: {s.writer},
			jetstream.ExpectedStreamHeader: {s.options.Stream},
		}}, jetstream.WithRetryAttempts(0))
	})
	if err != nil {
		return 0, reopens(ctx, fmt.Errorf("natslog: claiming %s: %w", s.where(), refused(err)))
	}
	return ack.Sequence, nil
}
