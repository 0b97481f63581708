package engine

import (
	"context"
	"fmt"
	"iter"

	"vitrine/service/eventlog"
)

// Entry is an event of the log, with its number.
type Entry struct {
	Sequence uint64
	*eventlog.Event
}

// Events yields the log's events from an entry on, up to the last entry that is part of the state when the iteration
// begins. It yields at most one error, at the end: one that wraps eventlog.ErrRemoved or eventlog.ErrBeyond, or ctx's.
func (e *Engine) Events(ctx context.Context, from uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		last, next := e.Sequence(), from
		if next > last {
			if next > last+1 {
				yield(Entry{}, fmt.Errorf("%w entry %d: the last one is %d", eventlog.ErrBeyond, from, last))
			}
			return
		}
		for data, err := range e.store.Entries(ctx, from) {
			var event eventlog.Event
			if err == nil {
				event, err = eventlog.Decode(data)
			}
			if !yield(Entry{next, &event}, err) || err != nil || next == last {
				return
			}
			next++
		}
	}
}
