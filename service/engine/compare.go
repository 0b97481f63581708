package engine

import (
	"context"
)

// Compare returns the placements whose states differ between a and b, two engines at the same entry of the
// same log: those with different bytes in a snapshot.
func Compare(ctx context.Context, a, b *Engine) (different []string, err error) {
	x, err := a.freeze(ctx, -1)
	if err != nil {
		return nil, err
	}
	y, err := b.freeze(ctx, -1)
	if err != nil {
		return nil, err
	}
	return x.Different(y)
}
