package eventlog

import (
	"context"
	"errors"
	"fmt"
)

// Copied is a log that can be marked as an unfinished copy. Opening it for writing then fails with ErrUnfinished,
// except for a copy.
type Copied interface {
	Log
	MarkCopy(ctx context.Context, unfinished bool) error
}

// Copy appends to a log the entries of from that it lacks, and returns the position after the last. The log must
// continue from, starting at a position that from still holds. It may already contain some of the entries, if an
// earlier copy was interrupted. Otherwise the error is ErrForeign, or ErrBeyond if it contains later entries. Copy
// succeeds only if both logs reach the same running hash at the same entry. It marks the log as unfinished, and leaves it
// to the caller to remove the mark. If progress is not nil, it is called with the number of entries copied so far and the
// total.
func Copy(ctx context.Context, to Copied, from Log, progress func(done, total uint64)) (Position, error) {
	have, err := to.Extent(ctx)
	if err != nil {
		return Position{}, err
	}
	all, err := from.Extent(ctx)
	if err != nil {
		return Position{}, err
	}
	locate := func(last uint64) (Position, error) {
		if last == 0 && all.Last == 0 { // without entries the logs have no identities to compare
			return Position{}, nil
		}
		at, err := to.Position(ctx, last)
		if err != nil {
			return Position{}, err
		}
		_, err = Locate(ctx, from, at)
		return at, err
	}
	if _, err := locate(have.Last); errors.Is(err, ErrBeyond) {
		return Position{}, fmt.Errorf("%w its copy: the log's last entry is %d, and the copy's is %d", ErrBeyond, all.Last,
			have.Last)
	} else if err != nil {
		return Position{}, fmt.Errorf("the log to copy to: %w", err)
	}
	if err := to.MarkCopy(ctx, true); err != nil {
		return Position{}, err
	}
	var batch [][]byte
	size, done := 0, uint64(0)
	write := func() error {
		_, err := to.Append(ctx, batch...)
		done += uint64(len(batch))
		if progress != nil {
			progress(done, all.Last-have.Last)
		}
		batch, size = batch[:0], 0
		return err
	}
	for e, err := range from.Entries(ctx, have.Last+1) {
		if err != nil {
			return Position{}, err
		}
		if n := EntrySize(e); size+n > MaxBatch {
			if err := write(); err != nil {
				return Position{}, err
			}
			size = n
		} else {
			size += n
		}
		batch = append(batch, e)
	}
	if err := write(); err != nil {
		return Position{}, err
	}
	return locate(have.Last + done)
}
