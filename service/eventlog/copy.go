package eventlog

import (
	"context"
	"fmt"
)

// Copy appends to a log the entries of another one that it does not have yet, and returns the position after the last.
// The log must have begun as a continuation of the other one, at a position that the other one still has, and may have
// some of its entries already, from a copy that was interrupted: otherwise the error is ErrForeign. Copy ends only if
// both logs have the same running hash at the same entry. Progress, if not nil, is called with the number of entries
// that were copied and of all to copy.
func Copy(ctx context.Context, to, from Log, progress func(done, total uint64)) (Position, error) {
	have, err := to.Extent(ctx)
	if err != nil {
		return Position{}, err
	}
	all, err := from.Extent(ctx)
	if err != nil {
		return Position{}, err
	}
	at, err := to.Position(ctx, have.Last)
	if err != nil {
		return Position{}, err
	}
	if _, err := Locate(ctx, from, at); err != nil {
		return Position{}, fmt.Errorf("the log to copy to: %w", err)
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
	end, err := to.Position(ctx, have.Last+done)
	if err != nil {
		return Position{}, err
	}
	_, err = Locate(ctx, from, end)
	return end, err
}
