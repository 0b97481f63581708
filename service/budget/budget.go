// Package budget divides the memory of a service between its placements, which stay, and its
// requests, which come and go.
//
// Placements hold at most three quarters of it. Requests share what placements leave, and a quarter of
// the whole at least, so that a service whose placements exceed their part still answers. Of the
// requests' part a quarter is for their bodies and the rest for what is made of them. A request takes
// both in this order, and those that have both need nothing more: none waits for another that waits.
package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Budget is a number of bytes, and who has them. It is safe for concurrent use. A nil Budget has no
// bound and counts nothing.
type Budget struct {
	mu   sync.Mutex
	size int64
	held int64 // by placements
	pots [2]pot
}

// pot is what requests take for one purpose.
type pot struct {
	taken   int64
	waiting []*waiter // the first is the next
}

type waiter struct {
	bytes   int64
	granted chan struct{} // closed with the lock held
}

// Purpose is what a request takes memory for.
type Purpose int

// The purposes.
const (
	Body Purpose = iota // of the request, as it comes
	Work                // on it: its values, rows and the entry in the log
)

// ErrNever is returned for a request that does not fit while nothing else is under way.
var ErrNever = errors.New("larger than the memory for requests")

// ErrBusy is returned for a request whose memory others have for longer than it waits.
var ErrBusy = errors.New("the memory for requests is taken by those under way")

// FullError is returned for a placement that does not fit.
type FullError struct {
	Need, Held, Most int64 // bytes: of the placement, of the others, of all together at most
}

// Error implements error.
func (e *FullError) Error() string {
	return fmt.Sprintf("%d bytes are needed, and of the %d that placements may have others hold %d", e.Need, e.Most, e.Held)
}

// New returns a budget. It panics unless size ≥ 1.
func New(size int64) *Budget {
	if size < 1 {
		panic(fmt.Sprintf("budget: New(%d) needs at least one byte", size))
	}
	return &Budget{size: size}
}

// Placements returns how many bytes placements may hold.
func (b *Budget) Placements() int64 { return b.size - b.size/4 }

// Hold takes memory for a placement, or returns a *FullError.
func (b *Budget) Hold(bytes int64) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if most := b.Placements(); bytes > 0 && bytes > most-b.held { // nothing fits even into less than nothing
		return &FullError{bytes, b.held, most}
	}
	b.held += bytes
	return nil
}

// Charge takes memory for a placement whether it fits or not; negative bytes return it.
func (b *Budget) Charge(bytes int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held += bytes
	b.grant(Body)
	b.grant(Work)
}

// most returns how much requests may take for a purpose.
func (b *Budget) most(p Purpose) int64 {
	requests := max(b.size-b.held, b.size/4)
	if p == Body {
		return requests / 4
	}
	return requests - requests/4
}

// Take takes memory for a request. It waits for those before it, and for those who have what it needs, but no longer than
// patience. Errors are ErrNever, ErrBusy and that of ctx.
func (b *Budget) Take(ctx context.Context, p Purpose, bytes int64, patience time.Duration) error {
	if b == nil {
		return nil
	}
	w, err := b.begin(p, bytes)
	if w == nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrBusy)
	defer cancel()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.granted: // meanwhile
		return nil
	default:
	}
	at := slices.Index(b.pots[p].waiting, w)
	b.pots[p].waiting = slices.Delete(b.pots[p].waiting, at, at+1)
	b.grant(p) // it may have been the one that others waited for
	return context.Cause(ctx)
}

// begin takes memory at once, or returns who waits for it.
func (b *Budget) begin(p Purpose, bytes int64) (*waiter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, most := &b.pots[p], b.most(p)
	switch {
	case bytes > most:
		return nil, fmt.Errorf("%d bytes of at most %d: %w", bytes, most, ErrNever)
	case len(t.waiting) == 0 && bytes <= most-t.taken:
		t.taken += bytes
		return nil, nil
	}
	w := &waiter{bytes, make(chan struct{})}
	t.waiting = append(t.waiting, w)
	return w, nil
}

// Give returns what Take has taken, or a part of it.
func (b *Budget) Give(p Purpose, bytes int64) {
	if b == nil || bytes == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pots[p].taken -= bytes
	b.grant(p)
}

// grant gives those who wait for a purpose what they need, in their order, for as long as there is enough.
func (b *Budget) grant(p Purpose) {
	t := &b.pots[p]
	for len(t.waiting) > 0 && t.waiting[0].bytes <= b.most(p)-t.taken {
		t.taken += t.waiting[0].bytes
		close(t.waiting[0].granted)
		t.waiting = slices.Delete(t.waiting, 0, 1)
	}
}

// Usage is who has the memory.
type Usage struct {
	Size       int64 // bytes of the whole
	Placements int64 // held
	Requests   int64 // taken
	Waiting    int   // requests
}

// Over returns by how many bytes placements exceed their part.
func (u Usage) Over() int64 { return max(u.Placements-(u.Size-u.Size/4), 0) }

// Usage returns who has the memory now.
func (b *Budget) Usage() Usage {
	if b == nil {
		return Usage{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	u := Usage{Size: b.size, Placements: b.held}
	for _, t := range b.pots {
		u.Requests += t.taken
		u.Waiting += len(t.waiting)
	}
	return u
}
