package budget

import (
	"context"
	"fmt"
	"sync"
)

// Places counts what is in progress, such as requests or listeners. It is safe for concurrent use.
type Places struct {
	What string // in the plural

	mu    sync.Mutex
	all   int
	byKey map[string]int
}

// takenError is an ErrBusy that says who holds the places.
type takenError string

func (e takenError) Error() string { return string(e) }
func (e takenError) Unwrap() error { return ErrBusy }

// Take takes a place for a key, or returns an ErrBusy if all keys hold limit places or this one perKey. It returns the
// key's remaining places.
func (p *Places) Take(key string, limit, perKey int) (free int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if mine := p.byKey[key]; p.all >= limit || mine >= perKey {
		return 0, takenError(fmt.Sprintf("%d %s are in progress, %d of them with this key: at most %d may be, and %d "+
			"with one key", p.all, p.What, mine, limit, perKey))
	}
	if p.byKey == nil {
		p.byKey = map[string]int{}
	}
	p.all++
	p.byKey[key]++
	return min(limit-p.all, perKey-p.byKey[key]), nil
}

// Leave returns a place of a key.
func (p *Places) Leave(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	p.byKey[key]--
}

// Taken returns the number of places that are taken.
func (p *Places) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// AtOnce is how many long answers are computed at once.
const AtOnce = 2

// Turns lets keys compute long answers in turn: one of a key at a time, and [AtOnce] in all, so that decisions find a
// processor. The zero value is ready. Turns is safe for concurrent use.
type Turns struct {
	mu    sync.Mutex
	all   chan struct{}
	byKey map[string]chan struct{}
}

// Take waits for a key's turn, which lasts until the caller calls leave. It returns ctx's error if ctx ends first.
func (t *Turns) Take(ctx context.Context, key string) (leave func(), err error) {
	t.mu.Lock()
	if t.byKey == nil {
		t.all, t.byKey = make(chan struct{}, AtOnce), map[string]chan struct{}{}
	}
	own := t.byKey[key]
	if own == nil {
		own = make(chan struct{}, 1)
		t.byKey[key] = own
	}
	t.mu.Unlock()
	select {
	case own <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case t.all <- struct{}{}:
		return func() { <-t.all; <-own }, nil
	case <-ctx.Done():
		<-own
		return nil, ctx.Err()
	}
}
