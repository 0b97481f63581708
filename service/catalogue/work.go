package catalogue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

const (
	// comparisonsPerSecond is what the filters of one caller may take in the long run: the whole time of a processor for filters
	// of two comparisons, which read more than they compare, and a fifth of it for filters of hundreds. savedSeconds of it may be
	// saved up. A filter may begin while anything is left, and what it takes beyond that is a debt.
	comparisonsPerSecond = 30e6
	savedSeconds         = 10

	filtersAtOnce = 2 // of one caller
)

// Work is the account of a caller, whose filters and groups are charged with the comparisons that they make: the items that
// they look at, times one more than the comparisons of each. Two of them run at once, and others wait. It is safe for concurrent
// use; nil has no bounds.
type Work struct {
	places chan struct{}

	mu   sync.Mutex
	left float64 // at a time
	at   time.Time
}

// NewWork returns an account with all that can be saved up.
func NewWork() *Work {
	return &Work{places: make(chan struct{}, filtersAtOnce), left: comparisonsPerSecond * savedSeconds, at: time.Now()}
}

// BusyError refuses a filter of a caller whose account is in debt, or whose other filters took all its time.
type BusyError struct {
	After time.Duration // when the caller should try again
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("the new filters of this key are over their limit: %d run at once, with %.0f million comparisons a second in the long run: "+
		"try again in %v, repeat filters, which are remembered, or name the candidates", filtersAtOnce, comparisonsPerSecond/1e6, e.After)
}

type workKey struct{}

// WithWork returns a context whose filters are charged to an account.
func WithWork(ctx context.Context, w *Work) context.Context {
	return context.WithValue(ctx, workKey{}, w)
}

func workOf(ctx context.Context) *Work {
	w, _ := ctx.Value(workKey{}).(*Work)
	return w
}

// enter waits until another filter may run, until ctx ends.
func (w *Work) enter(ctx context.Context) (leave func(), err error) {
	if w == nil {
		return func() {}, nil
	}
	select {
	case w.places <- struct{}{}:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, &BusyError{After: time.Second}
		}
		return nil, ctx.Err()
	}
	leave = func() { <-w.places }
	if debt := -w.spend(0); debt > 0 {
		leave()
		return nil, &BusyError{After: time.Duration(math.Ceil(debt/comparisonsPerSecond)) * time.Second}
	}
	return leave, nil
}

// Charge takes comparisons from the account.
func (w *Work) Charge(comparisons int) {
	if w != nil {
		w.spend(float64(comparisons))
	}
}

// spend takes something from the account, and returns what is left.
func (w *Work) spend(comparisons float64) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.left = min(w.left+now.Sub(w.at).Seconds()*comparisonsPerSecond, comparisonsPerSecond*savedSeconds) - comparisons
	w.at = now
	return w.left
}
