package decision

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/eventlog"
)

// fold is the state: the fold of the log's entries. It has one writer.
type fold struct {
	build      func(Spec) (vitrine.Learner, error)
	position   eventlog.Position // after the last entry applied
	machines   []string          // kinds of them that have learned, sorted: see SnapshotMachines
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
	return &fold{build: build, machines: []string{runtime.GOARCH}, placements: map[string]*placement{}, decisions: index{}, evicted: newEvictions()}
}

// apply makes the next entry, which is an event, part of the state. It is the only function that changes
// it, for live traffic and for replay alike. An event that cannot have happened in this state
// is an error, and changes nothing.
//
// It hands rounds to the placement's learner and does not wait for them to be
// learned, but for room in the learner's queue.
//
// What a round has comes from the decision's offer, which the caller has read back for an event that closes
// reports. Without it nothing is learned, and nothing but decisions is counted.
func (s *fold) apply(entry []byte, e *eventlog.Event, o *offer) error {
	next := s.position.After(entry)
	if err := s.applyBody(next.Sequence, e, o); err != nil {
		return fmt.Errorf("entry %d, placement %q: %w", next.Sequence, e.Placement, err)
	}
	s.position = next
	return nil
}

// closes returns the decision that an event closes with a round, nil if it closes none.
func (s *fold) closes(e *eventlog.Event) *record {
	var id string
	switch b := e.Body.(type) {
	case *eventlog.Chosen:
		id = b.Decision
	case *eventlog.Expired:
		id = b.Decision
	default:
		return nil
	}
	r := s.decisions.find(s.placements[e.Placement], id)
	if _, isExpired := e.Body.(*eventlog.Expired); r == nil || isExpired && r.status == deferred {
		return nil
	}
	return r
}

func (s *fold) applyBody(sequence uint64, e *eventlog.Event, o *offer) error {
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
		return s.offer(p, sequence, e.Time, b)
	case *eventlog.Chosen:
		r, err := s.openRecord(p, b.Decision)
		if err != nil {
			return err
		}
		if int(b.Choice) > int(r.shown) {
			return fmt.Errorf("decision %q showed %d items, and item %d was chosen", r.id, r.shown, b.Choice)
		}
		if b.Choice > 0 && r.hasPassed(int(b.Choice)) {
			return fmt.Errorf("item %d of decision %q was chosen after it was passed", b.Choice, r.id)
		}
		s.close(sequence, r, o, chosen, int(b.Choice), !b.Unlearned)
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
		s.close(sequence, r, o, expired, 0, !b.Unlearned)
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
// same rows under the same settings, and begins again otherwise.
func (s *fold) put(sequence uint64, name string, config []byte) error {
	r := s.ready
	s.ready = nil
	c, _, err := parseLogged(config)
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
	for _, records := range [][]*record{p.open.heap, p.closed.records} {
		for _, r := range records {
			s.decisions.remove(r)
		}
	}
	delete(s.placements, p.name)
	s.recharge(p, 0, 0)
	s.evicted.forget(p)
}

func (s *fold) offer(p *placement, sequence uint64, time int64, offered *eventlog.Offered) error {
	before := s.decisions.find(p, offered.Decision)
	if before != nil && before.status.waits() {
		return fmt.Errorf("decision %q is open already", offered.Decision)
	}
	o, err := offerOf(p, offered)
	if err != nil {
		return err
	}
	if before != nil { // whoever wrote this had forgotten it
		p.closed.remove(before)
		s.decisions.remove(before)
	}
	r := &record{placement: p, id: strings.Clone(offered.Decision), entry: sequence, time: time, shown: uint16(len(offered.Shown))}
	if o.deferred {
		r.status = deferred
	}
	s.decisions.add(r)
	p.open.add(r)
	p.numbers = max(p.numbers, o.number)
	p.counts.offered(o)
	p.pace.add(time, r.size())
	s.forget(p)
	return nil
}

// forget drops the oldest closed decisions until the rest fits into memory.
func (s *fold) forget(p *placement) {
	for len(p.closed.records) > 0 && p.open.bytes+p.closed.bytes > p.config.Memory {
		r := p.closed.pop()
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

// close gives a decision its outcome, which its learner may learn from.
func (s *fold) close(sequence uint64, r *record, o *offer, to status, choice int, learn bool) {
	p := r.placement
	p.open.remove(r)
	r.status, r.choice = to, int16(choice)
	p.counts.closed(r, o)
	switch {
	case !r.isOf(p.learner):
		p.counts.Stale++
	case !learn:
		p.counts.Unlearned++
	case o != nil:
		p.sound.closed(r, o)
		p.worker.send(task{sequence: sequence, round: o.round(choice), bytes: o.roundBytes()})
		fallthrough
	default:
		p.learned = sequence
	}
	s.shelve(r)
}

// abandon ends the wait for the outcome of a decision of which nothing is learned.
func (s *fold) abandon(r *record, to status) {
	r.placement.open.remove(r)
	r.status = to
	r.placement.counts.abandoned(to)
	s.shelve(r)
}

// shelve keeps of a decision what its repetition needs.
func (s *fold) shelve(r *record) {
	if r.rare != nil && r.rare.carried != nil {
		r.rare = &rare{carried: r.rare.carried, learner: r.rare.learner}
	} else {
		r.rare = nil
	}
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
	p.worker.send(task{what: toKeep, version: version, maximum: p.config.Keep})
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

func (s *fold) missing(p *placement, id string) error {
	if s.evicted.has(p, id) {
		return tooSmall(p, id)
	}
	return unknownDecision(id)
}

// prepared is what a PlacementPut needs and the writer must not wait for.
type prepared struct {
	placement *placement // that is changed, nil for a new one
	changed   uint64     // when it was changed before
	worker    *worker    // nil if the placement's learner goes on
	charge    int64      // of the placement as it will be
	held      int64      // of it, what the budget has set aside
	claimed   atomic.Bool
}

// fits reports whether the placement has not changed meanwhile.
func (r *prepared) fits(p *placement) bool {
	return p == r.placement && (p == nil || p.changed == r.changed)
}

// claim gives what was prepared to its first caller, which is the writer, or put where the writer has no use for it.
func (r *prepared) claim() bool { return r.claimed.CompareAndSwap(false, true) }

// charge returns the bytes that a placement is charged with: its learner, the states that it has saved, which are the last
// checkpoint, the one that is being made and those to roll back to, and what [Config.Bound] says.
func (s *fold) charge(c *Config) (int64, error) {
	var size Size
	if s.size != nil {
		err, _ := safely(func() (err error) { size, err = s.size(c.spec()); return err })
		if err != nil {
			return int64(c.Bound()), api.Fieldf("/policy", "%v", err)
		}
	}
	return size.Learner + int64(2+c.Keep)*size.State + int64(c.Bound()), nil
}

// recharge changes the bytes that a placement is charged. The budget has set aside held of them.
func (s *fold) recharge(p *placement, charge, held int64) {
	s.budget.Charge(charge - p.charged - held)
	p.charged = charge
}
