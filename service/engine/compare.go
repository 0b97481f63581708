package engine

import (
	"context"
)

// Compare returns the placements with different bytes in the snapshots of a and b, two engines at the same entry of one
// log.
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
