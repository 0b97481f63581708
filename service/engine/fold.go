package engine

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"vitrine/service/page"

	"vitrine"
	"vitrine/internal/panics"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/earnings"
	"vitrine/service/earnings/abtest"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/learner"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// fold is the state: the fold of the log's entries. It has one writer.
type fold struct {
	build      func(setup.Spec) (vitrine.Learner, error)
	published  atomic.Pointer[map[string]*placement] // placements, for callers without the engine's lock
	position   eventlog.Position                     // after the last entry applied
	machines   []string                              // kinds of machines that have learned, sorted: see SnapshotMachines
	beginAgain bool                                  // learners whose saved state cannot be read
	placements map[string]*placement
	decisions  index  // the remembered decisions of all placements
	offers     offers // of the last of them
	workers    sync.WaitGroup
	log        Log         // from which second learners learn; nil in audits
	relearned  []relearned // the second learners that there were

	size        func(setup.Spec) (setup.Size, error) // of a learner; nil is unknown
	budget      *budget.Budget
	ready       *prepared // prepared for the next PlacementPut; if nil, put prepares it
	moved       *moved    // made for the next change of features
	staged      *staged   // the next ItemsChanged, which the engine has applied to the catalogue; nil applies it
	pendingWake []*worker // workers with new rounds that have not been woken yet
}

// newFold returns the state before the first entry.
func newFold(build func(setup.Spec) (vitrine.Learner, error)) *fold {
	s := &fold{build: build, machines: []string{runtime.GOARCH}, placements: map[string]*placement{}, decisions: index{}}
	s.publishAll()
	return s
}

// isAudit reports whether the state is that of an [Audit], which has no rounds and so no alarms.
func (s *fold) isAudit() bool { return s.log == nil }

// named returns the placement of a name, or ErrNotFound.
func (s *fold) named(name string) (*placement, error) {
	if p := s.placements[name]; p != nil {
		return p, nil
	}
	return nil, unknownPlacement(name)
}

func unknownPlacement(name string) error { return fmt.Errorf("placement %q: %w", name, ErrNotFound) }

// apply applies the event of the next entry to the state. Only apply changes the state, both for live traffic
// and for a replay. An event that is impossible in this state is an error and changes nothing.
//
// It passes rounds to the placement's learner. It waits for room in the learner's queue, but not for the
// learning.
//
// A round is made from the decision's offer, which the caller has read back for an event that closes reports.
// Without the offer nothing is learned, and only decisions are counted.
func (s *fold) apply(entry []byte, e *eventlog.Event, o *offer.Offer) error {
	next := s.position.After(entry)
	if err := s.applyBody(next.Sequence, e, o); err != nil {
		return fmt.Errorf("entry %d, placement %q: %w", next.Sequence, e.Placement, err)
	}
	s.position = next
	if p := s.placements[e.Placement]; p != nil {
		s.restock(p)
		if p.experiment != nil {
			p.experiment.Advance(e.Time, p.earnings.Guard.Watch.Cohort())
		}
		s.advance(p, e.Time, next.Sequence)
	}
	return nil
}

// publishAfter publishes the placements that an event may have changed. A replay publishes once, at its end.
func (s *fold) publishAfter(e *eventlog.Event) {
	switch e.Body.(type) {
	case *eventlog.Offered, *eventlog.Chosen, *eventlog.Expired, *eventlog.Evicted, *eventlog.Activated, *eventlog.ItemsDeclined, *eventlog.Corrected, *eventlog.ItemsChanged:
		s.publish(s.placements[e.Placement])
	default:
		s.publishAll()
	}
}

