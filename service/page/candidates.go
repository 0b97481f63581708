package page

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/feature"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

func (r *Request) len() int {
	switch {
	case r.stock.items == nil:
		return len(r.Items)
	case r.stock.All:
		return r.stock.from + r.stock.n
	}
	return r.stock.from + len(r.stock.Slots)
}

func (r *Request) id(i int) string {
	if i < len(r.Items) {
		return r.Items[i].ID
	}
	return r.stock.items.ID(r.stock.slot(i))
}

// slot returns a candidate's slot in the catalogue.
func (c *candidates) slot(i int) int32 {
	if c.All {
		return int32(i - c.from)
	}
	return c.Slots[i-c.from]
}

// at returns the candidate in a slot of the catalogue.
func (c *candidates) at(slot int32) (i int, ok bool) {
	if c.All {
		return c.from + int(slot), true
	}
	i, ok = slices.BinarySearch(c.Slots, slot)
	return c.from + i, ok
}

// AsksCatalogue reports whether the request draws candidates from the catalogue.
func (r *Request) AsksCatalogue() bool {
	return r.said == nil && (r.Candidates != nil || r.Filter != "" || r.Items == nil)
}

// drewOnCatalogue reports whether candidates came from the catalogue. A trial has copied them.
func (r *Request) drewOnCatalogue() bool { return r.stock.items != nil || r.said != nil }

// CatalogueSize bounds the bytes that a request's catalogue candidates take during the decision: N·d floats of rows,
// plus a constant for each candidate.
func (v *View) CatalogueSize(r *api.Request) int64 {
	if q := (&Request{Request: r}); v.Catalogue == nil || !q.AsksCatalogue() {
		return 0
	}
	n := len(r.Candidates)
	if r.Candidates == nil {
		n = v.Catalogue.Head().Items
	}
	const constant = 32 // the slot, the revenue and the utility
	return int64(n) * int64(8*v.Config.Schema().Width()+constant)
}

// unlock releases the catalogue, if it is locked.
func (c *candidates) unlock() {
	if c.unlocks != nil {
		c.unlocks()
		c.unlocks = nil
	}
}

// inPlace reports whether a list by catalogue slot can serve as a list by candidate without a copy.
func (c *candidates) inPlace() bool { return c.from == 0 && c.All && !c.early }

// relock locks the catalogue again. It returns ErrStale if one of the given candidates changed while the rows were
// copied, or left its slot since.
func (c *candidates) relock(some ...[]int32) error {
	c.items.RLock()
	c.unlocks = c.items.RUnlock
	var slots []int32
	for _, candidates := range some {
		for _, i := range candidates {
			if int(i) >= c.from {
				slots = append(slots, c.slot(int(i)))
			}
		}
	}
	if !c.items.Untouched(c.since, c.copied, slots) {
		return ErrStale
	}
	return nil
}

// lock locks a catalogue for reading once the request's filter and groups are up to date. At most two decisions among
// many items hold the lock at a time, because a change of the catalogue waits for them, and all placements wait for the
// change.
func (r *Request) lock(ctx context.Context, items *catalogue.Catalogue, c *setup.Config) (*catalogue.Filter, error) {
	for {
		filter, err := items.Filter(ctx, r.Filter)
		if err != nil {
			return nil, err
		}
		if err := r.group(ctx, items, c); err != nil {
			return nil, err
		}
		leave, err := items.Enter(ctx)
		if err != nil {
			return nil, err
		}
		items.RLock()
		if items.CatchUp(filter, slices.Collect(maps.Values(r.stock.groups))...) {
			r.stock.unlocks = func() { items.RUnlock(); leave() }
			return filter, nil
		}
		items.RUnlock()
		leave()
	}
}

// group finds the item groups that the request's rules need. An invalid limit is reported later, with the rules.
func (r *Request) group(ctx context.Context, items *catalogue.Catalogue, c *setup.Config) error {
	by := map[catalogue.GroupsBy]*catalogue.Groups{}
	if r.capacity(c) != nil {
		by[catalogue.GroupsBy{Space: true}] = nil
	}
	for i, l := range slices.Concat(c.Limits, r.Limits) {
		if l.Items == nil && (i < len(c.Limits) || setup.CheckLimit(r.Limits[:i-len(c.Limits)], l, "",
			c.Schema()) == nil) {
			by[setup.GroupsBy(l)] = nil
		}
	}
	for k := range by {
		g, err := items.Groups(ctx, k)
		if err != nil {
			return err
		}
		by[k] = g
	}
	r.stock.groups = by
	return nil
}

