package wait_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/wait"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		expect.Error(t, wait.For(ctx, 2*time.Second), nil)
		expect.Error(t, wait.For(ctx, 2*time.Second), context.DeadlineExceeded)
		expect.Error(t, wait.For(ctx, time.Hour), context.DeadlineExceeded)
		expect.Equal(t, time.Since(begin), 3*time.Second, "it takes")
	})
}

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		n := 0
		for now := range wait.Every(ctx, time.Second) {
			if n++; now.Sub(begin) != time.Duration(n)*time.Second {
				t.Errorf("tick %d comes after %v", n, now.Sub(begin))
			}
		}
		for range wait.Every(ctx, time.Hour) {
			t.Error("a tick after the end")
		}
		if n != 2 || time.Since(begin) != 2500*time.Millisecond {
			t.Errorf("%d ticks in %v", n, time.Since(begin))
		}
	})
}
