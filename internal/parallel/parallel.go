// Package parallel does work on several goroutines.
package parallel

import (
	"context"
	"runtime"
	"sync"
)

// Workers returns the number of goroutines that work on n items: at most the given number, or below 1 the number of
// processors.
func Workers(given, n int) int {
	if given < 1 {
		given = runtime.GOMAXPROCS(0)
	}
	return min(given, n)
}

// Each calls do for every item, in order, on the goroutines of [Workers], until ctx ends or a call fails. The context
// of a call ends with the first failure, too. Each returns the first error, or ctx's cause.
func Each[T any](ctx context.Context, workers int, items []T, do func(context.Context, T) error) error {
	doing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan T)
	var wg sync.WaitGroup
	for range Workers(workers, len(items)) {
		wg.Go(func() {
			for item := range next {
				if doing.Err() != nil { // the select below may choose either
					return
				}
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
