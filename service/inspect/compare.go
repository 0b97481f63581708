package inspect

import (
	"context"
	"errors"
	"fmt"
	"sort"
)

// ErrForked is returned for two logs if neither is a prefix of the other.
var ErrForked = errors.New("the logs are not copies of each other")

// forkError says where two logs differ.
type forkError string

func (e forkError) Error() string        { return string(e) }
func (e forkError) Is(target error) bool { return target == ErrForked }

func forked(format string, args ...any) error { return forkError(fmt.Sprintf(format, args...)) }

// Compare compares a log with another copy of it, and describes the result in a sentence. The error is
// ErrForked if different entries were appended to the two copies, or if they are different logs.
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
	case have.Log != with.Log:
		return "", forked("%s is the log %v, and %s is %v: they are not copies of one log", log.Name, have.Log,
			other.Name, with.Log)
	case first > last+1:
		return "", forked("%s and %s have no entry in common: one ends with entry %d, the other begins with %d",
			log.Name, other.Name, last, first)
	}
	// The running hashes of forks differ from their first different entry on.
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
		return "", forked("%s and %s have forked before entry %d", log.Name, other.Name, first+1)
	case same-1 < last:
		return "", forked("%s and %s have forked: they are the same up to entry %d and differ after it; their "+
			"last entries are %d and %d", log.Name, other.Name, same-1, log.Last, other.Last)
	case log.Last == other.Last:
		return fmt.Sprintf("%s and %s are the same, up to entry %d", log.Name, other.Name, last), nil
	case log.Last > last:
		return fmt.Sprintf("%s is what %s was after entry %d", other.Name, log.Name, last), nil
	default:
		return fmt.Sprintf("%s is what %s was after entry %d", log.Name, other.Name, last), nil
	}
}
