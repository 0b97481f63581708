package server

import (
	"context"
	"io"
	"log/slog"
	"time"

	"vitrine/service/api"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
	"vitrine/service/setup"
)

// Shard is a log that a server serves, with its engine: the only one of a service, or one of several.
type Shard struct {
	Number  int // from 1 on; 0 of the only one
	Engine  *decision.Engine
	Clock   func() time.Time // nil is time.Now
	Log     eventlog.Bounded // whose extent is in /metrics; may be nil
	Epoch   func() uint64    // of the log's writer; may be nil
	Appends *Appends         // to the log, for /metrics; may be nil

	Reopened func() int64 // how often the log was opened again, for /metrics; may be nil

	SnapshotAge func() time.Duration // the age of the last snapshot, for /metrics; may be nil
	ClockSkew   func() time.Duration // by how much the time of day is ahead of Clock, for /metrics; may be nil

	// Export, if set, writes the decisions of a placement that are in the log.
	Export func(ctx context.Context, w io.Writer, placement string) error

	// Forward passes a request of a caller, in the form of HTTP/1.1, on to the leader if the engine follows: its Forwarded has the
	// answer. Nil passes nothing on.
	Forward func(ctx context.Context, request []byte) (answer []byte, err error)

	early early
}

// answer returns a configuration as callers get it.
func (s *Shard) answer(c *setup.Config) api.Placement {
	p := c.Answer()
	p.Shard = s.Number
	return p
}

// tend does what is done now and then, by the writer of the log most of it.
func (s *Shard) tend(ctx context.Context, logger *slog.Logger) error {
	if err := s.maintain(ctx, logger); err != nil {
		return err
	}
	s.early.look(s.Engine, s.Clock(), logger)
	return nil
}

func (s *Shard) maintain(ctx context.Context, logger *slog.Logger) error {
	if s.Engine.Role() == decision.Follower {
		return s.Engine.Failure()
	}
	if _, err := s.Engine.Expire(ctx, s.Clock().UnixNano()); err != nil {
		return err
	}
	return s.exchange(ctx, logger)
}

// exchange lets second learners that have caught up decide.
func (s *Shard) exchange(ctx context.Context, logger *slog.Logger) error {
	exchanged, ended, err := s.Engine.Exchange(ctx, s.Clock().UnixNano())
	for _, name := range exchanged {
		logger.Info("a learner that has learned from the log decides", "placement", name)
	}
	for _, name := range ended {
		logger.Warn("a relearning is given up: its learner has broken, or the log no longer has what it needs", "placement", name)
	}
	return err
}
