package inspect

import (
	"context"
	"errors"
	"fmt"
	"sort"
)

// ErrForked is returned for two logs that are not copies of one log up to the end of one of them.
var ErrForked = errors.New("the logs are not copies of each other")

// forkError says where two logs differ.
type forkError string

func (e forkError) Error() string        { return string(e) }
func (e forkError) Is(target error) bool { return target == ErrForked }

func forked(format string, args ...any) error { return forkError(fmt.Sprintf(format, args...)) }

// Compare compares a log with a copy of it and says in words how far they are the same. The error is an [ErrForked] if
// each has gone on by itself, or if they are different logs.
func (log *Log) Compare(ctx context.Context, other *Log) (string, error) {
	last := min(log.Last, other.Last)
	have, err := log.Position(ctx, log.Last)
	if err != nil {
		return "", err
	}
	with, err := other.Position(ctx, other.Last)
	if err != nil {
		return "", err
	}
	switch first := max(log.First, other.First); {
	case have.Log.IsZero() || with.Log.IsZero():
		return "", forked("%s and %s cannot be compared: an earlier program wrote one of them, and it has no identity before a service has opened it", log.Name, other.Name)
	case have.Log != with.Log:
		return "", forked("%s is the log %v, and %s is %v: they are not copies of one log", log.Name, have.Log, other.Name, with.Log)
	case first > last+1:
		return "", forked("%s and %s have no entry in common: one ends with entry %d, the other begins with %d", log.Name, other.Name, last, first)
	}
	// The running hash of a fork is another one from its first entry on.
	first := max(log.First, other.First) - 1
	var failed error
	same := first + uint64(sort.Search(int(last-first)+1, func(i int) bool {
		a, err := log.Position(ctx, first+uint64(i))
		if err == nil {
			b, failed := other.Position(ctx, first+uint64(i))
			if err = failed; err == nil {
				return a != b
			}
		}
		failed = err
		return true
	}))
	switch {
	case failed != nil:
		return "", failed
	case same == first:
		return "", forked("%s and %s have forked: before entry %d already they have different entries", log.Name, other.Name, first+1)
	case same-1 < last:
		return "", forked("%s and %s have forked: they are the same up to entry %d, and differ from there on: up to entry %d and %d", log.Name, other.Name, same-1, log.Last, other.Last)
	case log.Last == other.Last:
		return fmt.Sprintf("%s and %s are the same, up to entry %d", log.Name, other.Name, last), nil
	case log.Last > last:
		return fmt.Sprintf("%s is what %s was after entry %d", other.Name, log.Name, last), nil
	default:
		return fmt.Sprintf("%s is what %s was after entry %d", log.Name, other.Name, last), nil
	}
}
