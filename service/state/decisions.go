package state

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// closes returns the decision that an event closes with a round, or nil.
func (s *State) closes(e *eventlog.Event) *Record {
	var id string
	switch b := e.Body.(type) {
	case *eventlog.Chosen:
		id = b.Decision
	case *eventlog.Expired:
		id = b.Decision
	default:
		return nil
	}
	r := s.decisions.find(s.Placements[e.Placement], id)
	if _, isExpired := e.Body.(*eventlog.Expired); r == nil || isExpired && r.Status == Deferred {
		return nil
	}
	return r
}

// offer adds a decision. o is its offer with its estimates, nil to decode them.
func (s *State) offer(p *Placement, sequence uint64, time int64, offered *eventlog.Offered,
	o *offer.Offer) (err error) {
	before := s.decisions.find(p, offered.Decision)
	if before != nil && before.Status.Waits() {
		return fmt.Errorf("decision %q is open already", offered.Decision)
	}
	if n := len(p.Open.Moves); n > 0 { // its caller may have read the clock before the clock moved
		time = max(time, p.Open.Moves[n-1].Time)
	}
	if o == nil {
		o, err = OfferOf(p.Config, offered)
	} else {
		err = o.Check(p.Config.Schema().Width(), p.Config.MaxSize)
	}
	if err != nil {
		return err
	}
	if err := p.checkOffer(o); err != nil {
		return err
	}
	if before != nil { // the writer of this entry had forgotten it
		p.closed.remove(before)
		s.decisions.remove(before)
	}
	r := &Record{placement: p, id: strings.Clone(offered.Decision), Entry: sequence, time: time,
		shown: uint16(len(offered.Shown)), mode: offered.Mode}
	if o.Deferred {
		r.Status = Deferred
	}
	s.decisions.add(r)
	p.Open.Add(r)
	if o.Number>>ReplicaShift == 0 {
		p.lastLogged = max(p.lastLogged, o.Number)
	}
	p.Earnings.Offered(sequence, time, o, p.isOwn(o))
	p.noteOffer(o, time)
	for i, e := range p.comparisons() {
		if e != nil {
			r.marks[i] = e.Enter(sequence, time, p.Earnings.Guard.Watch.Cohort(), o)
		}
	}
	p.pace.Add(time, r.Size())
	if o.Decoded && !s.isAudit() {
		s.Offers.Add(sequence, o, learner.RoundBytes(o))
	}
	s.forget(p)
	return nil
}

// OfferOf decodes an offer that was made under a configuration.
func OfferOf(c *setup.Config, o *eventlog.Offered) (*offer.Offer, error) {
	decoded, err := offer.Of(o)
	if err != nil {
		return nil, err
	}
	return decoded, decoded.Check(c.Schema().Width(), c.MaxSize)
}

// forget drops the oldest closed decisions until the rest fits into memory.
func (s *State) forget(p *Placement) {
	for len(p.closed.records) > 0 && p.Open.Bytes+p.closed.bytes > p.Config.MemoryBytes {
		r := p.closed.pop()
		s.decisions.remove(r)
		if r.Status == evicted {
			p.evictedIDs.Add(r.id, p.Config.MemoryBytes/setup.EvictedShare)
		}
	}
}

func (s *State) openRecord(p *Placement, decision string) (*Record, error) {
	r := s.decisions.find(p, decision)
	if r == nil {
		return nil, fmt.Errorf("decision %q: %w", decision, ErrNotFound)
	}
	if !r.Status.Waits() {
		return nil, fmt.Errorf("decision %q has its outcome already", decision)
	}
	return r, nil
}

// chosen gives a decision the outcome that was reported.
func (s *State) chosen(p *Placement, sequence uint64, time int64, b *eventlog.Chosen, o *offer.Offer) error {
	r, err := s.openRecord(p, b.Decision)
	if err != nil {
		return err
	}
	if int(b.Choice) > int(r.shown) {
		return fmt.Errorf("decision %q showed %d items, and item %d was chosen", r.id, r.shown, b.Choice)
	}
	if err := b.Basket.Check(b.Choice, int(r.shown)); err != nil {
		return fmt.Errorf("decision %q: %w", r.id, err)
	}
	if b.Choice > 0 && r.hasPassed(int(b.Choice)) || slices.ContainsFunc(b.Basket,
		func(t eventlog.Take) bool { return r.hasPassed(int(t.Place)) }) {
		return fmt.Errorf("item %d of decision %q was chosen after it was passed", b.Choice, r.id)
	}
	s.close(sequence, time, r, o, ending{chosen, b})
	return nil
}

