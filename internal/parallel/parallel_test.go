package parallel_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/parallel"
)

func TestWorkers(t *testing.T) {
	for _, c := range [][3]int{{3, 9, 3}, {3, 2, 2}, {0, 1 << 20, runtime.GOMAXPROCS(0)}, {-1, 1, 1}} {
		if got := parallel.Workers(c[0], c[1]); got != c[2] {
			t.Errorf("%d workers of %d items, given %d", got, c[1], c[0])
		}
	}
}

// The first failure ends the other calls, and no further ones begin.
func TestFirstFailure(t *testing.T) {
	broken, began := errors.New("broken"), make(chan int, 9)
	err := parallel.Each(t.Context(), 2, []int{0, 1, 2, 3}, func(ctx context.Context, i int) error {
		began <- i
		if i == 1 {
			return broken
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if expect.Error(t, err, broken); len(began) != 2 {
		t.Errorf("%d calls began", len(began))
	}
}

func TestEndedContext(t *testing.T) {
	gone, why := errors.New("gone"), errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	expect.Error(t, parallel.Each(ctx, 1, []int{1, 2}, func(context.Context, int) error {
		cancel(why)
		return gone
	}), why)
	expect.Error(t, parallel.Each(ctx, 1, []int{1, 2}, func(context.Context, int) error {
		t.Error("a call after ctx's end")
		return nil
	}), why)
}
