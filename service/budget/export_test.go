package budget

import (
	"context"
	"time"
)

// Take takes memory without a key.
func (b *Budget) Take(ctx context.Context, p Purpose, bytes int64, patience time.Duration) error {
	return b.take(ctx, p, share{"", 4}, bytes, patience)
}

// Give returns memory that Take took, or part of it.
func (b *Budget) Give(p Purpose, bytes int64) { b.give(p, "", bytes) }
