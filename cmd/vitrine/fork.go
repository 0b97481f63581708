package main

import (
	"context"
	"fmt"
	"sort"
)

// against compares a log with another copy of it. It says how far they are the same, and a fault where each has gone on
// by itself, or they are of different logs.
func (k *check) against(ctx context.Context, other *logReader) error {
	log := k.log
	last := min(log.Last, other.Last)
	have, err := log.Position(ctx, log.Last)
	if err != nil {
		return err
	}
	with, err := other.Position(ctx, other.Last)
	if err != nil {
		return err
	}
	switch first := max(log.First, other.First); {
	case have.Log.IsZero() || with.Log.IsZero():
		k.fault(fmt.Errorf("%s and %s cannot be compared: an earlier program wrote one of them, and it has no identity before a service has opened it", log.name, other.name))
		return nil
	case have.Log != with.Log:
		k.fault(fmt.Errorf("%s is the log %v, and %s is %v: they are not copies of one log", log.name, have.Log, other.name, with.Log))
		return nil
	case first > last+1:
		k.fault(fmt.Errorf("%s and %s have no entry in common: one ends with entry %d, the other begins with %d", log.name, other.name, last, first))
		return nil
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
		return failed
	case same == first:
		k.fault(fmt.Errorf("%s and %s have forked: before entry %d already they have different entries", log.name, other.name, first+1))
	case same-1 < last:
		k.fault(fmt.Errorf("%s and %s have forked: they are the same up to entry %d, and differ from there on: up to entry %d and %d", log.name, other.name, same-1, log.Last, other.Last))
	case log.Last == other.Last:
		fmt.Fprintf(k.out, "%s and %s are the same, up to entry %d\n", log.name, other.name, last)
	case log.Last > last:
		fmt.Fprintf(k.out, "%s is what %s was after entry %d\n", other.name, log.name, last)
	default:
		fmt.Fprintf(k.out, "%s is what %s was after entry %d\n", log.name, other.name, last)
	}
	return nil
}
