package eventlog

import (
	"context"
	"fmt"
	"sync"
	"time"

	"vitrine/internal/wait"
)

// Life is the lifecycle of a durable store: it writes one append at a time, until the store is closed or loses its log.
// Implementations of Store share it.
type Life struct {
	writing   chan struct{}   // holds one element while a write runs
	failed    error           // returned by all writes after a failure; guarded by writing
	untilEnd  context.Context // ends with End
	end       context.CancelFunc
	untilLost context.Context // ends when the store loses its log, with the reason as its cause
	lose      context.CancelCauseFunc
	watched   sync.WaitGroup
}

// NewLife returns the life of an open store.
func NewLife() *Life {
	l := &Life{writing: make(chan struct{}, 1)}
	l.untilEnd, l.end = context.WithCancel(context.Background())
	l.untilLost, l.lose = context.WithCancelCause(context.Background())
	return l
}

// Closed reports whether End was called.
func (l *Life) Closed() bool { return l.untilEnd.Err() != nil }

// Lost returns a channel that is closed when the store loses its log.
func (l *Life) Lost() <-chan struct{} { return l.untilLost.Done() }

// Loss returns why the store lost its log, or nil.
func (l *Life) Loss() error { return context.Cause(l.untilLost) }

// Write waits for the running write, and then writes. If ctx ends meanwhile, a running write continues. After a failure
// all writes fail. check returns why the store cannot write at present, or nil.
func (l *Life) Write(ctx context.Context, check func() error,
	write func() (last uint64, err error)) (last uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if l.Closed() {
		return 0, ErrClosed
	}
	if err := l.Loss(); err != nil {
		return 0, err
	}
	if err := check(); err != nil {
		return 0, err
	}
	select {
	case l.writing <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-l.untilEnd.Done():
		return 0, ErrClosed
	}
	return uninterrupted(ctx, func() (uint64, error) {
		defer func() { <-l.writing }()
		if l.failed != nil {
			return 0, l.failed
		}
		last, err := write()
		if err != nil {
			l.failed = fmt.Errorf("an earlier append failed: %w", err)
			return 0, err
		}
		return last, nil
	})
}

// uninterrupted runs a write. If ctx ends meanwhile, it returns ErrUnknown while the write goes on.
func uninterrupted(ctx context.Context, write func() (last uint64, err error)) (last uint64, err error) {
	if ctx.Done() == nil {
		return write()
	}
	done := make(chan struct{})
	var written uint64
	var failed error
	go func() {
		defer close(done)
		written, failed = write()
	}()
	select {
	case <-done:
		return written, failed
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
	}
}

// Watch calls look now and then, until End or until look returns why the log is lost.
func (l *Life) Watch(every time.Duration, look func() error) {
	l.watched.Go(func() {
		for range wait.Every(l.untilEnd, every) {
			if err := look(); err != nil {
				l.lose(err)
				return
			}
		}
	})
}

// End closes the store for writes, and waits for the running write and the watcher. Call it once.
func (l *Life) End() {
	l.end()
	l.writing <- struct{}{} // let only the running write finish
	l.watched.Wait()
}
