// Package budget divides the memory of a service between its placements, which are permanent, and its requests, which
// are short-lived.
//
// Placements hold at most three quarters of it. Requests share the rest, and always get at least a quarter, so that a
// service with too large placements still answers. A quarter of the requests' part is for their bodies and the rest for
// processing them ([Work]). Half of the memory for bodies is for their first [BodyStart] bytes ([Start]) and half for the
// rest of longer ones ([Body]), so that bodies that arrive slowly keep no short ones out. A request takes Start and Body
// first, as its body arrives, and then Work. It waits for memory only for a while and then gives back all it holds, so
// requests cannot deadlock. If there are several API keys, one key's requests take at most three quarters of each part.
package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Budget is a number of bytes and their holders. It is safe for concurrent use. A nil Budget is unlimited and counts
// nothing.
type Budget struct {
	mu    sync.Mutex
	size  int64
	held  int64 // by placements
	pools [3]pool
}

// pool is the memory that requests take for one purpose.
type pool struct {
	taken   int64
	byKey   map[string]int64
	waiting []*waiter // in order of arrival
}

// share is the part of a pool that one key's requests may take.
type share struct {
	key      string
	quarters int
}

func (s share) of(limit int64) int64 { return limit - limit/4*int64(4-s.quarters) }

type waiter struct {
	share
	bytes   int64
	granted chan struct{} // closed with the lock held
}

// Purpose is a request's use of memory.
type Purpose int

// The purposes.
const (
	Start Purpose = iota // the first BodyStart bytes of the request as it was received
	Body                 // the rest of them
	Work                 // its values, its rows and its entry in the log
)

// BodyStart is how many bytes of a body are taken from the memory for the starts of bodies.
const BodyStart = 4 << 10

// ErrNever is returned for a request that would not fit even if it were its key's only one.
var ErrNever = errors.New("larger than the memory for requests")

// ErrBusy is returned if a request's patience ends before other requests return enough memory.
var ErrBusy = errors.New("the memory for requests is in use by other requests")

// FullError is returned for a placement that does not fit.
type FullError struct {
	Need int64 // bytes of the placement
	Held int64 // bytes of the other placements
	Max  int64 // bytes that all placements together may hold
}

// Error implements error.
func (e *FullError) Error() string {
	return fmt.Sprintf("%d bytes are needed, and other placements hold %d of the %d that placements may have", e.Need,
		e.Held, e.Max)
}

// New returns a budget of size bytes. It panics unless size ≥ 1.
func New(size int64) *Budget {
	if size < 1 {
		panic(fmt.Sprintf("budget: New(%d) needs at least one byte", size))
	}
	b := &Budget{size: size}
	for p := range b.pools {
		b.pools[p].byKey = map[string]int64{}
	}
	return b
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
	if limit := b.Placements(); bytes > 0 && bytes > limit-b.held { // 0 bytes fit even if held exceeds the limit
		return &FullError{bytes, b.held, limit}
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
	for p := range b.pools {
		b.grant(Purpose(p))
	}
}

// limit returns how many bytes requests may take for a purpose.
func (b *Budget) limit(p Purpose) int64 {
	requests := max(b.size-b.held, b.size/4)
	switch p {
	case Start:
		return requests / 8
	case Body:
		return requests/4 - requests/8
	}
	return requests - requests/4
}

// take takes memory for a request of a key: see [Account.Take].
func (b *Budget) take(ctx context.Context, p Purpose, of share, bytes int64, patience time.Duration) error {
	if b == nil {
		return nil
	}
	w, err := b.begin(p, of, bytes)
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
	case <-w.granted: // since the select above
		return nil
	default:
	}
	at := slices.Index(b.pools[p].waiting, w)
	b.pools[p].waiting = slices.Delete(b.pools[p].waiting, at, at+1)
	b.grant(p) // the next in the queue may need less
	return context.Cause(ctx)
}

