package engine

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/service/catalogue"
	"vitrine/service/earnings/abtest"
	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/setup"
)

// Snapshot returns the state after some entry of the log, and the entry. An engine opened with it replays
// only later entries. Equal states have equal bytes: a snapshot and the entries after it give the same bytes
// as all entries.
//
// The writer waits while the remembered decisions are listed, but not while they are encoded. The learners
// continue after they have reached that entry.
func (e *Engine) Snapshot(ctx context.Context) (data []byte, upTo uint64, err error) {
	f, err := e.freeze(ctx, -1)
	if err != nil {
		return nil, 0, err
	}
	out := fields.Snapshot(snapshotKind)
	f.fields(out)
	data, err = out.Seal()
	return data, f.at.Sequence, err
}

// WriteSnapshot encodes the state to w. It waits at most the time patience for learners that have not reached
// the entry. For the others the snapshot has the last checkpoint and the rounds after it, which they learn
// when an engine is opened with it: the state is the same, but its bytes differ. It returns the placements of
// these learners.
func (e *Engine) WriteSnapshot(ctx context.Context, w io.Writer, patience time.Duration) (upTo uint64, behind []string, err error) {
	f, err := e.freeze(ctx, patience)
	if err != nil {
		return 0, nil, err
	}
	out := fields.SnapshotTo(w, snapshotKind)
	f.fields(out)
	for _, p := range f.placements {
		if slices.ContainsFunc(p.all(), func(l *frozenLearner) bool { return l.saved != nil && l.IsBehind() }) {
			behind = append(behind, p.name)
		}
	}
	_, err = out.Seal()
	return f.at.Sequence, behind, err
}

// frozenState is the state at an entry.
type frozenState struct {
	at         eventlog.Position
	oldest     uint64 // the first entry that an open decision or a second learner needs, that after at if none
	machines   []string
	relearned  []relearned
	placements []*frozen
}

// freeze waits for the learners for at most patience, or without limit if patience is negative.
func (e *Engine) freeze(ctx context.Context, patience time.Duration) (*frozenState, error) {
	f := new(frozenState)
	err := e.inspect(ctx, func(s *fold) {
		f.at, f.oldest, f.machines, f.relearned = s.position, s.position.Sequence+1, s.machines, s.relearned
		for _, name := range slices.Sorted(maps.Keys(s.placements)) {
			p := s.placements[name]
			f.oldest = p.open.oldest(f.oldest)
			f.placements = append(f.placements, p.freeze(patience >= 0))
		}
	})
	if err != nil {
		return nil, err
	}
	over := ctx
	if patience >= 0 {
		var cancel context.CancelFunc
		over, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	for _, p := range f.placements {
		if p.held.After > 0 {
			f.oldest = min(f.oldest, p.held.From)
		}
		for _, l := range p.all() {
			if l.saved != nil {
				select {
				case w, ok := <-l.saved:
					if ok {
						l.State = w
					}
				case <-over.Done():
					if ctx.Err() != nil {
						return nil, ctx.Err()
					}
				}
			}
			f.oldest = min(f.oldest, l.Needs())
		}
	}
	return f, nil
}

// VerifySnapshot reads a snapshot as Open does, with its learners, and returns its last entry. It needs the
// memory of the whole state.
func VerifySnapshot(build func(setup.Spec) (vitrine.Learner, error), data []byte) (uint64, error) {
	s := newFold(build)
	defer s.end()
	err := s.restore(data)
	return s.position.Sequence, err
}

// frozen is a placement at an entry.
type frozen struct {
	facts
	configuration *configuration
	moves         []move // of the clock
	open, closed  []record
	learners      []*frozenLearner // the one that decides, the former ones, and the second one
	relearning    *relearning      // nil if there is no second one
	keepers       []int            // the learner of each version
	items         *catalogue.Frozen
	catalogue     *catalogue.Catalogue // of a snapshot that is read
	experiment    *abtest.Experiment   // nil if none runs
	challengers   []*frozenLearner
}

// frozenLearner is a learner of a placement at an entry.
type frozenLearner struct {
	learner.State
	saved <-chan learner.State // a better one; nil if nobody expects that the learner keeps up
	of    *worker
	began uint64
	own   *configuration // nil for the learner that decides, and those of variants: theirs follows from the placement's
}

// freeze asks the learners to save themselves. If the caller is patient, it does not wait for a second learner, of which the last
// checkpoint will do.
func (p *placement) freeze(patient bool) *frozen {
	f := &frozen{
		facts: p.facts, configuration: configurationOf(p.config), open: copies(p.open.sorted()), closed: copies(p.closed.records), items: p.items.of.Freeze(),
	}
	f.moves = slices.Clone(p.open.moves)
	f.versions, f.earnings = slices.Clone(p.versions), p.earnings.Copy()
	if p.relearning != nil {
		f.relearning = new(*p.relearning)
	}
	if p.experiment != nil {
		f.experiment = p.experiment.Copy()
	}
	frozen := func(w *worker) *frozenLearner {
		l := &frozenLearner{State: w.View(), of: w, began: w.began}
		if p.relearning == nil || p.relearning.worker != w || !patient {
			l.saved = w.Freeze(patient)
		}
		return l
	}
	for _, w := range p.challengers() {
		f.challengers = append(f.challengers, frozen(w))
	}
	for i, w := range p.lasting() {
		f.learners = append(f.learners, frozen(w))
		if i > 0 {
			f.learners[i].own = configurationOf(w.config)
		}
	}
	for _, v := range f.versions {
		f.keepers = append(f.keepers, slices.IndexFunc(f.learners, func(l *frozenLearner) bool { return l.of == v.learner }))
	}
	return f
}

// all are the learners and the challengers.
func (f *frozen) all() []*frozenLearner { return slices.Concat(f.learners, f.challengers) }

func copies(records []*record) []record {
	all := make([]record, len(records))
	for i, r := range records {
		all[i] = *r
	}
	return all
}
