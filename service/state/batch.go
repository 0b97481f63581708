package state

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/learner"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// Batch is a commit group under construction. Its maps hold the changes that it will make, one for each decision.
type Batch struct {
	State   *State
	Events  []*eventlog.Event
	Entries [][]byte
	Offers  []*offer.Offer // of the decisions that they close
	Bytes   int
	Alone   bool              // no other event may be in it
	By      string            // the caller behind the event of Only
	Ready   *Prepared         // prepared for its PlacementPut
	Staged  *catalogue.Staged // its ItemsChanged

	touched map[decisionKey]bool
	open    map[*Placement]int // additional bytes of open decisions
	rounds  map[*Placement]int // bytes of rounds for the learner
}

// Reset begins the next batch.
func (b *Batch) Reset() {
	*b = Batch{
		State: b.State, Events: b.Events[:0], Entries: b.Entries[:0], Offers: b.Offers[:0],
		touched: map[decisionKey]bool{}, open: map[*Placement]int{}, rounds: map[*Placement]int{},
	}
}

func (b *Batch) add(e *eventlog.Event, entry []byte, o *offer.Offer) {
	b.Events = append(b.Events, e)
	b.Entries = append(b.Entries, entry)
	b.Offers = append(b.Offers, o)
	b.Bytes += eventlog.EntrySize(entry)
}

func (b *Batch) encode(e *eventlog.Event, o *offer.Offer) {
	b.add(e, encoded(e), o)
}

// encoded returns the entry of a valid event.
func encoded(e *eventlog.Event) []byte {
	entry, err := e.Encode(nil)
	if err != nil {
		panic(fmt.Sprintf("state: an invalid event: %v", err))
	}
	return entry
}

// Only adds an event to a batch of its own. It returns an *api.FieldError if the event does not fit into an append.
func (b *Batch) Only(e *eventlog.Event) error {
	if eventlog.IsCommand(e.Body) {
		e.By = b.By
	}
	entry := encoded(e)
	if n := eventlog.EntrySize(entry); n > eventlog.MaxBatch {
		return api.Fieldf("", "the change takes %d bytes of the log, at most %d fit: make it smaller", n, eventlog.MaxBatch)
	}
	b.Alone = true
	b.add(e, entry, nil)
	return nil
}

// Offer adds a decision. If open decisions exceed the placement's memory, it evicts others. An earlier decision under
// this id, with a removed entry, may still be remembered.
func (b *Batch) Offer(v *View, e *eventlog.Event, o *offer.Offer, forgotten *Record, entry []byte) error {
	p := v.Placement
	key := decisionKey{p, o.Decision}
	if b.touched[key] {
		return ErrRetryBatch
	}
	before := b.State.decisions.find(p, o.Decision)
	if b.State.Placements[p.Name] != p || p.Changed != v.Changed || before != nil && before != forgotten {
		return page.ErrStale
	}
	size := setup.RecordBytes + idBytes(o.Decision)
	if _, err := b.makeRoom(p, p.Open.Bytes+b.open[p]+size-p.Config.MemoryBytes, e.Time, math.MaxInt); err != nil {
		return err
	}
	b.touched[key] = true
	b.open[p] += size
	b.add(e, entry, o)
	return nil
}

// room reports whether the learner can take the round of a decision.
func (b *Batch) room(r *Record, o *offer.Offer) bool {
	p := r.placement
	return !r.isOf(p.Learner) || !slices.ContainsFunc(p.Taught(o), func(w *Worker) bool {
		return !w.HasRoom(b.rounds[p], learner.RoundBytes(o))
	})
}

// canExpire reports whether a decision may expire now. A deferred decision makes no round.
func (b *Batch) canExpire(r *Record, o *offer.Offer) bool {
	return r.Status == Deferred || b.room(r, o)
}

// close ends the wait for a decision's outcome. Without an offer there is no round.
func (b *Batch) close(r *Record, o *offer.Offer, now int64, body eventlog.Body) {
	p := r.placement
	b.open[p] -= r.Size()
	if o != nil && b.canExpire(r, o) {
		b.rounds[p] += learner.RoundBytes(o)
	}
	b.note(r, o, now, body)
}

