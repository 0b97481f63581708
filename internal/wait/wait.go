// Package wait waits for a time.
package wait

import (
	"context"
	"time"
)

// For waits for a time. If ctx ends first, it returns ctx's error.
func For(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