// expired ends the wait for the outcome of a decision. A deferred one was not shown.
func (s *State) expired(p *Placement, sequence uint64, time int64, b *eventlog.Expired, o *offer.Offer) error {
	r, err := s.openRecord(p, b.Decision)
	if err != nil {
		return err
	}
	if r.Status == Deferred {
		s.abandon(r, withdrawn)
		return nil
	}
	s.close(sequence, time, r, o, ending{expired, &eventlog.Chosen{Unlearned: b.Unlearned}})
	return nil
}

func (s *State) evicted(p *Placement, b *eventlog.Evicted) error {
	r, err := s.openRecord(p, b.Decision)
	if err != nil {
		return err
	}
	s.abandon(r, evicted)
	return nil
}

func (s *State) activated(p *Placement, b *eventlog.Activated) error {
	r, err := s.openRecord(p, b.Decision)
	if err != nil {
		return err
	}
	if r.Status != Deferred {
		return fmt.Errorf("decision %q is activated, and does not wait to be", r.id)
	}
	r.Status = open
	return nil
}

func (s *State) measured(p *Placement, b *eventlog.Measured) error {
	r, err := s.openRecord(p, b.Decision)
	if err != nil {
		return err
	}
	r.measure(b.List)
	s.forget(p)
	return nil
}

func (s *State) declined(p *Placement, b *eventlog.ItemsDeclined) error {
	r, err := s.openRecord(p, b.Decision)
	if err != nil {
		return err
	}
	return r.pass(b)
}

// ending is how a decision ends.
type ending struct {
	status           status
	*eventlog.Chosen // no choice if it expired
}

// close gives a decision its outcome, which its learner may learn from.
func (s *State) close(sequence uint64, now int64, r *Record, o *offer.Offer, by ending) {
	p := r.placement
	p.Open.Remove(r)
	if p.Relearning != nil && p.held.After == 0 {
		p.Relearning.Worker.Follow(sequence, p.outages)
	}
	r.Status, r.choice = by.status, int16(by.Choice)
	var c *offer.Closed
	own := o != nil && p.isOwn(o)
	if o != nil {
		c = &offer.Closed{Offer: o, Entry: r.Entry, Time: r.time, Choice: int(by.Choice), Basket: by.Basket,
			Measured: r.rare().measured, Predicted: own && o.Probability != nil}
		p.noteOutcome(c, now)
	}
	p.Earnings.Closed(earnings.Ended{Entry: r.Entry, Time: r.time, Age: now - r.since(), Chosen: by.status == chosen,
		Own: own}, c, earnings.MaxItems(p.Config.MemoryBytes))
	r.leave(c, false)
	switch {
	case !r.isOf(p.Learner):
		p.Earnings.Counts.Stale++
	case p.held.After > 0:
		p.held.Rounds++
	case by.Unlearned:
		p.Earnings.Counts.Unlearned++
		p.Earnings.Counts.SinceUnlearned = 0
	case o != nil:
		p.sound.Closed(c)
		for _, w := range p.Taught(o) {
			w.Observe(sequence, r.Entry, o, int(by.Choice), by.Basket)
			if !slices.Contains(s.pendingWake, w) {
				s.pendingWake = append(s.pendingWake, w)
			}
		}
		fallthrough
	default:
		p.learnedThrough, p.currentVersion = sequence, 0
	}
	p.releaseSales(sequence)
	s.shelve(r, by.Basket)
}

// releaseSales lets the learners learn the sales of decisions before the oldest open one, except during an alarm.
func (p *Placement) releaseSales(sequence uint64) {
	if p.held.After == 0 {
		for _, w := range p.deciders() {
			w.Settle(sequence, p.Open.Before(sequence))
		}
	}
}

