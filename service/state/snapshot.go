package state

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"vitrine/internal/fields"
)

// Freeze returns the state at its last entry. Its learners save themselves.
func (s *State) Freeze(patient bool) *Frozen {
	f := &Frozen{At: s.Position, oldest: s.Position.Sequence + 1, machines: s.machines, relearned: s.relearned}
	for _, name := range slices.Sorted(maps.Keys(s.Placements)) {
		p := s.Placements[name]
		f.oldest = p.Open.Oldest(f.oldest)
		f.placements = append(f.placements, p.freeze(patient))
	}
	return f
}

// Await waits for the learners until over ends. It returns the error of ctx.
func (f *Frozen) Await(ctx, over context.Context) error {
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
						return ctx.Err()
					}
				}
			}
			f.oldest = min(f.oldest, l.Needs())
		}
	}
	return nil
}

// Behind returns the placements with learners that did not reach the entry.
func (f *Frozen) Behind() (names []string) {
	for _, p := range f.placements {
		if slices.ContainsFunc(p.all(), func(l *frozenLearner) bool { return l.saved != nil && l.IsBehind() }) {
			names = append(names, p.Name)
		}
	}
	return names
}

// Write encodes the state.
func (f *Frozen) Write(out *fields.Fields) ([]byte, error) {
	f.fields(out)
	return out.Seal()
}

// freeze asks the learners to save themselves. A patient caller does not wait for a second learner: its last checkpoint
// will do.
func (p *Placement) freeze(patient bool) *frozenPlacement {
	f := &frozenPlacement{
		persisted: p.persisted, configuration: configurationOf(p.Config), open: copies(p.Open.Sorted()),
		closed: copies(p.closed.records), items: p.Items.Of.Freeze(),
	}
	f.moves, f.memory = slices.Clone(p.Open.Moves), p.memory.Freeze()
	f.versions, f.Earnings = slices.Clone(p.versions), p.Earnings.Copy()
	f.changes, f.alarms = slices.Clone(p.changes), slices.Clone(p.alarms)
	if p.Relearning != nil {
		f.relearning = new(*p.Relearning)
	}
	if p.Holdout != nil {
		f.holdout = p.Holdout.Copy()
	}
	if p.Experiment != nil {
		f.experiment = p.Experiment.Copy()
	}
	frozen := func(w *Worker) *frozenLearner {
		l := &frozenLearner{State: w.View(), of: w, began: w.began}
		if p.Relearning == nil || p.Relearning.Worker != w || !patient {
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
			f.learners[i].own = configurationOf(w.Config)
		}
	}
	for _, v := range f.versions {
		f.keepers = append(f.keepers, slices.IndexFunc(f.learners, func(l *frozenLearner) bool {
			return l.of == v.learner
		}))
	}
	return f
}

func (f *frozenPlacement) all() []*frozenLearner { return slices.Concat(f.learners, f.challengers) }

func copies(records []*Record) []Record {
	all := make([]Record, len(records))
	for i, r := range records {
		all[i] = *r
	}
	return all
}

// Different returns the placements with different bytes in two states of one entry.
func (f *Frozen) Different(other *Frozen) (names []string, err error) {
	if f.At != other.At {
		return nil, fmt.Errorf("the states are of entries %d and %d, or of two logs", f.At.Sequence, other.At.Sequence)
	}
	mine, its := f.byName(), other.byName()
	all := maps.Clone(mine)
	maps.Copy(all, its)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p, q := mine[name], its[name]
		same := p != nil && q != nil
		if same {
			if same, err = p.equal(q); err != nil {
				return nil, err
			}
		}
		if !same {
			names = append(names, name)
		}
	}
	return names, nil
}

func (f *Frozen) byName() map[string]*frozenPlacement {
	all := map[string]*frozenPlacement{}
	for _, p := range f.placements {
		all[p.Name] = p
	}
	return all
}
