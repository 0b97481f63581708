package decision

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// Imported is a decision of another log, and its outcome.
type Imported struct {
	Request    *api.Request // with a decision id; rules are not kept
	Shown      []string     // in display order
	Choice     string       // the item that was taken; "" for none
	Rewards    []api.Reward // in place of Choice, which CheckImport and Import draw from them as [Engine.Reward] does
	Time       int64        // Unix nanoseconds; not before the last entry of the log
	Propensity float64      // of the set; 0 if it is not known
	Draw       *offer.Draw  // nil if it is not known
}

// CheckImport reports why [Engine.Import] would not import a decision into a placement of a
// configuration.
func CheckImport(name string, c *setup.Config, m *Imported) error {
	d := deciders.Get().(*decider)
	defer d.release()
	_, _, err := d.imported(view{placement: &placement{facts: facts{name: name}}, config: c}, m)
	if unseen := new(unseenError); errors.As(err, &unseen) {
		return nil
	}
	return err
}

// ImportedEvents returns the decision and the outcome that [Engine.Import] would log, and the configuration with the values of
// categories that the decision adds.
func ImportedEvents(name string, c *setup.Config, m *Imported) (*eventlog.Offered, *eventlog.Chosen, *setup.Config, error) {
	d := deciders.Get().(*decider)
	defer d.release()
	for {
		events, _, err := d.imported(view{placement: &placement{facts: facts{name: name}}, config: c}, m)
		if unseen := new(unseenError); errors.As(err, &unseen) {
			if c, err = c.Learn(unseen.values...); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, nil, c, err
		}
		return events[0].Body.(*eventlog.Offered), events[1].Body.(*eventlog.Chosen), c, nil
	}
}

// Import adds decisions and their outcomes to the log of a placement, marked as imported, and the learner learns
// from them as from any others. Several of them are written in one commit. Import waits while the learner's queue
// is full. Errors are *api.FieldError for what is wrong with a decision, ErrConflict if the placement remembers
// another decision of its id, ErrNotFound, ErrStopped or that of ctx. After an error the decisions before that one
// are in the log.
func (e *Engine) Import(ctx context.Context, name string, decisions ...*Imported) error {
	d := deciders.Get().(*decider)
	defer d.release()
	for len(decisions) > 0 {
		v, err := e.view(name)
		if err != nil {
			return err
		}
		list, err := d.importedTogether(v, decisions)
		if unseen := new(unseenError); errors.As(err, &unseen) && len(list) == 0 {
			if err := e.see(ctx, name, v.changed, unseen.values, decisions[0].Time); err != nil && !errors.Is(err, errMoved) {
				return err
			}
			continue
		}
		if len(list) == 0 {
			return err
		}
		err = e.submit(ctx, func(b *batch) error { return b.imported(v, list) })
		switch {
		case errors.Is(err, errBehind):
			if err := e.Wait(ctx); err != nil {
				return err
			}
		case errors.Is(err, errMoved):
		case err != nil:
			return err
		default:
			decisions = decisions[len(list):]
		}
	}
	return nil
}

// importedEvents are a decision and its outcome, and their entries.
type importedEvents struct {
	offer   *offer.Offer
	events  [2]*eventlog.Event
	entries [2][]byte
}

// importedTogether returns the first decisions, as many as fit into a commit and into half of the learner's
// queue, but one at least. The error is that of the decision after them.
func (d *decider) importedTogether(v view, decisions []*Imported) (list []importedEvents, err error) {
	bytes, rounds := 0, 0
	ids := map[string]bool{}
	for _, m := range decisions {
		var i importedEvents
		if i.events, i.entries, err = d.imported(v, m); err != nil {
			return list, err
		}
		if i.offer, err = offerOf(v.config, i.events[0].Body.(*eventlog.Offered)); err != nil {
			return list, err
		}
		bytes += eventlog.EntrySize(i.entries[0]) + eventlog.EntrySize(i.entries[1])
		rounds += learner.RoundBytes(i.offer)
		if len(list) > 0 && (bytes > eventlog.MaxBatch/2 || rounds > v.config.Share()/2 || ids[m.Request.Decision]) {
			return list, nil
		}
		ids[m.Request.Decision] = true
		list = append(list, i)
	}
	return list, nil
}

// errBehind is returned if the queue of a learner has no room for a round. An import waits for the learner.
var errBehind = errors.New("the learner is behind")

