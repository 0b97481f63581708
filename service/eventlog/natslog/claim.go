package natslog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"vitrine/service/eventlog"
)

// A claim is a message by which a writer takes over a log on external servers. It names no sequence that
// it must follow, so it is never refused, however fast the writer before appends. That writer is fenced
// by it: its next frame names a sequence that is not the last any more. The one who claims then
// reads the end of what is before its claim, and opens its epoch with a frame that must
// follow the claim. So of several who claim the last one has the log.
//
// Claims have no entries, and who reads the log passes over them.
const claimText = "VLOGCLAIM"

func isClaim(data []byte) bool { return string(data) == claimText }

// errClaim means that a message is a claim where a frame was asked for.
var errClaim = errors.New("the message is a claim")

// claim claims the log, and returns the message of the claim. The server drops copies of it, whose
// acknowledgement was lost.
func (s *Store) claim(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Patience)
	defer cancel()
	for {
		message := &nats.Msg{Subject: s.subject(), Header: nats.Header{writerHeader: {s.writer}}, Data: []byte(claimText)}
		ack, err := within(ctx, attempt, func(ctx context.Context) (*jetstream.PubAck, error) {
			return s.js.PublishMsg(ctx, message, jetstream.WithMsgID(s.writer), jetstream.WithExpectStream(s.options.Stream), jetstream.WithRetryAttempts(0))
		})
		if err == nil {
			return ack.Sequence, nil
		}
		if !isUnanswered(err) && !errors.Is(err, jetstream.ErrNoStreamResponse) {
			return 0, fmt.Errorf("natslog: claiming %s: %w", s.where(), err)
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: claiming %s: no answer within %v: %w", eventlog.ErrReopen, s.where(), s.options.Patience, err)
		case <-time.After(pause):
		}
	}
}