// publish makes the placement's state the view of later decisions. An alarm can change the view after any event.
func (s *fold) publish(p *placement) {
	v := View{
		placement: p, changed: p.changed, worker: p.worker, fallback: p.fallsBack(),
		page: page.View{Name: p.name, Born: p.born, Config: p.config, Catalogue: s.itemsOf(p), Policy: page.Policy{Config: p.worker.config}},
	}
	v.page.ByBaseline = v.fallback == api.FallbackBaseline
	if x := p.experiment; x != nil {
		v.page.Routes, v.challengers = x.Routes, x.workers
	}
	before := p.view.Load()
	if before == nil || before.changed != v.changed || before.worker != v.worker || before.fallback != v.fallback ||
		before.page.Config != v.page.Config || before.page.Catalogue != v.page.Catalogue || before.page.Routes != v.page.Routes {
		p.view.Store(new(v))
	}
}

// publishAll publishes all placements, and the list of placements.
func (s *fold) publishAll() {
	for _, p := range s.placements {
		s.publish(p)
	}
	s.published.Store(new(maps.Clone(s.placements)))
}

// wake wakes the learners that have got rounds. Call it after some entries, so that a learner is not woken for
// each of its rounds.
func (s *fold) wake() {
	for _, w := range s.pendingWake {
		w.Wake()
	}
	clear(s.pendingWake)
	s.pendingWake = s.pendingWake[:0]
}

// closes returns the decision that an event closes with a round, or nil.
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

func (s *fold) applyBody(sequence uint64, e *eventlog.Event, o *offer.Offer) error {
	if put, ok := e.Body.(*eventlog.PlacementPut); ok {
		return s.put(sequence, e.Time, e.Placement, put.Config)
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
		return s.offer(p, sequence, e.Time, b, o)
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
		s.close(sequence, e.Time, r, o, chosen, int(b.Choice), !b.Unlearned)
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
		s.close(sequence, e.Time, r, o, expired, 0, !b.Unlearned)
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
	case *eventlog.ItemsDeclined:
		r, err := s.openRecord(p, b.Decision)
		if err != nil {
			return err
		}
		return r.pass(b)
	case *eventlog.ClockMoved:
		p.open.move(move{sequence, e.Time, b.By})
		p.earnings.Guard.MoveClock(b.By)
		return nil
	case *eventlog.Corrected:
		return s.correct(p, b)
	case *eventlog.ItemsChanged:
		return s.changeItems(p, sequence, b)
	case *eventlog.SnapshotTaken:
		return s.keepAt(p, b.Version, version{time: e.Time, routine: true})
	case *eventlog.VersionSaved:
		return s.keepAt(p, b.Version, version{time: e.Time, note: b.Note})
	case *eventlog.AlarmCleared:
		if p.earnings.Guard.Alarm() == nil && !s.isAudit() {
			return fmt.Errorf("an alarm: %w", ErrNotFound)
		}
		doubtful := p.earnings.Guard.Doubtful(sequence + 1)
		if b.All {
			doubtful = [2]uint64{}
		}
		p.restartGuard(sequence)
		s.resume(p, sequence, doubtful)
		return nil
	case *eventlog.CategoryValuesAdded:
		if err := p.see(feature.Seen{Feature: b.Feature, Values: b.Values}); err != nil {
			return err
		}
		for _, q := range s.placements {
			if q != p && s.owner(q) == p {
				s.restock(q)
			}
		}
		return nil
	case *eventlog.LearnerRolledBack:
		return s.rollBack(p, sequence, e.Time, b)
	case *eventlog.LearnerAdopted:
		return s.adopt(p, sequence, e.Time, b)
	case *eventlog.LearnerReset:
		return s.reset(p, sequence, e.Time, b)
	case *eventlog.RelearningBegun:
		return s.beginRelearning(p, sequence, e.Time, b)
	case *eventlog.LearnerSwapped:
		return s.exchange(p, sequence, e.Time, b)
	case *eventlog.RelearningEnded:
		if p.relearning == nil {
			return errors.New("no relearning is under way")
		}
		s.endRelearning(p)
		return nil
	}
	return fmt.Errorf("an event of type %T", e.Body)
}

