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
	// comparisonsPerSecond limits the filters of one caller in the long run: a processor's whole time for filters of
	// two comparisons, which read more than they compare, and a fifth of it for filters of hundreds. A caller may save
	// up savedSeconds of it. A filter may start while anything is left, and its excess becomes a debt.
	comparisonsPerSecond = 30e6
	savedSeconds         = 10

	filtersAtOnce = 2 // per caller
)

// Work is a caller's account. Filters and groups are charged for their comparisons: the items they look at, times one
// more than the comparisons per item. Two run at once; others wait. Work is safe for concurrent use. A nil Work sets no
// limits.
type Work struct {
	places chan struct{}

	mu   sync.Mutex
	left float64 // as of the time at
	at   time.Time
}

// NewWork returns an account with full savings.
func NewWork() *Work {
	return &Work{places: make(chan struct{}, filtersAtOnce), left: comparisonsPerSecond * savedSeconds, at: time.Now()}
}

// BusyError refuses a filter because the caller's account is in debt or its other filters took all the time.
type BusyError struct {
	After time.Duration // retry after
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("the new filters of this key are over their limit: %d run at once, with %.0f million "+
		"comparisons a second in the long run: "+
		"try again in %v, repeat filters, which are remembered, or name the candidates", filtersAtOnce,
		comparisonsPerSecond/1e6, e.After)
}

type workKey struct{}

// WithWork returns a context that charges filters to an account.
func WithWork(ctx context.Context, w *Work) context.Context {
	return context.WithValue(ctx, workKey{}, w)
}

func workOf(ctx context.Context) *Work {
	w, _ := ctx.Value(workKey{}).(*Work)
	return w
}

// enter waits until another filter may run or ctx ends.
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

// spend charges the account and returns the rest.
func (w *Work) spend(comparisons float64) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.left = min(w.left+now.Sub(w.at).Seconds()*comparisonsPerSecond, comparisonsPerSecond*savedSeconds) - comparisons
	w.at = now
	return w.left
}