// note adds an event about a decision to the batch, and marks the decision as touched.
func (b *Batch) note(r *Record, o *offer.Offer, now int64, body eventlog.Body) {
	b.touched[r.key()] = true
	b.encode(&eventlog.Event{Time: now, Placement: r.placement.Name, Body: body}, o)
}

// LogValues adds the values that are not logged yet.
func (b *Batch) LogValues(name string, changed uint64, values []feature.Seen, now int64) (err error) {
	p := b.State.Placements[name]
	switch {
	case len(b.Events) > 0:
		return ErrRetryBatch
	case p == nil || p.Changed != changed:
		return page.ErrStale
	}
	owner := b.State.owner(p)
	schema := owner.Config.Schema()
	for _, seen := range values {
		if seen = schema.Fresh(seen); seen.Values != nil {
			if schema, err = schema.Learn(seen); err != nil { // which leaves less room for the next values
				return err
			}
			b.Alone = true
			b.encode(&eventlog.Event{Time: now, Placement: owner.Name,
				Body: &eventlog.CategoryValuesAdded{Feature: seen.Feature, Values: seen.Values}}, nil)
		}
	}
	return nil
}

// MoveClock moves the windows of all open decisions. It returns their number, and how many would be late now. If from
// is to, it records the time in one of the placements with open decisions.
func (b *Batch) MoveClock(from, to int64) (open, late int, err error) {
	if len(b.Events) > 0 {
		return 0, 0, ErrRetryBatch
	}
	for _, name := range slices.Sorted(maps.Keys(b.State.Placements)) {
		p := b.State.Placements[name]
		open += p.Open.Len()
		for r := range p.Open.Each() {
			if r.isLate(to) && !r.isLate(from) {
				late++
			}
		}
		if from != to || p.Open.Len() > 0 && len(b.Events) == 0 {
			b.encode(&eventlog.Event{Time: to, Placement: name, Body: &eventlog.ClockMoved{By: to - from}}, nil)
		}
	}
	b.Alone = true
	return open, late, nil
}

// ChangeItems changes the items of a placement, which were at a version when the change was made.
func (b *Batch) ChangeItems(v *View, g *catalogue.Staged, version uint64, e *eventlog.Event) error {
	if len(b.Events) > 0 {
		return ErrRetryBatch
	}
	p, items := v.Placement, g.Items
	if b.State.Placements[p.Name] != p || v.Changed != p.Changed || p.Items.Of != items ||
		items.Split() != g.Change.Split || items.Version() != version {
		return page.ErrStale
	}
	if n := items.LenAfter(g.Change); n > catalogue.MaxItems {
		return api.Fieldf("/items", "the catalogue would have %d items, at most %d", n, catalogue.MaxItems)
	}
	if err := b.Only(e); err != nil {
		return err
	}
	if !g.Claim() { // the caller is gone
		b.Reset()
		return page.ErrStale
	}
	b.Staged = g
	return nil
}

// makeRoom evicts at most maximum open decisions, in the order of their expiry, until their placement has room for the
// bytes, and returns their number. Evicted decisions teach nothing. An overdue decision must expire instead, after its
// offer was read: the error is then ErrExpireFirst.
func (b *Batch) makeRoom(p *Placement, bytes int, now int64, maximum int) (n int, err error) {
	if bytes <= 0 {
		return 0, nil
	}
	for r := range p.Open.All() {
		switch {
		case bytes <= 0 || n == maximum:
			return n, nil
		case b.touched[r.key()]:
			continue
		case r.isLate(now) && r.Status != Deferred:
			return n, ErrExpireFirst
		case r.isLate(now):
			b.expire(r, nil, now)
		default:
			b.close(r, nil, now, &eventlog.Evicted{Decision: r.id})
		}
		bytes -= r.Size()
		n++
	}
	if bytes > 0 { // the batch itself fills the memory
		return n, ErrRetryBatch
	}
	return n, nil
}