// put creates a placement, or changes it in a way that lets its learner continue: the learner sees the same rows under the same
// settings. A change after which another learner decides is an event of its own.
func (s *fold) put(sequence uint64, time int64, name string, config []byte) error {
	c, err := setup.Parse(config)
	if err != nil {
		return err
	}
	p := s.placements[name]
	if p != nil && !p.config.SameLearner(c) {
		return errors.New("a put of a placement changes what its learner sees")
	}
	r, err := s.prepared(p, c, p == nil)
	if err != nil {
		return err
	}
	began := ""
	switch {
	case p == nil:
		p = &placement{facts: facts{name: name, born: sequence}}
		s.placements[name] = p
		s.begin(p, r.worker, c, sequence)
		began = api.BegunByCreation
	default:
		if p.config.Watch() != c.Watch() || r.variants != nil {
			began = api.BegunByMode
		}
		switch {
		case p.config.Watch() != c.Watch(): // which restarts the guard
			s.resume(p, sequence, p.earnings.Guard.Doubtful(sequence+1))
		case c.LearnInAlarm:
			s.resume(p, sequence, [2]uint64{})
		}
		p.configure(c, sequence)
	}
	s.conduct(p, sequence, time, r.variants)
	if began != "" {
		p.turn(sequence, time, began)
	}
	s.recharge(p, s.chargeOf(p), r.held)
	s.forget(p)
	return nil
}

// reset changes a placement, whose learner begins again.
func (s *fold) reset(p *placement, sequence uint64, time int64, b *eventlog.LearnerReset) error {
	c, err := setup.Parse(b.Config)
	if err != nil {
		return err
	}
	r, err := s.prepared(p, c, true)
	if err != nil {
		return err
	}
	s.endRelearning(p)
	s.keepBefore(p, time, b.Note, 0)
	s.retire(p)
	s.begin(p, r.worker, c, sequence)
	s.conduct(p, sequence, time, r.variants)
	s.replaced(p, sequence, time, api.BegunByReset, 0, r.held)
	return nil
}

// replaced ends a change after which another learner decides, or an earlier state of it. The version spare is not forgotten. The
// budget has reserved held bytes.
func (s *fold) replaced(p *placement, sequence uint64, time int64, began string, spare uint64, held int64) {
	p.sound.Forget()
	p.restartGuard(sequence)
	p.held = learner.Gap{}
	p.turn(sequence, time, began)
	s.trim(p, spare)
	s.recharge(p, s.chargeOf(p), held)
	s.forget(p)
}

// prepared returns the learner that a caller has prepared, or prepares one: a placement in the log is not refused for its
// size.
func (s *fold) prepared(p *placement, c *setup.Config, needsLearner bool) (r *prepared, err error) {
	if r, s.ready = s.ready, nil; r != nil {
		return r, nil
	}
	r = new(prepared)
	if needsLearner {
		if r.worker, err = newWorker(s.build, c); err != nil {
			return nil, err
		}
	}
	r.variants, err = buildVariants(s.build, p, c)
	return r, err
}

// begin gives a placement a new learner.
func (s *fold) begin(p *placement, w *worker, c *setup.Config, sequence uint64) {
	w.begin(sequence)
	p.worker = w
	p.learner, p.learned, p.standing = sequence, sequence, 0
	p.configure(c, sequence)
	p.sound.Forget()
	p.restartGuard(sequence)
	p.held = learner.Gap{}
	s.start(p, w)
}

// start runs a learner of a placement.
func (s *fold) start(p *placement, w *worker) {
	log, name := s.log, p.name
	s.workers.Go(func() { w.Run(log, name) })
}

func (s *fold) delete(p *placement) {
	for _, w := range p.all() {
		w.Stop()
	}
	for _, records := range [][]*record{p.open.heap, p.closed.records} {
		for _, r := range records {
			s.decisions.remove(r)
		}
	}
	delete(s.placements, p.name)
	s.release(p)
}

