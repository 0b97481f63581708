package natslog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"vitrine/service/eventlog"
)

// findStream opens the stream, creating it if necessary. A writer rejects a stream that might lose acknowledged
// entries.
func (s *Store) findStream(ctx context.Context) (err error) {
	s.stream, err = askFor(ctx, s, s.js.Stream, s.options.Stream)
	if err == nil && !s.options.ReadOnly && !s.options.Copies &&
		s.stream.CachedInfo().Config.Metadata[copyMark] != "" {
		return eventlog.ErrUnfinished
	}
	missing := errors.Is(err, jetstream.ErrStreamNotFound)
	if s.options.ReadOnly {
		return err
	}
	if missing {
		var metadata map[string]string
		if s.options.Copies { // from the first moment, because the copy may be interrupted at any time
			metadata = map[string]string{copyMark: "unfinished"}
		}
		s.stream, err = askFor(ctx, s, s.js.CreateStream, jetstream.StreamConfig{
			Name:       s.options.Stream,
			Subjects:   []string{s.subject()},
			Storage:    jetstream.FileStorage,
			Retention:  jetstream.LimitsPolicy,
			Discard:    jetstream.DiscardNew,
			Replicas:   s.newReplicas(),
			DenyDelete: true,
			Metadata:   metadata,
		})
	}
	if err != nil {
		return err
	}
	config := s.stream.CachedInfo().Config
	if fault := unfit(config); fault != "" {
		return fmt.Errorf("it would lose entries: %s: change that, or name another stream", fault)
	}
	s.replicas = config.Replicas
	s.checkReplicas(ctx)
	if maximum := s.conn.MaxPayload(); maximum < maxMessage {
		return fmt.Errorf("the server takes messages of %d bytes: set its max_payload to at least %d",
			maximum, maxMessage)
	}
	return nil
}

// streamLooks is the interval of looks for the stream. An idle log's writer would miss it only with its next entry.
const streamLooks = 2 * time.Second

// lookForStream returns a look at whether the servers still have the stream that was opened. A server that has just
// started may not know its streams yet, so one answer is not enough.
func (s *Store) lookForStream() (look func() error) {
	made, wrong := s.stream.CachedInfo().Created, 0
	return func() error {
		found, err := within(context.Background(), shortAttempt, func(ctx context.Context) (jetstream.Stream, error) {
			return s.js.Stream(ctx, s.options.Stream)
		})
		what := "was removed"
		switch {
		case err == nil && !found.CachedInfo().Created.Equal(made):
			what = "was replaced"
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			wrong = 0
			return nil
		}
		if wrong++; wrong < 2 {
			return nil
		}
		return fmt.Errorf("%w: the stream %q of %s %s", eventlog.ErrReopen, s.options.Stream, s.where(), what)
	}
}

// copyMark is in the metadata of a stream whose copy is not finished.
const copyMark = "vitrine-copy"

// MarkCopy implements eventlog.Copied.
func (s *Store) MarkCopy(ctx context.Context, unfinished bool) error {
	_, err := ask(ctx, s, func(ctx context.Context) (jetstream.Stream, error) {
		info, err := s.stream.Info(ctx) // an operator may have changed it since
		if err != nil {
			return nil, err
		}
		m := map[string]string{}
		maps.Copy(m, info.Config.Metadata)
		delete(m, copyMark)
		if unfinished {
			m[copyMark] = "unfinished"
		}
		info.Config.Metadata = m
		return s.js.UpdateStream(ctx, info.Config)
	})
	if err != nil {
		return fmt.Errorf("natslog: the metadata of stream %q of %s: %w", s.options.Stream, s.where(), err)
	}
	return nil
}

// maxMessage is the maximal size of a message: a frame and its headers.
const maxMessage = eventlog.MaxFrame + 1000

// unfit describes the setting that would make a stream lose acknowledged entries, or returns "".
func unfit(c jetstream.StreamConfig) string {
	for _, setting := range []struct {
		name  string
		unfit bool
	}{
		{"storage is " + c.Storage.String(), c.Storage != jetstream.FileStorage},
		{"retention is " + c.Retention.String(), c.Retention != jetstream.LimitsPolicy},
		{"max_age is set", c.MaxAge > 0},
		{"max_msgs_per_subject is set", c.MaxMsgsPerSubject > 0},
		{"discard is old, and max_msgs or max_bytes is set",
			c.Discard == jetstream.DiscardOld && (c.MaxMsgs > 0 || c.MaxBytes > 0)},
		{"no_ack is set", c.NoAck},
		{"persist_mode is async", c.PersistMode == jetstream.AsyncPersistMode},
		{"allow_direct is set: a replica that is behind may answer", c.AllowDirect},
		{fmt.Sprintf("max_msg_size is %d, less than %d", c.MaxMsgSize, maxMessage),
			c.MaxMsgSize > 0 && c.MaxMsgSize < maxMessage},
	} {
		if setting.unfit {
			return setting.name
		}
	}
	return ""
}
