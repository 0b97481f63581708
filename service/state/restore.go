package state

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"

	"vitrine"
	"vitrine/service/earnings/abtest"
	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/live"
	"vitrine/service/setup"
)

// Restore restores the state from a snapshot.
func (s *State) Restore(data []byte) error {
	head, f, err := openSnapshot(data)
	if err != nil {
		return err
	}
	s.Position, s.relearned = head.At, head.relearned
	s.machines = slices.Compact(slices.Sorted(slices.Values(append(head.machines, s.machines...))))
	last := ""
	for n := f.Length(0, 1); n > 0 && f.Err() == nil; n-- { // one at a time, because they are large
		p := new(frozenPlacement)
		p.fields(f)
		if f.Check(p.Name > last, "placement %q comes after placement %q", p.Name, last); f.Err() == nil {
			if err := s.thaw(p); err != nil {
				f.Fail(fmt.Errorf("placement %q: %w", p.Name, err))
			}
		}
		last = p.Name
	}
	first := s.Position.Sequence + 1
	for _, p := range s.Placements {
		if first = p.Open.Oldest(first); p.held.After > 0 {
			first = min(first, p.held.From)
		}
		for _, w := range p.all() {
			first = min(first, w.Needs())
		}
	}
	f.Check(first == head.oldest, "it needs entry %d, and says %d", first, head.oldest)
	if err := f.Close(); err != nil {
		return err
	}
	for _, p := range s.Placements { // only now: a learner that caught up no longer needs the entries counted above
		for _, w := range p.all() {
			s.start(p, w)
		}
	}
	return nil
}

// thaw makes a placement of a snapshot part of the state.
func (s *State) thaw(f *frozenPlacement) (err error) {
	p := &Placement{persisted: f.persisted, Config: f.configuration.of}
	p.canonical = f.configuration.canonical
	p.Earnings.Guard.Watch, p.Earnings.Guard.Currency = p.Config.Watch(), p.Config.Currency
	for k, m := range f.moves {
		if k > 0 && m.Entry <= f.moves[k-1].Entry || m.Entry > s.Position.Sequence {
			return fmt.Errorf("a move of the clock at entry %d is out of place", m.Entry)
		}
	}
	p.Open.Moves = f.moves
	if err := cmp.Or(s.thawRecords(p, f.open, true), s.thawRecords(p, f.closed, false)); err != nil {
		return err
	}
	defer func() {
		if err != nil && p.Worker != nil { // otherwise they would run forever
			for _, w := range p.all() {
				w.Stop()
			}
		}
	}()
	if err := s.thawLearners(p, f); err != nil {
		return err
	}
	p.Items = stock{Of: f.catalogue, schema: p.Config.Schema()}
	if v := f.catalogue.Version(); v > s.Position.Sequence {
		return fmt.Errorf("the catalogue has the version %d in a snapshot of entry %d", v, s.Position.Sequence)
	}
	s.chargeItems(p, 0)
	if err := p.thawMemory(f.memory); err != nil {
		return err
	}
	if err := s.thawExperiment(p, f); err != nil {
		return err
	}
	s.Placements[p.Name] = p
	p.fallBack()
	s.recharge(p, s.chargeOf(p), 0)
	return nil
}

// thawRecords adds the remembered decisions of a placement that wait for an outcome, or those that do not.
func (s *State) thawRecords(p *Placement, list []Record, waits bool) error {
	var before *Record
	for i := range list {
		r := new(list[i])
		r.placement = p
		if r.Status.Waits() != waits || s.decisions.find(p, r.id) != nil || r.Entry > s.Position.Sequence {
			return fmt.Errorf("decision %q is out of place", r.id)
		}
		s.decisions.add(r)
		if !waits {
			p.closed.push(r)
			continue
		}
		if before != nil && p.Open.Compare(before, r) >= 0 {
			return fmt.Errorf("decision %q comes after decision %q", r.id, before.id)
		}
		before = r
		p.Open.Add(r)
	}
	return nil
}