// offer adds a decision. o is its offer with its estimates, nil to decode them.
func (s *fold) offer(p *placement, sequence uint64, time int64, offered *eventlog.Offered, o *offer.Offer) (err error) {
	before := s.decisions.find(p, offered.Decision)
	if before != nil && before.status.waits() {
		return fmt.Errorf("decision %q is open already", offered.Decision)
	}
	if o == nil {
		o, err = offerOf(p.config, offered)
	} else {
		err = o.Check(p.config.Schema().Width(), p.config.MaxSize)
	}
	if err != nil {
		return err
	}
	if err := p.routing().Check(o); err != nil {
		return err
	}
	if before != nil { // whoever wrote this had forgotten it
		p.closed.remove(before)
		s.decisions.remove(before)
	}
	r := &record{placement: p, id: strings.Clone(offered.Decision), entry: sequence, time: time, shown: uint16(len(offered.Shown))}
	if o.Deferred {
		r.status = deferred
	}
	s.decisions.add(r)
	p.open.add(r)
	if o.Number>>replicaShift == 0 {
		p.numbers = max(p.numbers, o.Number)
	}
	p.earnings.Offered(sequence, time, o, p.isOwn(o))
	if p.experiment != nil {
		r.first = p.experiment.Enter(sequence, time, p.earnings.Guard.Watch.Cohort(), o)
	}
	p.pace.Add(time, r.size())
	isLarge := o.Payload != nil || o.Catalogue != nil && len(o.Catalogue.Slots) > maxKeptSlots
	if o.Decoded && !isLarge && !s.isAudit() {
		s.offers.add(sequence, o)
	}
	s.forget(p)
	return nil
}

// offerOf decodes an offer that was made under a configuration.
func offerOf(c *setup.Config, o *eventlog.Offered) (*offer.Offer, error) {
	decoded, err := offer.Of(o)
	if err != nil {
		return nil, err
	}
	return decoded, decoded.Check(c.Schema().Width(), c.MaxSize)
}