// choose finds the candidates from the catalogue. The caller must unlock the catalogue, even after an error.
func (d *Decider) choose(ctx context.Context, v *View, r *Request) error {
	items, err := v.Items()
	if err != nil {
		return err
	}
	if r.Candidates == nil && r.Filter == "" && items.Head().Items == 0 {
		return errNoItems
	}
	filter, err := r.lock(ctx, items, v.Config)
	if wrong, ok := errors.AsType[*catalogue.FilterError](err); ok {
		return api.Fieldf("/filter", "%s", wrong.Message)
	}
	if err != nil {
		return err
	}
	if r.Filter != "" && len(r.Items) > 0 && items.Head().Version == 0 {
		return api.Fieldf("/filter", "is a condition on the catalogue's items, not on the request's own, and the "+
			"placement never used its catalogue: put the items there, or send only those that satisfy it")
	}
	if name := filter.Private(); r.Public && name != "" {
		return api.Fieldf("/filter", "must not read %s with a public key, which everybody can read: ask from your server, "+
			"with a key that is not public", name)
	}
	if filter.AsksPast() && v.Config.ShopperHistory == nil {
		return api.Fieldf("/filter", "asks what the shopper has seen or bought, which the placement does not "+
			"remember: set its shopper_history")
	}
	s := &r.stock
	s.items, s.from, s.n, s.version, s.since = items, len(r.Items), items.Len(), items.Version(), items.Position()
	s.copied = s.since
	s.Selection = items.Select(d.selected, r.Candidates, filter, v.Shopper.Past, r.Now)
	if r.Strict && s.Missing > 0 {
		return s.missing(r.Candidates)
	}
	s.replace(r.Items)
	if !s.All {
		d.selected = s.Slots
	}
	if r.len() == 0 {
		if err := r.noCandidates(filter); err != nil {
			return err
		}
	}
	r.addRevenues(d)
	return nil
}

// noCandidates returns an error that says why the request has no candidates, or nil if the shopper's past may be the
// reason: then the page is empty.
func (r *Request) noCandidates(filter *catalogue.Filter) error {
	s := &r.stock
	switch {
	case s.Missing > 0 && (r.Filter == "" || s.Missing == len(r.Candidates)):
		return s.missing(r.Candidates)
	case filter.AsksPast():
		return nil
	case r.Filter != "":
		return api.Fieldf("/filter", "no item that is available satisfies it")
	case r.Candidates != nil:
		return api.Fieldf("/candidates", "must have at least one id")
	}
	return api.Fieldf("/items", "none is given, and no item of the catalogue is available now")
}

// replace drops the catalogue's items for which the request has items of the same id.
func (c *candidates) replace(by []api.Item) {
	for i := range by {
		slot, ok := c.items.Find(by[i].ID)
		if !ok {
			continue
		}
		if c.All {
			c.All = false
			for other := range int32(c.items.Len()) {
				c.Slots = append(c.Slots, other)
			}
		}
		if at, ok := slices.BinarySearch(c.Slots, slot); ok {
			c.Slots = slices.Delete(c.Slots, at, at+1)
		}
	}
}

var errNoItems = api.Fieldf("/items", "must have at least one item")

// missing returns an error that names the first candidate that cannot be offered.
func (c *candidates) missing(ids []string) error {
	first, what := "", "is unknown to the catalogue"
	if len(c.Unknown) > 0 {
		first = c.Unknown[0]
	} else {
		first, what = c.Unavailable[0], "is not available"
	}
	return api.Fieldf(fmt.Sprintf("/candidates/%d", slices.Index(ids, first)), "%q %s: %d of %d candidates are "+
		"unknown or not available", api.Abbreviate(first, 40), what, c.Missing, len(ids))
}

// addRevenues appends the revenues of the catalogue's candidates to the revenues of the request's items.
func (r *Request) addRevenues(d *Decider) {
	c := &r.stock
	stored := c.items.Revenues()
	switch n := r.len(); {
	case r.revenue == nil && stored == nil:
	case c.from == 0 && c.All:
		r.revenue = stored
	default:
		of := r.revenue
		revenue := slices.Grow(d.revenue[:0], n)[:n] // r.revenue may be its beginning
		for i := range revenue {
			switch {
			case i >= c.from:
				revenue[i] = c.items.Revenue(c.slot(i))
			case of == nil:
				revenue[i] = 1
			default:
				revenue[i] = of[i]
			}
		}
		d.revenue, r.revenue = revenue, revenue
	}
}

// addNames indexes the catalogue's candidates that the rules of the request and the placement name.
func (r *Request) addNames(v *View, index map[string]int) {
	config := v.Config
	add := func(ids []string) {
		for _, id := range ids {
			if slot, ok := r.stock.items.Find(id); ok {
				if i, ok := r.stock.at(slot); ok {
					index[id] = i
				}
			}
		}
	}
	add(config.Include)
	add(config.Exclude)
	add(r.Include)
	add(r.Exclude)
	add(r.Baseline)
	for _, p := range v.Shopper.Past {
		add([]string{p.ID})
	}
	for _, l := range r.Limits {
		add(l.Items)
	}
	for _, s := range r.Slots {
		add(s.Exclude)
	}
}

