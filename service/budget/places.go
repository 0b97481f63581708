package budget

import (
	"context"
	"fmt"
	"sync"
	"time"
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

const (
	atOnce = 2           // long answers
	calm   = time.Second // after a key's turn
)

// Turns lets keys compute long answers in turn: one of a key at a time, and two in all, so that decisions find a
// processor. A third place is for keys without a turn in the last second, so that two keys with one answer after the other
// do not hold up the rest. The zero value is ready. Turns is safe for concurrent use.
type Turns struct {
	mu        sync.Mutex
	all, rare chan struct{}
	byKey     map[string]*ownTurn
}

type ownTurn struct {
	turn chan struct{}
	last time.Time // when the last one ended; the turn guards it
}

// Take waits for a key's turn, which lasts until the caller calls leave. It returns ctx's error if ctx ends first.
func (t *Turns) Take(ctx context.Context, key string) (leave func(), err error) {
	t.mu.Lock()
	if t.byKey == nil {
		t.all, t.rare, t.byKey = make(chan struct{}, atOnce), make(chan struct{}, 1), map[string]*ownTurn{}
	}
	own := t.byKey[key]
	if own == nil {
		own = &ownTurn{turn: make(chan struct{}, 1)}
		t.byKey[key] = own
	}
	t.mu.Unlock()
	select {
	case own.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	end := func(place chan struct{}) func() {
		return func() { <-place; own.last = time.Now(); <-own.turn }
	}
	rare := t.rare
	if time.Since(own.last) < calm {
		rare = nil // blocks
	}
	select {
	case t.all <- struct{}{}:
		return end(t.all), nil
	case rare <- struct{}{}:
		return end(rare), nil
	case <-ctx.Done():
		<-own.turn
		return nil, ctx.Err()
	}
}
