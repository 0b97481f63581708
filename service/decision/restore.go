package decision

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/learner"
	"vitrine/service/setup"
)

// restore restores the state from a snapshot.
func (s *fold) restore(data []byte) error {
	d, err := newDecoder(data)
	if err != nil {
		return err
	}
	s.position = d.position()
	s.machines = slices.Compact(slices.Sorted(slices.Values(append(d.machines(), s.machines...))))
	oldest := d.oldest(s.position)
	if err := s.restoreRelearned(d); err != nil {
		return err
	}
	last := ""
	for range d.Count() {
		if d.Err() != nil {
			break
		}
		name := d.String()
		if name <= last {
			d.Fail(fmt.Errorf("placement %q comes after placement %q", name, last))
			break
		}
		if err := s.restorePlacement(d, name); err != nil {
			d.Fail(err)
		}
		last = name
	}
	first := s.position.Sequence + 1
	for _, p := range s.placements {
		if first = p.open.oldest(first); p.held.After > 0 {
			first = min(first, p.held.From)
		}
		for _, w := range p.all() {
			first = min(first, w.Needs())
		}
	}
	if first != oldest {
		d.Fail(fmt.Errorf("snapshot needs entry %d, and says %d", first, oldest))
	}
	if err := d.Close(); err != nil {
		return err
	}
	for _, p := range s.placements { // only now: a learner that has caught up no longer needs the entries counted above
		for _, w := range p.all() {
			s.start(p, w)
		}
	}
	return nil
}

// restoreRelearned reads which second learners there were.
func (s *fold) restoreRelearned(d decoder) error {
	for range d.Count() {
		r := relearned{d.Uint64(), d.Uint64()}
		if d.Err() != nil {
			return d.Err()
		}
		if n := len(s.relearned); r.from > r.begun || r.begun > s.position.Sequence || n > 0 && (r.begun <= s.relearned[n-1].begun || r.from <= s.relearned[n-1].from) {
			return fmt.Errorf("a learner that entry %d began learned from entry %d on", r.begun, r.from)
		}
		s.relearned = append(s.relearned, r)
	}
	return nil
}

func (s *fold) restorePlacement(d decoder, name string) error {
	p := &placement{facts: facts{name: name}}
	for _, v := range []*uint64{&p.born, &p.changed, &p.learner, &p.numbers, &p.learned} {
		*v = d.Uint64()
	}
	text := d.String()
	values := restoreValues(d)
	p.tally.Counts.Numbers().Decode(d.Decoder)
	p.guard.Decode(d.Decoder)
	p.held = learner.Gap{After: d.Uint64(), From: d.Uint64(), Rounds: d.Uint64()}
	p.tally.Series.Decode(d.Decoder)
	p.tally.Items.Decode(d.Decoder)
	if d.Err() != nil {
		return d.Err()
	}
	config, err := setup.Parse([]byte(text))
	if err != nil {
		return fmt.Errorf("placement %q: %w", p.name, err)
	}
	p.canonical = config.Canonical()
	if string(p.canonical) != text {
		return fmt.Errorf("placement %q: the configuration is not in its canonical form", p.name)
	}
	if p.config, err = config.Learn(values...); err != nil {
		return fmt.Errorf("placement %q: %w", p.name, err)
	}
	p.guard.Watch = p.config.Watch()
	for range d.Count() {
		m := move{d.Uint64(), int64(d.Uint64()), int64(d.Uint64())}
		if d.Err() != nil {
			return d.Err()
		}
		if n := len(p.open.moves); n > 0 && m.entry <= p.open.moves[n-1].entry || m.entry > s.position.Sequence {
			return fmt.Errorf("placement %q: a move of the clock at entry %d is out of place", p.name, m.entry)
		}
		p.open.moves = append(p.open.moves, m)
	}
	for _, waits := range []bool{true, false} {
		var before *record
		for range d.Count() {
			if d.Err() != nil {
				return d.Err()
			}
			r, err := p.restoreRecord(d)
			if err != nil {
				return err
			}
			if r.status.waits() != waits || s.decisions.find(p, r.id) != nil || r.entry > s.position.Sequence {
				return fmt.Errorf("decision %q is out of place", r.id)
			}
			if waits && before != nil && compareDue(before, r) >= 0 {
				return fmt.Errorf("decision %q comes after decision %q", r.id, before.id)
			}
			before = r
			s.decisions.add(r)
			if waits {
				p.open.add(r)
			} else {
				p.closed.push(r)
			}
		}
	}
	if err := s.restoreLearners(d, p); err != nil {
		return fmt.Errorf("placement %q: %w", p.name, err)
	}
	return nil
}