// begin takes memory at once, or returns a waiter.
func (b *Budget) begin(p Purpose, of share, bytes int64) (*waiter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, limit := &b.pools[p], b.limit(p)
	switch most := of.of(limit); {
	case bytes > most:
		return nil, fmt.Errorf("%d bytes of at most %d: %w", bytes, most, ErrNever)
	case len(t.waiting) == 0 && bytes <= min(limit-t.taken, most-t.byKey[of.key]):
		t.taken += bytes
		t.byKey[of.key] += bytes
		return nil, nil
	}
	w := &waiter{of, bytes, make(chan struct{})}
	t.waiting = append(t.waiting, w)
	b.grant(p) // those before it may wait for their own keys
	return w, nil
}

// give returns memory that take took, or part of it.
func (b *Budget) give(p Purpose, key string, bytes int64) {
	if b == nil || bytes == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pools[p].taken -= bytes
	b.pools[p].byKey[key] -= bytes
	b.grant(p)
}

// grant serves the waiters of a purpose in order, as long as there is enough memory. It passes over keys that hold their
// share.
func (b *Budget) grant(p Purpose) {
	t, limit := &b.pools[p], b.limit(p)
	var full []string
	for i := 0; i < len(t.waiting); {
		w := t.waiting[i]
		switch {
		case slices.Contains(full, w.key) || w.bytes > w.of(limit)-t.byKey[w.key]:
			full = append(full, w.key)
			i++
		case w.bytes > limit-t.taken:
			return
		default:
			t.taken += w.bytes
			t.byKey[w.key] += w.bytes
			close(w.granted)
			t.waiting = slices.Delete(t.waiting, i, i+1)
		}
	}
}

// Account is the memory that one request holds.
type Account struct {
	budget   *Budget
	share    share
	patience time.Duration
	held     [3]int64
}

// Account returns the account of a key's new request, which waits for memory no longer than patience. All requests of
// the key take at most the given quarters of the memory for requests.
func (b *Budget) Account(key string, quarters int, patience time.Duration) Account {
	return Account{budget: b, share: share{key, quarters}, patience: patience}
}

// Held returns the bytes held for a purpose.
func (a *Account) Held(p Purpose) int64 { return a.held[p] }

// Take takes more memory. Requests are served in order of arrival, but do not wait behind a key that holds its share.
// Take waits for memory no longer than the account's patience. It returns ErrNever, ErrBusy or the error of ctx.
func (a *Account) Take(ctx context.Context, p Purpose, bytes int64) error {
	err := a.budget.take(ctx, p, a.share, bytes, a.patience)
	if err == nil {
		a.held[p] += bytes
	}
	return err
}

// Reserve takes memory for the work on the request, including its body, instead of the memory that an earlier call
// took.
func (a *Account) Reserve(ctx context.Context, bytes int64) error {
	a.Keep(Work, 0)
	return a.Take(ctx, Work, bytes+a.held[Start]+a.held[Body])
}

// GrowBody takes memory until the request holds the given bytes for its body.
func (a *Account) GrowBody(ctx context.Context, bytes int64) error {
	if more := min(bytes, BodyStart) - a.held[Start]; more > 0 {
		if err := a.Take(ctx, Start, more); err != nil {
			return err
		}
	}
	if more := bytes - a.held[Start] - a.held[Body]; more > 0 {
		return a.Take(ctx, Body, more)
	}
	return nil
}

// KeepBody gives back the memory held for the body, except the given bytes.
func (a *Account) KeepBody(bytes int64) {
	a.Keep(Start, bytes)
	a.Keep(Body, bytes-a.held[Start])
}

// Keep gives back the memory held for a purpose, except the given bytes.
func (a *Account) Keep(p Purpose, bytes int64) {
	if rest := a.held[p] - bytes; rest > 0 {
		a.budget.give(p, a.share.key, rest)
		a.held[p] = bytes
	}
}

// Usage says who holds the memory.
type Usage struct {
	Size       int64 // bytes in all
	Placements int64 // bytes that placements hold
	Requests   int64 // bytes held by requests
	Waiting    int   // requests that wait
}

// Over returns by how many bytes placements exceed their part.
func (u Usage) Over() int64 { return max(u.Placements-(u.Size-u.Size/4), 0) }

// Usage returns who holds the memory now.
func (b *Budget) Usage() Usage {
	if b == nil {
		return Usage{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	u := Usage{Size: b.size, Placements: b.held}
	for _, t := range b.pools {
		u.Requests += t.taken
		u.Waiting += len(t.waiting)
	}
	return u
}