// imported returns the two events of a decision, and their entries.
func (d *decider) imported(v view, m *Imported) (events [2]*eventlog.Event, entries [2][]byte, err error) {
	clear(d.index)
	q, err := d.place(m.Request, v.config.Schema())
	if err != nil {
		return events, entries, err
	}
	if q.asksCatalogue() { // the catalogue of that time is not known
		return events, entries, errNoItems
	}
	if err := q.check(v.config, d.index); err != nil {
		return events, entries, err
	}
	switch {
	case m.Request.Decision == "":
		return events, entries, api.Fieldf("/decision_id", "is missing")
	case len(m.Shown) > v.config.MaxSize:
		return events, entries, api.Fieldf("/shown", "has %d items, the placement shows at most %d", len(m.Shown), v.config.MaxSize)
	case !(m.Propensity >= 0 && m.Propensity <= 1):
		return events, entries, api.Fieldf("/propensity", "%v: must be in (0, 1]", m.Propensity)
	}
	if err := m.draw(v.config.Seed); err != nil {
		return events, entries, err
	}
	order := make([]int32, len(m.Shown))
	choice := int32(0)
	at, err := find("/shown", m.Shown, d.index)
	if err != nil {
		return events, entries, err
	}
	for k, i := range at {
		if slices.Contains(at[:k], i) {
			return events, entries, api.Fieldf(fmt.Sprintf("/shown/%d", k), "%q is shown twice", m.Shown[k])
		}
		order[k] = int32(i)
		if m.Shown[k] == m.Choice {
			choice = int32(k + 1)
		}
	}
	if m.Choice != "" && choice == 0 {
		return events, entries, api.Fieldf("/choice", "%q was not shown", api.Abbreviate(m.Choice, setup.MaxID))
	}
	n, width := len(m.Request.Items), v.config.Schema().Width()
	d.rows, d.width = resize(d.rows, n*width), width
	unseen := v.config.Schema().Unseen(q.user, q.items)
	schema, err := v.config.Schema().Learn(unseen...)
	if err != nil {
		return events, entries, err
	}
	if _, err := schema.Rows(d.rows, q.user, q.items); err != nil {
		return events, entries, err
	}
	d.estimates = offer.Estimates{}
	o := &eventlog.Offered{Decision: m.Request.Decision, Request: q.sum(), Candidates: n, Width: width, Propensity: m.Propensity, Mode: offer.ByImport}
	if l := m.Draw; l != nil {
		if err := l.Check(n); err != nil {
			return events, entries, api.Fieldf("/law", "%v", err)
		}
		shown := vitrine.Assortment(slices.Sorted(slices.Values(at)))
		p := l.Law(n).Propensity(shown)
		within := float64(1e-3 * p)    // logs round
		if l.Kind != offer.DrawSlots { // the law is given the policy's own set, which may be random itself
			within += 1 - l.Epsilon
		}
		if p == 0 || m.Propensity > 0 && math.Abs(p-m.Propensity) > within {
			return events, entries, api.Fieldf("/law", "gives the set %q, which was shown, the propensity %v, not %v", m.Shown, p, m.Propensity)
		}
		if v.config.Record == "all" {
			d.estimates.Law = l
		}
	}
	d.fill(o, q, order, v.config.Record == "all")
	o.Answer = d.estimates.Append(nil)
	events[0] = &eventlog.Event{Time: m.Time, Placement: v.name, Body: o}
	events[1] = &eventlog.Event{Time: m.Time, Placement: v.name, Body: &eventlog.Chosen{Decision: o.Decision, Choice: choice}}
	for k, event := range events {
		if entries[k], err = event.Encode(nil); err != nil {
			return events, entries, api.Fieldf("/items", "%v", err)
		}
	}
	if size := eventlog.EntrySize(entries[0]); size > eventlog.MaxBatch {
		return events, entries, api.Fieldf("/items", "the decision takes %d bytes of the log, at most %d fit", size, eventlog.MaxBatch)
	}
	if unseen != nil { // of a decision without faults
		return events, entries, &unseenError{unseen}
	}
	// The learner keeps the rows, and d is used again.
	copied, err := eventlog.Decode(entries[0])
	events[0] = &copied
	return events, entries, err
}

// draw replaces the rewards of a decision by the choice that is drawn from them.
func (m *Imported) draw(seed uint64) error {
	if len(m.Rewards) == 0 {
		return nil
	}
	if m.Choice != "" {
		return api.Fieldf("/choice", "%q: a decision has a choice or rewards, not both", api.Abbreviate(m.Choice, setup.MaxID))
	}
	value := make([]float64, len(m.Shown))
	for k, r := range m.Rewards {
		at := slices.Index(m.Shown, r.Item)
		switch {
		case at < 0:
			return api.Fieldf(fmt.Sprintf("/rewards/%d/item", k), "%q was not shown", api.Abbreviate(r.Item, setup.MaxID))
		case !(r.Value >= 0 && r.Value <= 1):
			return api.Fieldf(fmt.Sprintf("/rewards/%d/value", k), "%v: must be in [0, 1]", r.Value)
		}
		value[at] = r.Value
	}
	if place := drawn(seed, m.Request.Decision, 0, value, 0); place > 0 {
		m.Choice = m.Shown[place-1]
	}
	m.Rewards = nil
	return nil
}

// imported adds decisions and their outcomes, all or none.
func (b *batch) imported(v view, list []importedEvents) error {
	p := v.placement
	if b.state.placements[p.name] != p || p.changed != v.changed {
		return errMoved
	}
	rounds := 0
	for _, i := range list {
		switch id := i.offer.Decision; {
		case b.touched[decisionKey{p, id}]:
			return errLater
		case b.state.decisions.find(p, id) != nil:
			return fmt.Errorf("decision id %q: %w: the placement has a decision of this id", id, ErrConflict)
		}
		rounds += learner.RoundBytes(i.offer)
	}
	if !p.worker.HasRoom(b.rounds[p], rounds) {
		return errBehind
	}
	b.rounds[p] += rounds
	for _, i := range list {
		b.touched[decisionKey{p, i.offer.Decision}] = true
		b.add(i.events[0], i.entries[0], nil)
		b.add(i.events[1], i.entries[1], i.offer)
	}
	return nil
}