// restoreValues reads the values that categories have learned.
func restoreValues(d decoder) (all []feature.Seen) {
	for range d.Count() {
		if d.Err() != nil {
			return nil
		}
		seen := feature.Seen{Feature: d.String()}
		for range d.Count() {
			if d.Err() != nil {
				return nil
			}
			seen.Values = append(seen.Values, d.String())
		}
		all = append(all, seen)
	}
	return all
}

// restoreLearners reads the learners of a placement, the one that decides first, and their versions.
func (s *fold) restoreLearners(d decoder, p *placement) (err error) {
	defer func() {
		if err != nil && p.worker != nil && s.placements[p.name] == nil { // nobody else ends them
			for _, w := range p.all() {
				w.Stop()
			}
		}
	}()
	has := [][]uint64{}
	for i := range d.Count() {
		began, c := d.Uint64(), p.config
		if i > 0 {
			text := d.String()
			values := restoreValues(d)
			if d.Err() != nil {
				return d.Err()
			}
			if c, err = setup.Parse([]byte(text)); err != nil {
				return err
			}
			if string(c.Canonical()) != text {
				return errors.New("the configuration of a former learner is not in its canonical form")
			}
			if c, err = c.Learn(values...); err != nil {
				return err
			}
		}
		w, err := s.restoreWorker(d, c.Plain(), began)
		if err != nil {
			return err
		}
		has = append(has, w.View().Versions())
		if i == 0 {
			p.worker = w
		} else {
			p.former = append(p.former, w)
		}
	}
	if d.Err() != nil || p.worker == nil {
		return cmp.Or(d.Err(), errors.New("there is no learner"))
	}
	if err := p.restoreRelearning(d, &has); err != nil {
		return err
	}
	if err := p.restoreVersions(d, has); err != nil {
		return err
	}
	if err := s.restoreItems(d, p); err != nil {
		return err
	}
	if err := s.restoreExperiments(d, p); err != nil {
		return err
	}
	s.placements[p.name] = p
	p.fallBack()
	s.recharge(p, s.chargeOf(p), 0)
	return nil
}

// restoreRelearning takes the second learner, if there is one, from the end of the others.
func (p *placement) restoreRelearning(d decoder, has *[][]uint64) error {
	if !d.Flag() {
		return d.Err()
	}
	r := &relearning{note: d.String(), time: int64(d.Uint64())}
	last := len(p.former) - 1
	if d.Err() != nil || last < 0 || len((*has)[last+1]) > 0 || p.former[last].Replaying().From == 0 {
		return cmp.Or(d.Err(), errors.New("there is no second learner"))
	}
	r.worker, p.former, *has = p.former[last], p.former[:last], (*has)[:last+1]
	p.relearning = r
	return nil
}

// restoreVersions reads the versions. has lists the versions whose states each learner keeps.
func (p *placement) restoreVersions(d decoder, has [][]uint64) error {
	learners := p.learners()
	for range d.Count() {
		number, at := d.Uint64(), d.Count()
		if d.Err() != nil {
			return d.Err()
		}
		if at >= len(learners) {
			return fmt.Errorf("version %d is of learner %d of %d", number, at, len(learners))
		}
		v := version{number: number, learner: learners[at], routine: d.Flag(), note: d.String()}
		v.time, v.rounds, v.revenue = int64(d.Uint64()), d.Uint64(), d.Float()
		p.versions = append(p.versions, v)
	}
	if p.standing = d.Uint64(); p.standing > 0 && p.version(p.standing) == nil {
		return fmt.Errorf("the learner is at version %d, which does not exist", p.standing)
	}
	p.rows = d.Uint64()
	if !slices.IsSortedFunc(p.versions, func(a, b version) int { return cmp.Compare(a.number, b.number) }) {
		return fmt.Errorf("the versions are %v, which are not in order", p.numbersOf(nil))
	}
	for i, w := range p.learners() {
		if numbers := p.numbersOf(w); !slices.Equal(has[i], numbers) || i > 0 && len(numbers) == 0 {
			return errors.New("the kept states are not those of the versions")
		}
	}
	return d.Err()
}

