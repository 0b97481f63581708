package page

import (
	"slices"

	"github.com/go-json-experiment/json"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// Unless a placement records all candidates, each decision may take this much of the log.
const (
	maxSet        = 2 << 10 // bytes of the candidates' slots
	maxShortRules = 1 << 10 // bytes of the request's rules
)

// logRules adds the candidates and rules that the log keeps.
func (d *Decider) logRules(all bool) {
	v, r, e := d.view, d.request, &d.estimates
	e.Catalogue = r.stock.said(all)
	switch c := e.Catalogue; {
	case all:
		e.Rules = r.logged(v.Config, len(r.Items), maxRulesText)
	case c != nil && c.NumItems > 0:
		e.Rules = r.logged(v.Config, len(r.Items), maxShortRules)
	}
	if c := e.Catalogue; c != nil && c.NumItems > 0 && d.remembers() {
		for _, p := range v.Shopper.Past {
			if _, ok := d.index[p.ID]; ok {
				e.Past = append(e.Past, p)
			}
		}
	}
	if r.isTrial {
		e.Catalogue = r.said
	}
}

// fill adds the rows that the log keeps, in candidate order: the items shown and, if all candidates are recorded, the
// items that the request brought. The other rows can be rebuilt from the catalogue.
func (d *Decider) fill(o *eventlog.Offered, r *Request, order []int32, all bool) {
	if all && r.stock.items == nil {
		o.ItemIDs = make([]string, r.len())
		for i := range o.ItemIDs {
			o.ItemIDs[i] = r.id(i)
		}
		o.Features, o.Revenue, o.Shown = d.rows, slices.Clone(r.revenue), order
		return
	}
	sorted := slices.Clone(order)
	for i := range int32(r.stock.from) {
		if all && !slices.Contains(order, i) {
			sorted = append(sorted, i)
		}
	}
	if c := d.estimates.Catalogue; len(sorted) == 0 && c != nil {
		if all && r.len() > 0 { // one row keeps the user's columns for the others
			sorted = append(sorted, 0)
		} else {
			c.NumItems, c.Slots = 0, nil
		}
	}
	slices.Sort(sorted)
	k, width := len(sorted), o.Width
	o.ItemIDs, o.Shown = make([]string, k), make([]int32, len(order))
	d.recorded = resize(d.recorded, k*(width+1))
	o.Features = d.recorded[:k*width]
	if r.revenue != nil && k > 0 {
		o.Revenue = d.recorded[k*width:]
	}
	for j, i := range sorted {
		o.ItemIDs[j] = r.id(int(i))
		d.row(o.Features[j*width:(j+1)*width], int(i))
		if r.revenue != nil {
			o.Revenue[j] = r.revenue[i]
		}
	}
	for j, i := range order {
		at, _ := slices.BinarySearch(sorted, i)
		o.Shown[j] = int32(at)
	}
}

// keep stores the candidates in d.Whole if the log does not hold them and there are not too many. If the log does hold
// them, it stores rules that are too long for the log.
func (d *Decider) keep(v *View, r *Request, o *eventlog.Offered, order []int32) {
	w := &d.Whole
	w.Placement = ""
	n := r.len()
	onlyRules := KnowsCandidates(&offer.Offer{Estimates: d.estimates})
	switch {
	case r.isTrial || v.Config.LogItems == "all":
		return
	case onlyRules && d.estimates.Rules == tooManyRules:
		*w = offer.Candidates{Placement: v.Name, Born: v.Born, Decision: o.Decision, Number: d.estimates.Number,
			Rules: r.logged(v.Config, len(r.Items), maxRulesText)}
		return
	case onlyRules || d.short != nil || n*(o.Width+1) > offer.MaxCandidates:
		return
	}
	w.Placement, w.Born, w.Decision, w.Number, w.Rules = v.Name, v.Born, o.Decision, d.estimates.Number,
		r.logged(v.Config, n, maxRulesText)
	w.IDs = slices.Grow(w.IDs[:0], n)
	for i := range n {
		w.IDs = append(w.IDs, r.id(i))
	}
	w.Features = append(w.Features[:0], d.rows[:n*o.Width]...)
	w.Revenue = append(w.Revenue[:0], r.revenue...)
	w.Shown = append(w.Shown[:0], order...)
}

// said returns what the log will say about the candidates.
func (c *candidates) said(all bool) *offer.FromCatalogue {
	if c.items == nil {
		return nil
	}
	said := &offer.FromCatalogue{Version: c.version, Unknown: c.Unknown, Unavailable: c.Unavailable, Missing: c.Missing,
		NumItems: c.n, All: all}
	if !c.All && len(c.Slots) < c.n {
		said.Slots = slices.Clip(c.Slots)
		if said.Slots == nil {
			said.Slots = []int32{}
		}
	}
	if !all && (c.from > 0 || said.Size() > maxSet) { // the log does not keep rows that a request brings
		said.NumItems, said.Slots = 0, nil
	}
	return said
}

// rules are a request's rules in the log.
type rules struct {
	Size    int         `json:"max_size,omitzero"`
	Least   int         `json:"min_size,omitzero"`
	Include []string    `json:"include,omitzero"`
	Exclude []string    `json:"exclude,omitzero"`
	Hidden  []string    `json:"hidden,omitzero"` // candidates that the shopper has bought
	AtMost  []api.Limit `json:"limits,omitzero"`
	Slots   []api.Slot  `json:"slots,omitzero"`

	Capacity *float64  `json:"capacity,omitempty"`
	Spaces   []float64 `json:"spaces,omitzero"` // of the candidates, if there is a capacity
}

const (
	maxRulesText = 1 << 14 // bytes
	tooManyRules = "null"  // stands for rules that are too long
)

// logged returns the request's rules for the log in at most size bytes, or "" if there are no rules. They include the
// spaces of the first n candidates, if they fit; the catalogue holds the spaces of the others.
func (r *Request) logged(c *setup.Config, n, size int) string {
	spaces := r.spacesOf(c, n)
	if r.MaxSize == 0 && r.MinSize == 0 && len(r.Include) == 0 && len(r.Exclude)+len(r.hidden) == 0 &&
		len(r.Limits) == 0 && r.Slots == nil && r.Capacity == nil && spaces == nil {
		return ""
	}
	for _, spaces := range [][]float64{spaces, nil} {
		text, err := json.Marshal(rules{r.MaxSize, r.MinSize, r.Include, r.Exclude, r.hidden, r.Limits, r.Slots,
			r.Capacity, spaces}, json.Deterministic(true))
		if err == nil && len(text) <= size {
			return string(text)
		}
	}
	return tooManyRules
}

// rule gives a request the rules from a log. It reports whether the log holds them.
func (r *Request) rule(text string) bool {
	if text == "" {
		return true
	}
	var logged *rules
	if err := json.Unmarshal([]byte(text), &logged); err != nil || logged == nil {
		return false
	}
	r.MaxSize, r.MinSize, r.Include, r.Exclude, r.hidden, r.Limits, r.Slots, r.Capacity = logged.Size, logged.Least,
		logged.Include, logged.Exclude, logged.Hidden, logged.AtMost, logged.Slots, logged.Capacity
	if r.spaced = len(logged.Spaces) == len(r.Items); r.spaced {
		for i := range r.Items {
			r.Items[i].Space = &logged.Spaces[i]
		}
	}
	return true
}