// thawLearners builds the learners of a placement, and gives them their versions.
func (s *State) thawLearners(p *Placement, f *frozenPlacement) error {
	has := [][]uint64{} // the versions kept by each learner
	for i, l := range f.learners {
		c := p.Config
		switch {
		case (l.own != nil) != (i > 0):
			return errors.New("only former learners have a configuration of their own")
		case i > 0:
			c = l.own.of
		}
		w, err := s.thawWorker(l, c.Plain())
		if err != nil {
			return err
		}
		has = append(has, l.Versions())
		if i == 0 {
			p.Worker = w
		} else {
			p.former = append(p.former, w)
		}
	}
	if p.Worker == nil {
		return errors.New("there is no learner")
	}
	if r := f.relearning; r != nil { // the last one is the second learner
		last := len(p.former) - 1
		if last < 0 || len(has[last+1]) > 0 || p.former[last].Replaying().From == 0 {
			return errors.New("there is no second learner")
		}
		r.Worker, p.former, has = p.former[last], p.former[:last], has[:last+1]
		p.Relearning = r
	}
	return p.thawVersions(f, has)
}

// thawVersions assigns versions to the learners that keep their states.
func (p *Placement) thawVersions(f *frozenPlacement, has [][]uint64) error {
	learners := p.Learners()
	if len(f.keepers) != len(p.versions) {
		return fmt.Errorf("%d versions of %d learners", len(p.versions), len(f.keepers))
	}
	for i, at := range f.keepers {
		if at >= len(learners) {
			return fmt.Errorf("version %d is of learner %d of %d", p.versions[i].number, at, len(learners))
		}
		p.versions[i].learner = learners[at]
	}
	if p.currentVersion > 0 && p.version(p.currentVersion) == nil {
		return fmt.Errorf("the learner is at version %d, which does not exist", p.currentVersion)
	}
	if !slices.IsSortedFunc(p.versions, func(a, b version) int { return cmp.Compare(a.number, b.number) }) {
		return fmt.Errorf("the versions are %v, which are not in order", p.numbersOf(nil))
	}
	for i, w := range learners {
		if numbers := p.numbersOf(w); !slices.Equal(has[i], numbers) || i > 0 && len(numbers) == 0 {
			return errors.New("the kept states are not those of the versions")
		}
	}
	return nil
}

// thawWorker builds a learner, and checks that the log still holds what it reads.
func (s *State) thawWorker(f *frozenLearner, c *setup.Config) (*Worker, error) {
	l, err := learner.Restore(&f.State, s.Build, c, s.BeginAgain)
	if err != nil {
		return nil, err
	}
	if from := l.Replaying().From; from > s.Position.Sequence {
		return nil, fmt.Errorf("a learner follows the log from entry %d on, after the last one", from)
	}
	if from := l.Needs(); from < math.MaxUint64 && s.lacks(from) {
		return nil, fmt.Errorf("a learner learns from entry %d on: %w", from, eventlog.ErrRemoved)
	}
	return &Worker{l, c, f.began}, nil
}

// thawExperiment builds the learners of the variants.
func (s *State) thawExperiment(p *Placement, f *frozenPlacement) error {
	if len(p.past) > maxPast {
		return fmt.Errorf("there are the reports of %d experiments", len(p.past))
	}
	p.Holdout, p.divided = f.holdout, p.Config
	if f.experiment == nil {
		if len(f.challengers) > 0 {
			return errors.New("there are challengers without an experiment")
		}
		return nil
	}
	e := &experiment{f.experiment, p.Worker, make([]*Worker, len(p.Config.Experiment.Variants)),
		live.NewLatencies(abtest.Names(f.experiment.Design))}
	p.Experiment = e
	left := f.challengers
	err := p.Config.OfVariants(func(i int, c *setup.Config) (err error) {
		if len(left) == 0 || left[0].own != nil {
			return errors.New("the learners of an experiment are not those of its variants")
		}
		e.workers[i], err = s.thawWorker(left[0], c)
		left = left[1:]
		return err
	})
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%d learners of no variant", len(left))
	}
	return err
}

// NewState returns the state before the first entry. run starts a learner, which learns until it is stopped.
func NewState(build func(setup.Spec) (vitrine.Learner, error), run func(learn func())) *State {
	s := &State{Build: build, run: run, machines: []string{runtime.GOARCH}, Placements: map[string]*Placement{},
		decisions: index{}}
	s.PublishAll()
	return s
}