// conditional is a policy that can score rows x = M a + c from the shorter rows a. Given returns nil if the policy
// cannot do so.
type conditional interface {
	Given(m *mat.Dense, c []float64) vitrine.Policy
}

// minShort is the smallest number of candidates for which short rows repay the cost of the map.
const minShort = 256

// policyFor returns the policy to ask about the request's rows. If all candidates come from the catalogue and the
// policy is conditional, the stored item columns serve as rows. Otherwise it computes the rows of the request's own
// items, by a schema that knows the request's values, and fetch adds the catalogue's.
func (d *Decider) policyFor(v *View, schema *feature.Schema, r *Request,
	pi vitrine.Policy) (asked vitrine.Policy, clipped int, err error) {
	c, n, width := &r.stock, r.len(), v.Config.Schema().Width()
	d.width, d.short, d.overflow = width, nil, false
	if c.items == nil {
		d.rows = resize(d.rows, n*width)
		clipped, err = schema.Rows(d.rows, r.user, r.items)
		return pi, clipped, err
	}
	split := c.items.Split()
	if d.unseen != nil { // or their columns would count as shared
		split = split.Learn(schema)
	}
	d.user = resize(d.user, width)
	if clipped, err = split.User(d.user, r.user); err != nil {
		return nil, 0, err
	}
	if few, ok := pi.(conditional); ok && c.from == 0 && n >= minShort && split.Width() > 0 &&
		v.Config.LogItems != "all" && !d.remembers() {
		d.fromItem = split.Map(d.fromItem, d.user)
		if asked := few.Given(mat.NewDense(width, split.Width(), d.fromItem), d.user); asked != nil {
			d.short = c
			return asked, clipped, nil
		}
	}
	d.rows = resize(d.rows, n*width)
	more, err := schema.Rows(d.rows[:c.from*width], r.user, r.items)
	if c.from > 0 { // or the user's values would count twice
		clipped = 0
	}
	return pi, clipped + more, err
}

// remembers reports whether some rows differ from those of a shopper without a past.
func (d *Decider) remembers() bool {
	return len(d.view.Shopper.Past) > 0 && d.view.Config.Schema().HasHistory()
}

// fetch returns the rows of all candidates. A decision that has released the catalogue copies them in chunks. The
// catalogue may change between chunks; relock detects it.
func (d *Decider) fetch(ctx context.Context, r *Request) (*mat.Dense, error) {
	c, n := &r.stock, r.len()
	switch {
	case n == 0:
		return nil, nil
	case c.items == nil:
		return mat.NewDense(n, d.width, d.rows), nil
	}
	split := c.items.Split()
	w := d.width
	if d.short != nil {
		w = split.Width()
	}
	switch {
	case d.short != nil && c.All:
		return mat.NewDense(n, w, c.items.Rows()), nil
	case d.short != nil:
		d.rows = resize(d.rows, n*w)
	}
	if c.early {
		c.unlock()
	}
	for from := c.from; from < n; from += checkEvery {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := d.copyRows(c, split, w, from, min(from+checkEvery, n)); err != nil {
			return nil, err
		}
	}
	return mat.NewDense(n, w, d.rows), nil
}

// copyRows stores the rows of the candidates from, …, to − 1, in w columns.
func (d *Decider) copyRows(c *candidates, split *feature.Split, w, from, to int) error {
	if c.early {
		c.items.RLock()
		defer c.items.RUnlock()
		c.copied = c.items.Position()
	}
	for i := from; i < to; i++ {
		row, slot := d.rows[i*w:(i+1)*w], c.slot(i)
		switch {
		case int(slot) >= c.items.Len(): // the item is gone; relock checks whether that matters
			clear(row)
		case d.short != nil:
			copy(row, c.items.Row(slot))
		case !split.Complete(row, d.user, c.items.Row(slot)):
			return errCross
		}
	}
	return nil
}

// checkEvery is the number of rows between checks whether the caller is still waiting.
const checkEvery = 4096

// releases reports whether the decision unlocks the catalogue before it copies rows and asks the policy. Afterwards it
// only reads the ids of the items shown. After too many conflicts with changes (Holds), the decision keeps the lock
// instead.
func (d *Decider) releases(v *View, r *Request) bool {
	c := &r.stock
	ownRows := d.short == nil || !c.All
	isSmall := d.short == nil && r.len()*(d.width+1) <= offer.MaxCandidates
	return c.items != nil && ownRows && !isSmall && !r.Holds && v.Config.LogItems != "all"
}

var errCross = api.Fieldf("/shopper", "a cross with the features of an item is not finite or too large: scale the features")

func (d *Decider) row(dst []float64, i int) {
	if d.short == nil {
		copy(dst, d.rows[i*d.width:(i+1)*d.width])
		return
	}
	split := d.short.items.Split()
	w, columns := split.Width(), d.rows
	if d.short.All {
		columns = d.short.items.Rows()
	}
	if !split.Complete(dst, d.user, columns[i*w:(i+1)*w]) {
		d.overflow = true
	}
}
