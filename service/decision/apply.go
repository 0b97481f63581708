package decision

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"vitrine"
	"vitrine/service/budget"
	"vitrine/service/eventlog"
)

// fold is the state: the fold of the log's entries. It has one writer.
type fold struct {
	build      func(Spec) (vitrine.Learner, error)
	position   eventlog.Position // after the last entry applied
	kernels    []string          // that have learned, sorted: the last digits are theirs
	beginAgain bool              // learners whose saved state cannot be read
	placements map[string]*placement
	decisions  index     // those that are remembered, of all placements
	evicted    evictions // of those that are not
	workers    sync.WaitGroup

	size   func(Spec) (Size, error) // of a learner; nil is unknown
	budget *budget.Budget
	ready  *prepared // what the next PlacementPut needs; nil makes it
}

// newFold is the state before the first entry.
func newFold(build func(Spec) (vitrine.Learner, error)) *fold {
	return &fold{build: build, kernels: []string{kernelPath()}, placements: map[string]*placement{}, decisions: index{}, evicted: newEvictions()}
}

// kernelPath names the vector code of this process.
func kernelPath() string {
	name, _ := vitrine.KernelPath() // the command refuses a name that it does not know
	return name
}

// placement is where a learner shows assortments.
type placement struct {
	name      string
	born      uint64 // the entry that created it
	changed   uint64 // the last entry that changed its configuration
	charged   int64  // bytes, to the budget
	learner   uint64 // the entry that began its learner
	config    *Config
	canonical []byte

	numbers  uint64   // the largest number of a decision
	learned  uint64   // the last entry that the learner was given
	kept     []uint64 // versions to roll back to
	open     list     // by arrival
	due      due      // the same by time
	closed   list
	counts   counts
	pace     pace
	sound    soundness
	worker   *worker
	upcoming atomic.Uint64 // of live decisions: the largest number given out
}

// apply makes the next entry, which is an event, part of the state. It is the only function that changes
// it, for live traffic and for replay alike. An event that cannot have happened in this state
// is an error, and changes nothing.
//
// It hands rounds to the placement's learner and does not wait for them to be
// learned, but for room in the learner's queue.
func (s *fold) apply(entry []byte, e *eventlog.Event) error {
	next := s.position.After(entry)
	if err := s.applyBody(next.Sequence, e); err != nil {
		return fmt.Errorf("entry %d, placement %q: %w", next.Sequence, e.Placement, err)
	}
	s.position = next
	return nil
}

func (s *fold) applyBody(sequence uint64, e *eventlog.Event) error {
	if put, ok := e.Body.(*eventlog.PlacementPut); ok {
		return s.put(sequence, e.Placement, put.Config)
	}
	p := s.placements[e.Placement]
	if p == nil {
		return fmt.Errorf("the placement: %w", ErrNotFound)
	}
	switch b := e.Body.(type) {
	case *eventlog.PlacementDeleted:
		s.delete(p)
		return nil
	case *eventlog.Offered:
		return s.offer(p, e.Time, b)
	case *eventlog.Chosen:
		r, err := s.openRecord(p, b.Decision)
		if err != nil {
			return err
		}
		if int(b.Choice) > len(r.shown) {
			return fmt.Errorf("decision %q showed %d items, and item %d was chosen", r.id, len(r.shown), b.Choice)
		}
		if b.Choice > 0 && r.hasPassed(b.Choice) {
			return fmt.Errorf("item %d of decision %q was chosen after it was passed", b.Choice, r.id)
		}
		s.close(sequence, r, chosen, b.Choice)
		return nil
	case *eventlog.Expired:
		r, err := s.openRecord(p, b.Decision)
		if err != nil {
			return err
		}
		if r.status == deferred {
			s.abandon(r, withdrawn)
			return nil
		}
		s.close(sequence, r, expired, 0)
		return nil
	case *eventlog.Evicted:
		r, err := s.openRecord(p, b.Decision)
		if err != nil {
			return err
		}
		s.abandon(r, evicted)
		return nil
	case *eventlog.Activated:
		r, err := s.openRecord(p, b.Decision)
		if err != nil {
			return err
		}
		return r.activate()
	case *eventlog.Passed:
		r, err := s.openRecord(p, b.Decision)
		if err != nil {
			return err
		}
		return r.pass(b)
	case *eventlog.SnapshotTaken:
		return p.keep(b.Version)
	case *eventlog.PolicyRolledBack:
		return p.rollBack(sequence, b.Version)
	}
	return fmt.Errorf("an event of type %T", e.Body)
}