// restoreWorker reads a learner, and checks that the log still holds what it reads.
func (s *fold) restoreWorker(d decoder, c *setup.Config, began uint64) (*worker, error) {
	l, err := learner.Restore(d.Decoder, s.build, c, s.beginAgain)
	if err != nil {
		return nil, err
	}
	if from := l.Replaying().From; from > s.position.Sequence {
		return nil, fmt.Errorf("a learner follows the log from entry %d on, after the last one", from)
	}
	if from := l.Needs(); from < math.MaxUint64 && s.lacks(from) {
		return nil, fmt.Errorf("a learner learns from entry %d on: %w", from, eventlog.ErrRemoved)
	}
	return &worker{l, c, began}, nil
}

func (p *placement) restoreRecord(d decoder) (*record, error) {
	r := &record{placement: p, id: d.String(), entry: d.Uint64(), time: int64(d.Uint64())}
	shown := d.Count()
	r.shown = uint16(min(shown, setup.MaxSize))
	if err := r.restoreStatus(d, shown); err != nil {
		return nil, cmp.Or(d.Err(), err)
	}
	if r.entry == 0 && d.Err() == nil {
		return nil, fmt.Errorf("decision %q has no entry", r.id)
	}
	if !r.status.waits() {
		return r, cmp.Or(d.Err(), r.restoreCorrections(d))
	}
	r.first = d.Flag()
	if err := r.restorePassed(d); err != nil {
		return nil, cmp.Or(d.Err(), err)
	}
	return r, d.Err()
}

func (r *record) restoreCorrections(d decoder) error {
	var list []correction
	for range d.Count() {
		c := correction{id: d.String(), value: d.Float(), withdraws: d.Flag()}
		if d.Err() != nil {
			return d.Err()
		}
		if c.id == "" || r.choice == 0 || len(list) == maxCorrections || len(list) > 0 && list[len(list)-1].withdraws {
			return fmt.Errorf("decision %q has the correction %q after %d others", r.id, c.id, len(list))
		}
		list = append(list, c)
	}
	if list != nil {
		r.rare = &rare{corrections: slices.Clip(list)}
	}
	return d.Err()
}

// restoreStatus reads the status and the choice of a decision that shows the given number of items.
func (r *record) restoreStatus(d decoder, shown int) error {
	r.status = status(min(d.Count(), 255))
	r.choice = int16(min(d.Count(), setup.MaxSize+1))
	if shown > setup.MaxSize || r.status > late || int(r.choice) > shown || r.choice > 0 && r.status != chosen && r.status != late {
		return fmt.Errorf("decision %q shows %d items and has status %d and choice %d", r.id, shown, r.status, r.choice)
	}
	return nil
}

func (r *record) restorePassed(d decoder) error {
	n, last := d.Count(), -1
	if n == 0 {
		return nil
	}
	var passed []bool
	if n > 0 && n < int(r.shown) {
		passed = make([]bool, r.shown)
	} else if n > 0 {
		return fmt.Errorf("decision %q has %d items of %d passed", r.id, n, r.shown)
	}
	for range n {
		k := d.Count()
		if k <= last || k >= int(r.shown) {
			return fmt.Errorf("decision %q has item %d of %d passed after item %d", r.id, k, r.shown, last)
		}
		passed[k], last = true, k
	}
	reported := d.Float()
	if !(reported >= 0 && reported <= 1) || n == 0 && reported != 0 || n > 0 && r.status == deferred {
		return fmt.Errorf("decision %q has %d items passed with a reward of %v", r.id, n, reported)
	}
	if n > 0 {
		if r.rare == nil {
			r.rare = new(rare)
		}
		r.rare.passed, r.rare.reported = passed, reported
	}
	return nil
}
