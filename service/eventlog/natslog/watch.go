package natslog

import (
	"context"
	"errors"

	"vitrine/service/eventlog"
)

// Lost returns a channel that is closed when another process takes over the log. Appends then fail with [Store.Loss].
func (s *Store) Lost() <-chan struct{} { return s.life.Lost() }

// Loss returns why the store lost its log, or nil. A loss is known after the next append, or within a second.
func (s *Store) Loss() error { return s.life.Loss() }

// look returns why the store lost its log, or nil.
func (s *Store) look() error {
	if !s.Leads() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.options.Lease)
	defer cancel()
	if s.lease.renew(ctx, s) {
		return nil
	}
	// Only the log itself shows who the writer is.
	if err := s.confirm(ctx); errors.Is(err, eventlog.ErrFenced) {
		return err
	}
	return nil
}
