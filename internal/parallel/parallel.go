// Package parallel does work on several goroutines.
package parallel

import (
	"context"
	"runtime"
	"sync"
)

// Each calls do for every item, in order, on the given number of goroutines (0: one for each processor), until ctx ends
// or a call fails. The context of a call also ends with the first failure. Each returns the first error, or ctx's cause.
func Each[T any](ctx context.Context, workers int, items []T, do func(context.Context, T) error) error {
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	doing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan T)
	var wg sync.WaitGroup
	for range min(workers, len(items)) {
		wg.Go(func() {
			for item := range next {
				if err := do(doing, item); err != nil {
					stop(err)
				}
			}
		})
	}
	for _, item := range items {
		select {
		case next <- item:
			continue
		case <-doing.Done():
		}
		break
	}
	close(next)
	wg.Wait()
	return context.Cause(doing)
}
