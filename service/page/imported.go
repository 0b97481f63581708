package page

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// Imported is a decision from another program's log, and its outcome.
type Imported struct {
	Request    *api.Request       // must have a decision id; its rules are not kept
	Shown      []string           // in display order
	Choices    []api.Choice       // the items that were taken, each once
	Rewards    []api.Reward       // instead of Choices: one is drawn from them as for reported rewards
	Time       int64              // Unix nanoseconds; not before the last entry of the log
	Propensity float64            // of the set; 0 if unknown
	Draw       *offer.SamplingLaw // nil if unknown
}

// CopyID returns the id of the k-th decision of an import that makes a decision of each item that was taken from a page.
// Readers of the log find the page's decisions by it.
func CopyID(id string, k int) string {
	if k == 1 {
		return id
	}
	return id + ".." + strconv.Itoa(k)
}

// Import returns the events of a decision and of its outcome, and their log entries.
func (d *Decider) Import(v *View, m *Imported) (events [2]*eventlog.Event, entries [2][]byte, err error) {
	clear(d.index)
	q, err := d.Read(v, m.Request)
	if err != nil {
		return events, entries, err
	}
	if q.AsksCatalogue() { // the catalogue at that time is unknown
		return events, entries, errNoItems
	}
	if err := q.check(v.Config, d.index); err != nil {
		return events, entries, err
	}
	switch {
	case m.Request.Decision == "":
		return events, entries, api.Fieldf("/decision_id", "is missing")
	case len(m.Shown) > v.Config.MaxSize:
		return events, entries, api.Fieldf("/shown", "has %d items, the placement shows at most %d", len(m.Shown),
			v.Config.MaxSize)
	case !(m.Propensity >= 0 && m.Propensity <= 1):
		return events, entries, api.Fieldf("/propensity", "%v: must be in (0, 1]", m.Propensity)
	}
	at, err := m.shown(v.Config.Seed, d.index)
	if err != nil {
		return events, entries, err
	}
	n, width := len(m.Request.Items), v.Config.Schema().Width()
	d.rows, d.width = resize(d.rows, n*width), width
	unseen := v.Config.Schema().Unseen(q.user, q.items)
	schema, err := v.Config.Schema().Learn(unseen...)
	if err != nil {
		return events, entries, err
	}
	if _, err := schema.Rows(d.rows, q.user, q.items); err != nil {
		return events, entries, err
	}
	d.estimates = offer.Estimates{}
	o := &eventlog.Offered{Decision: m.Request.Decision, Request: q.Sum(""), Candidates: n, Width: width,
		Propensity: m.Propensity, Mode: offer.ByImport}
	if err := m.checkLaw(n, at); err != nil {
		return events, entries, err
	}
	if v.Config.LogItems == "all" {
		d.estimates.Law = m.Draw
	}
	d.fill(o, q, int32s(at), v.Config.LogItems == "all")
	o.Answer = d.estimates.Append(nil)
	events[0] = &eventlog.Event{Time: m.Time, Placement: v.Name, Body: o}
	end, wrong := (&offer.Offer{Offered: o}).Outcome(m.Choices)
	if wrong >= 0 {
		return events, entries, api.Fieldf(fmt.Sprintf("/choices/%d/item", wrong), "%q was not shown",
			api.Abbreviate(m.Choices[wrong].Item, 200))
	}
	events[1] = &eventlog.Event{Time: m.Time, Placement: v.Name, Body: end}
	if entries[0], err = offer.Encode(nil, events[0]); err == nil {
		entries[1], err = events[1].Encode(nil)
	}
	if err != nil {
		return events, entries, err
	}
	if unseen != nil { // the decision is valid
		return events, entries, &UnseenError{unseen}
	}
	// The learner keeps the rows, and d is reused.
	copied, err := eventlog.Decode(entries[0])
	events[0] = &copied
	return events, entries, err
}

// shown returns the items shown. It draws a choice from rewards.
func (m *Imported) shown(seed uint64, index map[string]int) (at []int, err error) {
	if err := m.draw(seed); err != nil {
		return nil, err
	}
	if err := setup.CheckChoices(m.Choices); err != nil {
		return nil, err
	}
	if at, err = find("/shown", m.Shown, index, false); err != nil {
		return nil, err
	}
	for k, i := range at {
		if slices.Contains(at[:k], i) {
			return nil, api.Fieldf(fmt.Sprintf("/shown/%d", k), "%q is shown twice", m.Shown[k])
		}
	}
	return at, nil
}

// checkLaw returns an error if the law does not give the items shown, among n, their propensity.
func (m *Imported) checkLaw(n int, at []int) error {
	l := m.Draw
	if l == nil {
		return nil
	}
	if err := l.Check(n); err != nil {
		return api.Fieldf("/sampling_law", "%v", err)
	}
	p := l.Law(n).Propensity(vitrine.Assortment(slices.Sorted(slices.Values(at))))
	within := float64(1e-3 * p)    // logs hold rounded numbers
	if l.Kind != offer.DrawSwaps { // the law is conditional on the policy's own set, which may be random
		within += 1 - l.Epsilon
	}
	if p == 0 {
		return api.Fieldf("/sampling_law", "never shows the set %q, which was shown", m.Shown)
	}
	if m.Propensity > 0 && math.Abs(p-m.Propensity) > within {
		return api.Fieldf("/sampling_law", "gives the set %q, which was shown, the propensity %v, not %v", m.Shown, p,
			m.Propensity)
	}
	return nil
}

// draw replaces the rewards with a choice drawn from them.
func (m *Imported) draw(seed uint64) error {
	if len(m.Rewards) == 0 {
		return nil
	}
	if len(m.Choices) > 0 {
		return api.Fieldf("/choices", "%q: a decision has choices or rewards, not both",
			api.Abbreviate(m.Choices[0].Item, 200))
	}
	value := make([]float64, len(m.Shown))
	for k, r := range m.Rewards {
		at := slices.Index(m.Shown, r.Item)
		switch {
		case at < 0:
			return api.Fieldf(fmt.Sprintf("/rewards/%d/item", k), "%q was not shown",
				api.Abbreviate(r.Item, 200))
		case !(r.Value >= 0 && r.Value <= 1):
			return api.Fieldf(fmt.Sprintf("/rewards/%d/value", k), "%v: must be in [0, 1]", r.Value)
		}
		value[at] = r.Value
	}
	if place := offer.DrawReward(seed, m.Request.Decision, 0, value, 0); place > 0 {
		m.Choices = []api.Choice{{Item: m.Shown[place-1]}}
	}
	m.Rewards = nil
	return nil
}