// put creates a placement or changes it. The learner goes on where it sees the
// same rows under the same settings, and begins anew elsewhere.
func (s *fold) put(sequence uint64, name string, config []byte) error {
	r := s.ready
	s.ready = nil
	c, err := ParseConfig(config)
	if err != nil {
		return err
	}
	p := s.placements[name]
	goesOn := p != nil && p.config.sameLearner(c)
	if r == nil {
		r = new(prepared)
		r.charge, _ = s.charge(c) // what is in the log stays, however large it is
		if !goesOn {
			if r.worker, err = newWorker(s.build, c, sequence); err != nil {
				return err
			}
		}
	}
	if goesOn {
		p.config, p.canonical, p.changed = c, c.Canonical(), sequence
		p.worker.queue.setBound(c.share())
		s.recharge(p, r.charge, r.held)
		s.forget(p)
		return nil
	}
	w := r.worker
	w.begin(sequence)
	if p == nil {
		p = &placement{name: name, born: sequence}
		s.placements[name] = p
	} else {
		p.worker.stop()
	}
	p.config, p.canonical, p.changed = c, c.Canonical(), sequence
	p.learner, p.learned, p.kept, p.worker = sequence, sequence, nil, w
	s.recharge(p, r.charge, r.held)
	p.sound.forget()
	s.workers.Go(w.run)
	s.forget(p)
	return nil
}

func (s *fold) delete(p *placement) {
	p.worker.stop()
	for _, l := range []*list{&p.open, &p.closed} {
		for r := l.first; r != nil; r = r.next {
			s.decisions.remove(r)
		}
	}
	delete(s.placements, p.name)
	s.recharge(p, 0, 0)
	s.evicted.forget(p)
}

func (s *fold) offer(p *placement, time int64, o *eventlog.Offered) error {
	if s.decisions.find(p, o.Decision) != nil {
		return fmt.Errorf("decision %q is there already", o.Decision)
	}
	r, err := newRecord(p, time, o)
	if err != nil {
		return err
	}
	s.decisions.add(r)
	p.open.push(r)
	p.due.add(r)
	p.numbers = max(p.numbers, r.number)
	p.counts.offered(r)
	p.pace.add(time, r.size)
	s.forget(p)
	return nil
}

// forget drops the oldest closed decisions until the rest fits into memory.
func (s *fold) forget(p *placement) {
	for p.closed.first != nil && p.open.bytes+p.closed.bytes > p.config.Memory {
		r := p.closed.first
		p.closed.remove(r)
		s.decisions.remove(r)
		if r.status == evicted {
			s.evicted.add(p, r.id)
		}
	}
}

func (s *fold) openRecord(p *placement, decision string) (*record, error) {
	r := s.decisions.find(p, decision)
	if r == nil {
		return nil, fmt.Errorf("decision %q: %w", decision, ErrNotFound)
	}
	if !r.status.waits() {
		return nil, fmt.Errorf("decision %q has its outcome already", decision)
	}
	return r, nil
}

// close gives a decision its outcome.
func (s *fold) close(sequence uint64, r *record, to status, choice int32) {
	p := r.placement
	p.open.remove(r)
	p.due.remove(r)
	r.status, r.choice = to, choice
	p.counts.closed(r)
	if r.learner == p.learner {
		p.sound.closed(r)
		p.learned = sequence
		p.worker.send(task{sequence: sequence, round: r.round(), bytes: r.roundBytes()})
	} else {
		p.counts.Stale++
	}
	s.shelve(r)
}

// shelve keeps of a decision what its repetition needs.
func (s *fold) shelve(r *record) {
	r.size -= r.rowBytes()
	r.rows, r.revenues, r.place, r.passed, r.told = nil, nil, nil, nil, 0
	r.placement.closed.push(r)
	s.forget(r.placement)
}

// keep makes the learner remember its state, to roll back to.
func (p *placement) keep(version uint64) error {
	if version != p.learned {
		return fmt.Errorf("version %d is kept while the learner is at %d", version, p.learned)
	}
	p.kept = append(p.kept, version)
	p.kept = p.kept[max(0, len(p.kept)-p.config.Keep):]
	p.worker.send(task{what: toKeep, version: version, most: p.config.Keep})
	return nil
}

func (p *placement) rollBack(sequence, version uint64) error {
	if !slices.Contains(p.kept, version) {
		return fmt.Errorf("version %d: %w", version, ErrNotFound)
	}
	p.learned = sequence
	p.sound.forget()
	p.worker.send(task{what: toRollBack, sequence: sequence, version: version})
	return nil
}
