package host

import (
	"context"
	"errors"
	"testing"
	"time"

	"vitrine/internal/expect"
)

// A read that stalls is begun again, one that fails is not, and all end with their context.
func TestReadsStall(t *testing.T) {
	stalls := 0
	stall := func(times int) func(context.Context) error {
		stalls = 0
		return func(ctx context.Context) error {
			if stalls++; stalls > times {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
	}
	if err := patiently(t.Context(), time.Millisecond, stall(3)); err != nil || stalls != 4 {
		t.Errorf("%v after %d attempts", err, stalls)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	expect.Error(t, patiently(ctx, time.Millisecond, stall(1000)), context.DeadlineExceeded)
	broken, attempts := errors.New("broken"), 0
	if err := patiently(t.Context(), time.Minute, func(context.Context) error {
		attempts++
		return broken
	}); err != broken || attempts != 1 {
		t.Errorf("%v after %d attempts", err, attempts)
	}
}