// leave closes a decision in the comparisons in which it counts. c is nil for a decision that is not learned. isLost says
// that it left memory before its outcome.
func (r *Record) leave(c *offer.Closed, isLost bool) {
	p := r.placement
	length := p.Earnings.Guard.Watch.Cohort()
	for i, e := range p.comparisons() {
		if e == nil || r.marks[i] == 0 {
			continue
		}
		if isLost {
			e.Lose(r.marks[i], r.Entry)
		}
		if isLost || r.Status == chosen || r.Status == expired {
			e.See(r.marks[i], r.Entry, r.time, length)
		}
		e.Leave(r.Entry, r.time, length, c, p.segment(c))
	}
}

// abandon ends the wait for an outcome without teaching the learner.
func (s *State) abandon(r *Record, to status) {
	r.placement.Open.Remove(r)
	isLost := to == evicted && r.Status == open // a page that was never shown sells nothing
	r.Status = to
	r.leave(nil, isLost)
	r.placement.Earnings.Abandoned(r.Entry, r.time, r.mode, to == evicted, isLost)
	r.placement.releaseSales(s.Position.Sequence)
	s.shelve(r, nil)
}

// keep drops a decision's extras, except for the basket of its outcome.
func (r *Record) keep(basket eventlog.Basket) {
	if r.extras = nil; basket != nil {
		r.extras = &recordExtras{basket: basket}
	}
}

// shelve keeps the part of a closed decision that a repeated request needs.
func (s *State) shelve(r *Record, basket eventlog.Basket) {
	r.keep(basket)
	s.Offers.Drop(r.Entry)
	r.placement.closed.push(r)
	s.forget(r.placement)
}

// Missing returns the error for a decision that is not remembered. p is nil for an unknown placement.
func (s *State) Missing(p *Placement, id string) error {
	if p != nil && p.evictedIDs.Knows(id) {
		return tooSmall(p, id)
	}
	if since := p.rememberedSince(s.First.Load()); since != nil {
		return fmt.Errorf("%w: the placement has forgotten decisions of before %s: to remember them longer, give it "+
			"more memory, or the log a longer [retention]", UnknownDecision(id), since.Format(time.RFC3339))
	}
	return UnknownDecision(id)
}

// Closed reads back the offer that the next event closes, or returns nil if it closes none.
func (s *State) Closed(ctx context.Context, log eventlog.Reader, event *eventlog.Event) (*offer.Offer, error) {
	r := s.closes(event)
	if r == nil {
		return nil, nil
	}
	if o := s.Offers.Of(r.Entry); o != nil {
		return o, nil
	}
	o, err := r.read(ctx, log)
	if err != nil {
		err = fmt.Errorf("entry %d: %w", s.Position.Sequence+1, err)
	}
	return o, err
}

// tooSmall returns the error of an evicted decision.
func tooSmall(p *Placement, id string) error {
	holds := ""
	if s := p.pace.Seconds(p.Config.MemoryBytes); s > 0 {
		holds = fmt.Sprintf(" hold %.3g seconds of decisions at the present rate, and", s)
	}
	return fmt.Errorf("decision %q: %w: the %d bytes of %q%s must hold the attribution window of %s: make its "+
		"memory or the log's [retention] larger", api.Abbreviate(id, setup.MaxDecision), ErrEvicted,
		p.Config.MemoryBytes, p.Name, holds, p.Config.AttributionWindow)
}

// rememberedSince returns the time of the oldest ended decision that is in memory and in the log, whose first entry is
// given, or nil if no decision is forgotten.
func (p *Placement) rememberedSince(first uint64) *time.Time {
	if p == nil || len(p.closed.records) == 0 {
		return nil
	}
	list := p.closed.records // nearly in the order of their entries
	at := sort.Search(len(list), func(i int) bool { return list[i].Entry >= first })
	if at == 0 && p.Earnings.Counts.Offered == uint64(p.Open.Len()+len(list)) {
		return nil
	}
	return new(time.Unix(0, list[min(at, len(list)-1)].time).UTC())
}

// UnknownDecision returns the error of a decision that is not remembered.
func UnknownDecision(id string) error {
	return fmt.Errorf("decision %q: %w", api.Abbreviate(id, setup.MaxDecision), ErrNotFound)
}

// ReplicaShift is the position of the replica in a decision's number. The leader's own decisions use replica 0 and
// continue the log's numbers; followers begin with 1, and each follows under a replica of its own.
const ReplicaShift = 40
