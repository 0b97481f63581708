package eventlog

import (
	"context"
	"errors"
	"fmt"
)

// ErrForeign is returned for a snapshot from another log, or from a copy of this one that has since diverged.
var ErrForeign = errors.New("eventlog: the log or snapshot belongs to another log")

// Locate returns the log's own position at the entry of a state. Every log contains the zero Position of a state
// without entries. If the state names another log, or if the entries up to it differ, the error is ErrForeign.
func Locate(ctx context.Context, log Log, at Position) (Position, error) {
	here, err := log.Position(ctx, at.Sequence)
	if errors.Is(err, ErrBeyond) {
		if id, failed := identity(ctx, log); failed == nil && id != at.Log {
			return here, fmt.Errorf("%w: of %v, this is %v", ErrForeign, at.Log, id)
		}
	}
	switch {
	case err != nil:
		return here, err
	case at == here || at == Position{}:
		return here, nil
	case at.Log != here.Log:
		return here, fmt.Errorf("%w: of %v, this is %v", ErrForeign, at.Log, here.Log)
	}
	return here, fmt.Errorf("%w: of a copy of %v that has gone on by itself: up to entry %d they have different entries",
		ErrForeign, at.Log, at.Sequence)
}

func identity(ctx context.Context, log Log) (Identity, error) {
	x, err := log.Extent(ctx)
	if err != nil {
		return Identity{}, err
	}
	p, err := log.Position(ctx, x.Last)
	return p.Log, err
}
