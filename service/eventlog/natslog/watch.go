package natslog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vitrine/service/eventlog"
)

// Lost returns a channel that is closed when the store has lost its log: another process has taken it over,
// or its directory or one of its files was moved or removed. The files are put back when the store is closed. Appends then fail with [Store.Loss].
func (s *Store) Lost() <-chan struct{} { return s.lost }

// Loss returns why the store has lost its log, nil if it has not. It checks the directory; a loss of a log on
// a server is known after the next append, or a second.
func (s *Store) Loss() error {
	if err := s.knownLoss(); err != nil {
		return err
	}
	return s.checkDir()
}

// knownLoss is Loss without looking at the directory.
func (s *Store) knownLoss() error {
	select {
	case <-s.lost:
		return s.loss
	default:
		return nil
	}
}

func (s *Store) checkDir() error {
	if s.lock == nil || s.lock.held() {
		return nil
	}
	return fmt.Errorf("%w: %s was moved or removed, or another directory is in its place", eventlog.ErrLost, s.where())
}

// watch checks now and then whether the store has lost its log, until the store is closed.
func (s *Store) watch() {
	defer close(s.watched)
	if s.options.ReadOnly {
		return
	}
	ticker := time.NewTicker(renewal)
	defer ticker.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-ticker.C:
		}
		if s.loss = s.look(); s.loss != nil {
			close(s.lost)
			return
		}
	}
}

// look returns why the store has lost its log.
func (s *Store) look() error {
	switch {
	case s.lease == nil:
		if err := s.checkDir(); err != nil {
			return err
		}
		return s.files.look()
	case !s.Leads():
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), silence)
	defer cancel()
	if s.lease.renew(ctx, s) {
		return nil
	}
	// Only the log itself shows who writes it.
	if err := s.confirm(ctx); errors.Is(err, eventlog.ErrFenced) {
		return err
	}
	return nil
}