// forget drops the oldest closed decisions until the rest fits into memory.
func (s *fold) forget(p *placement) {
	for len(p.closed.records) > 0 && p.open.bytes+p.closed.bytes > p.config.MemoryBytes {
		r := p.closed.pop()
		s.decisions.remove(r)
		if r.status == evicted {
			p.departed.add(r.id, p.config.MemoryBytes)
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
func (s *fold) close(sequence uint64, now int64, r *record, o *offer.Offer, to status, choice int, learn bool) {
	p := r.placement
	p.open.remove(r)
	if p.relearning != nil {
		p.relearning.worker.Follow(sequence)
	}
	r.status, r.choice = to, int16(choice)
	var c *offer.Closed
	own := o != nil && p.isOwn(o)
	if o != nil {
		c = &offer.Closed{Offer: o, Entry: r.entry, Time: r.time, Choice: choice, Predicted: own && o.Probability != nil}
	}
	p.earnings.Closed(earnings.Ended{Entry: r.entry, Time: r.time, Age: now - r.since(), Chosen: to == chosen, Own: own}, c, earnings.MaxItems(p.config.MemoryBytes))
	if p.experiment != nil {
		p.experiment.Leave(r.entry, r.time, p.earnings.Guard.Watch.Cohort(), r.first, c)
	}
	switch {
	case !r.isOf(p.learner):
		p.earnings.Counts.Stale++
	case p.held.After > 0:
		p.held.Rounds++
	case !learn:
		p.earnings.Counts.Unlearned++
	case o != nil:
		p.sound.Closed(c)
		for _, w := range p.taught(o) {
			w.Observe(sequence, o, choice)
			if !slices.Contains(s.pendingWake, w) {
				s.pendingWake = append(s.pendingWake, w)
			}
		}
		fallthrough
	default:
		p.learned, p.standing = sequence, 0
	}
	s.shelve(r)
}

// abandon ends the wait for the outcome of a decision from which nothing is learned.
func (s *fold) abandon(r *record, to status) {
	r.placement.open.remove(r)
	r.status = to
	r.placement.earnings.Abandoned(r.entry, r.time, to == evicted)
	if e := r.placement.experiment; e != nil {
		e.Leave(r.entry, r.time, r.placement.earnings.Guard.Watch.Cohort(), r.first, nil)
	}
	s.shelve(r)
}

// shelve keeps the part of a closed decision that a repeated request needs.
func (s *fold) shelve(r *record) {
	r.rare = nil
	s.offers.drop(r.entry)
	r.placement.closed.push(r)
	s.forget(r.placement)
}

// keepAt makes the learner remember its state, as the version that the log says.
func (s *fold) keepAt(p *placement, number uint64, v version) error {
	if had := p.version(number); had != nil && number == p.standing && !v.routine {
		had.annotate(v.note)
		return nil
	}
	if number != p.learned {
		return fmt.Errorf("version %d is kept while the learner is at %d", number, p.learned)
	}
	s.keep(p, v, 0)
	return nil
}

func (s *fold) missing(p *placement, id string) error {
	if p != nil && p.departed.knows(id) {
		return tooSmall(p, id)
	}
	if since := p.rememberedSince(); since != nil {
		return fmt.Errorf("%w: the placement has forgotten decisions of before %s: give it more memory to remember them longer", unknownDecision(id), since.Format(time.RFC3339))
	}
	return unknownDecision(id)
}

// prepared is the learner and the memory of a PlacementPut, made before the writer runs.
type prepared struct {
	placement *placement // the changed placement, nil for a new one
	changed   uint64     // the entry of its last change
	worker    *worker    // nil if the placement's learner goes on
	variants  []*worker  // of an experiment that begins: see buildVariants
	held      int64      // bytes that the budget has set aside
	moved     *moved     // nil if the features of the items stay
	spare     int64      // bytes that the budget has set aside for the catalogue before moved
	claimed   atomic.Bool
}

// fits reports whether the placement and its items are still the same.
func (r *prepared) fits(p *placement, c *setup.Config) bool {
	return p == r.placement && (p == nil || p.changed == r.changed) && (r.moved == nil || r.moved.fits(p.items.of, c.Inherit(p.config).Schema()))
}

// claim returns true to its first caller: the writer, or Put if the writer did not use the learner.
func (r *prepared) claim() bool { return r.claimed.CompareAndSwap(false, true) }

// charge returns the bytes that a placement is charged with under a configuration: its learner, the states that it has saved, which are the last
// checkpoint, the one that is being made and those to roll back to, and what [Config.Bound] says. The states of other learners
// of the placement may be larger.
func (s *fold) charge(c *setup.Config, others ...*worker) (int64, error) {
	size, err := s.sizeOf(c)
	if err != nil {
		return int64(c.Bound()), err
	}
	for _, w := range others {
		if other, err := s.sizeOf(w.config); err == nil {
			size.State = max(size.State, other.State)
		}
	}
	all := size.Learner + int64(2+c.MaxVersions)*size.State + int64(c.Bound())
	if c.Experiment != nil {
		all += abtest.Size
	}
	err = c.OfVariants(func(_ int, own *setup.Config) error {
		size, err := s.sizeOf(own)
		all += size.Learner + 2*size.State + int64(2*own.Share())
		return err
	})
	return all, err
}

func (s *fold) sizeOf(c *setup.Config) (size setup.Size, err error) {
	if s.size == nil {
		return setup.Size{}, nil
	}
	if err, _ = panics.Safely(func() (err error) { size, err = s.size(c.Spec()); return err }); err != nil {
		return setup.Size{}, api.Fieldf("/policy", "%v", err)
	}
	return size, nil
}

// chargeOf returns the charge of a placement in its present state, whatever its size.
func (s *fold) chargeOf(p *placement) int64 {
	charge, _ := s.charge(p.config, p.former...)
	if p.relearning != nil {
		charge += s.chargeOfSecond(p.relearning.worker.config)
	}
	return charge
}

// chargeOfSecond returns the additional charge of a placement's second learner.
func (s *fold) chargeOfSecond(c *setup.Config) int64 {
	size, _ := s.sizeOf(c)
	return size.Learner + 2*size.State + int64(c.Bound())
}

// recharge changes the bytes that a placement is charged. The budget has already reserved held of them.
func (s *fold) recharge(p *placement, charge, held int64) {
	s.budget.Charge(charge - p.charged - held)
	p.charged = charge
}
