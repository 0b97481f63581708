package engine

import "context"

type entryKey struct{}

// WithEntry returns a context with which the engine's changes store a log entry in *entry: their last one, or a later
// entry if an earlier call made the change already.
func WithEntry(ctx context.Context, entry *uint64) context.Context {
	return context.WithValue(ctx, entryKey{}, entry)
}

// noteEntry stores the number of an entry for the caller, if it asks for that.
func noteEntry(ctx context.Context, entry uint64) {
	if to, ok := ctx.Value(entryKey{}).(*uint64); ok && entry > 0 {
		*to = entry
	}
}

type callerKey struct{}

// WithCaller returns a context with which the log says whose API key asked for the engine's changes.
func WithCaller(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, callerKey{}, name)
}
