package engine

import "context"

type entryKey struct{}

// WithEntry returns a context with which the engine's changes store a number in *entry: that of their last entry in
// the log, or, if they need none because an earlier call has made the change, of a later entry.
func WithEntry(ctx context.Context, entry *uint64) context.Context {
	return context.WithValue(ctx, entryKey{}, entry)
}

// noteEntry stores the number of an entry for the caller, if it asks for that.
func noteEntry(ctx context.Context, entry uint64) {
	if to, ok := ctx.Value(entryKey{}).(*uint64); ok && entry > 0 {
		*to = entry
	}
}
