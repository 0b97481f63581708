package server

import (
	"cmp"
	"context"
	"time"

	"vitrine/internal/wait"
	"vitrine/service/engine"
)

// maintain does what the engine needs now and then, until ctx ends or the engine stops.
func (s *Server) maintain(ctx context.Context, every time.Duration) error {
	for range wait.Every(ctx, cmp.Or(every, time.Second)) {
		if err := s.advance(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("the engine has stopped", "cause", err.Error())
			return err
		}
		s.observe()
	}
	return nil
}

// advance lets decisions expire and relearned learners take over. Only the writer of the log does this.
func (s *Server) advance(ctx context.Context) error {
	if s.engine.Role() == engine.Follower {
		return s.engine.Failure()
	}
	if _, err := s.engine.Expire(ctx, s.clock().UnixNano()); err != nil {
		return err
	}
	exchanged, ended, err := s.engine.Exchange(ctx, s.clock().UnixNano())
	for _, name := range exchanged {
		s.log.Info("a learner that has learned from the log decides", "placement", name)
	}
	for _, name := range ended {
		s.log.Warn("a relearning is given up: its learner has broken, or the log no longer has what it needs",
			"placement", name)
	}
	return err
}
