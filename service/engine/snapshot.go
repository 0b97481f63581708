package engine

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// Snapshot returns the state after some log entry, and the entry. An engine opened with it replays only later entries.
// Equal states give equal bytes: a snapshot and the entries after it give the same bytes as all entries.
//
// The writer waits while the remembered decisions are listed, but not while they are encoded. The learners continue
// once they reach that entry. It is an error if one ends before, as a second learner does that is given up meanwhile.
func (e *Engine) Snapshot(ctx context.Context) (data []byte, upTo uint64, err error) {
	f, err := e.freeze(ctx, -1)
	if err != nil {
		return nil, 0, err
	}
	data, err = f.Write(fields.Snapshot(state.SnapshotKind))
	return data, f.At.Sequence, err
}

// WriteSnapshot encodes the state to w. It waits at most the time patience for learners that have not reached the
// entry. For learners that are still behind, the snapshot holds the last checkpoint and the rounds after it, which they
// learn when an engine is opened with it: the same state in other bytes. It returns the placements of these learners.
func (e *Engine) WriteSnapshot(ctx context.Context, w io.Writer,
	patience time.Duration) (upTo uint64, behind []string, err error) {
	f, err := e.freeze(ctx, patience)
	if err != nil {
		return 0, nil, err
	}
	_, err = f.Write(fields.SnapshotTo(w, state.SnapshotKind))
	return f.At.Sequence, f.Behind(), err
}

// freeze waits for the learners for at most patience, or without limit if patience is negative.
func (e *Engine) freeze(ctx context.Context, patience time.Duration) (*state.Frozen, error) {
	var f *state.Frozen
	err := e.inspect(ctx, func(s *state.State) { f = s.Freeze(patience >= 0) })
	if err != nil {
		return nil, err
	}
	over := ctx
	if patience >= 0 {
		var cancel context.CancelFunc
		over, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	if err := f.Await(ctx, over); err != nil {
		return nil, err
	}
	if behind := f.Behind(); patience < 0 && behind != nil {
		return nil, fmt.Errorf("a learner of %s ended before entry %d", strings.Join(behind, ", "), f.At.Sequence)
	}
	return f, nil
}

// VerifySnapshot reads a snapshot as Open does, with its learners, and returns its last entry. It needs the
// memory of the whole state.
func VerifySnapshot(build func(setup.Spec) (vitrine.Learner, error), data []byte) (uint64, error) {
	var l goroutines
	s := state.NewState(build, l.Go)
	err := s.Restore(data)
	s.Stop()
	l.rest()
	return s.Position.Sequence, err
}

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
