package page

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"vitrine"
	"vitrine/assortment"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/feature"
	"vitrine/service/setup"
)

// Slots. A request with slots fills all of them: the k-th item shown is in the k-th slot.
//
// The policy chooses, and exploration draws, among the sets that fill them. The first slot gets the item with the
// largest choice probability that leaves the other slots fillable, the next slot the best of the remaining items, and
// so on.

// maxSteps bounds the steps of a request's searches for the best sets under limits with crossing groups: some seconds.
// It is a variable for tests.
var maxSteps = 1 << 30

// slots returns the sets that fill the slots.
func (r *Request) slots(c *setup.Config, index map[string]int) (vitrine.Constraint, error) {
	for _, other := range []struct {
		field string
		has   bool
	}{{"/max_size", r.MaxSize != 0}, {"/min_size", r.MinSize != 0}, {"/include", r.Include != nil},
		{"/limits", len(r.Limits)+len(c.Limits) > 0}, {"/capacity", r.capacity(c) != nil}} {
		if other.has {
			return nil, api.Fieldf(other.field, "does not go together with slots")
		}
	}
	if len(r.Slots) == 0 {
		return nil, api.Fieldf("/slots", "must have at least one slot")
	}
	if len(r.Slots) > c.MaxSize {
		return nil, api.Fieldf("/slots", "%d slots, the placement shows at most %d items", len(r.Slots), c.MaxSize)
	}
	family, err := r.fill(c, index, slices.Repeat([]bool{true}, len(r.Slots)))
	if err != nil {
		family, err = r.open(c, index)
	}
	if err != nil {
		return nil, api.Fieldf("/slots", "%v", err)
	}
	return family, r.noteSize(c, len(r.Slots))
}

// fill returns the sets that fill the slots. Closed slots show no hidden candidate.
func (r *Request) fill(c *setup.Config, index map[string]int, closed []bool) (*assortment.Slots, error) {
	everywhere, hidden := present(slices.Concat(r.Exclude, c.Exclude), index), present(r.hidden, index)
	slots := make([]assortment.Slot, len(r.Slots))
	for k, s := range r.Slots {
		slots[k].Exclude = append(present(s.Exclude, index), everywhere...)
		if closed[k] {
			slots[k].Exclude = append(slots[k].Exclude, hidden...)
		}
	}
	return assortment.NewSlots(r.len(), slots, len(slots))
}

// open brings the hidden candidates back, but only into slots that would otherwise stay empty. Closing one slot after
// the other leaves the fewest open: if a slot can be closed next to the closed slots before it, then also in a page with
// the fewest hidden candidates.
func (r *Request) open(c *setup.Config, index map[string]int) (*assortment.Slots, error) {
	closed := make([]bool, len(r.Slots))
	family, err := r.fill(c, index, closed)
	for k := 0; k < len(closed) && err == nil; k++ {
		closed[k] = true
		fuller, short := r.fill(c, index, closed)
		if closed[k] = short == nil; closed[k] {
			family = fuller
		}
	}
	return family, err
}

// family returns the sets that may be shown. Each of them contains the placement's pinned items, in their order as far
// as the other rules allow: a pin is left out if no page has it, or if it lowers a bound that pages reach without it.
func (r *Request) family(c *setup.Config, index map[string]int) (vitrine.Constraint, error) {
	r.unmet = nil
	if r.Slots != nil {
		return r.slots(c, index)
	}
	rules, err := r.rules(c, index)
	if err != nil {
		return nil, err
	}
	pins := r.pins(c, index)
	first := pins[:min(len(pins), max(rules.Max-len(r.included())+len(r.excluded(c)), 0))]
	family, err := r.with(rules, first, c)
	if len(pins) == 0 || err == nil && len(r.unmet) == len(r.excluded(c)) {
		return family, err
	}
	all, wrong, least := family, err, r.unmet
	family, err = r.with(rules, nil, c)
	if err == nil && wrong == nil && slices.Equal(r.unmet, least) {
		return all, nil
	}
	var kept []int
	for k := 0; k < len(pins) && err == nil; k++ {
		unmet, more := r.unmet, append(slices.Clone(kept), pins[k])
		pinned, wrong := r.with(rules, more, c)
		if wrong == nil && slices.Equal(r.unmet, unmet) {
			family, kept = pinned, more
		}
		r.unmet = unmet
	}
	return family, err
}

// pins returns the candidates that the placement pins and the request neither includes nor excludes.
func (r *Request) pins(c *setup.Config, index map[string]int) (pins []int) {
	for _, id := range c.Include {
		if i, ok := index[id]; ok && !slices.Contains(slices.Concat(r.Include, r.Exclude, r.hidden), id) {
			pins = append(pins, i)
		}
	}
	return pins
}

// rules returns the rules of the request and the placement, without the pinned candidates.
func (r *Request) rules(c *setup.Config, index map[string]int) (rules assortment.Rules, err error) {
	rules = assortment.Rules{Items: r.len(), Max: cmp.Or(r.MaxSize, c.MaxSize),
		Name: func(i int) string { return fmt.Sprintf("item %q", r.id(i)) }}
	rules.Min = min(r.least(c), rules.Max)
	if err := r.addLimits(&rules, c, index); err != nil {
		return rules, err
	}
	if rules.Include, err = find("/include", r.Include, index, r.drewOnCatalogue()); err != nil {
		return rules, err
	}
	for _, u := range r.excluded(c) {
		if r.Strict {
			return rules, api.Fieldf("/include", "the placement excludes item %q", u.On)
		}
		rules.Include = slices.DeleteFunc(rules.Include, func(i int) bool { return i == index[u.On] })
	}
	rules.Exclude = present(slices.Concat(r.Exclude, c.Exclude, r.hidden), index)
	if r.capacity(c) != nil && (rules.Min > 0 || len(rules.Groups) > 0) {
		return rules, api.Fieldf("/capacity",
			"cannot be combined with min_size or a limit's min: leave out one of them")
	}
	return rules, nil
}

// included returns the ids that the request includes, each once.
func (r *Request) included() []string { return slices.Compact(slices.Sorted(slices.Values(r.Include))) }

// excluded returns the items that the request includes and the placement excludes, as unmet bounds.
func (r *Request) excluded(c *setup.Config) (unmet []api.Unmet) {
	for _, id := range r.included() {
		if slices.Contains(c.Exclude, id) {
			unmet = append(unmet, api.Unmet{Rule: "include", On: id, Min: 1})
		}
	}
	return unmet
}

// least returns the lower bound on a page's size.
func (r *Request) least(c *setup.Config) int { return max(r.MinSize, c.MinSize) }

// hide hides the candidates that the shopper has bought, except those that the request includes.
func (r *Request) hide(v *View, index map[string]int) {
	r.hidden = nil
	if h := v.Config.ShopperHistory; h == nil || !h.HideBought {
		return
	}
	for _, p := range v.Shopper.Past {
		if _, ok := index[p.ID]; ok && p.Bought > 0 && !slices.Contains(r.Include, p.ID) {
			r.hidden = append(r.hidden, p.ID)
		}
	}
}

// with returns the sets that may be shown by the rules, with the pinned candidates.
func (r *Request) with(rules assortment.Rules, pins []int, c *setup.Config) (vitrine.Constraint, error) {
	r.unmet = r.excluded(c)
	capacity := r.capacity(c)
	free := rules.Min == 0 && len(r.Include)+len(r.Exclude)+len(r.Limits)+len(c.Limits)+len(c.Exclude)+len(
		r.hidden)+len(pins) == 0
	if free && capacity == nil {
		return assortment.AtMost(rules.Max), nil
	}
	rules.Include = slices.Concat(rules.Include, pins)
	if capacity != nil {
		return r.within(rules, *capacity, c.MaxSize, free)
	}
	if r.work == nil { // all searches of a request and its copies share the steps
		r.work = assortment.NewWork(maxSteps)
	}
	rules.Work = r.work
	family, reached, err := assortment.NewReachable(rules)
	switch {
	case r.work.Exceeded():
		return nil, errSteps(rules.Items)
	case errors.As(err, new(*assortment.CrossingError)):
		return nil, blame(rules, c, err)
	case err != nil: // because lower bounds give way
		return nil, api.Fieldf("/include", "%v", err)
	}
	if rules.Min > 0 || len(rules.Groups) > 0 {
		err = r.noteUnmet(c, reached)
	}
	return family, err
}

// blame says whether the limits that cross are the placement's own, or whether the request's limits take part.
func blame(rules assortment.Rules, c *setup.Config, err error) error {
	n := 0 // of the placement's limits without a min, which come first
	for _, l := range c.Limits {
		if l.Min == 0 {
			n++
		}
	}
	rules.Limits, rules.Groups = rules.Limits[:n], rules.Groups[:len(c.Limits)-n]
	if _, _, own := assortment.NewReachable(rules); errors.As(own, new(*assortment.CrossingError)) {
		return api.Fieldf("", "the placement's limits: %v", own)
	}
	return api.Fieldf("/limits", "%v", err)
}

// addLimits adds the limits of the placement and of the request.
func (r *Request) addLimits(rules *assortment.Rules, c *setup.Config, index map[string]int) error {
	for _, l := range c.Limits {
		r.bound(rules, r.limit(c.Schema(), l, "", index), l)
	}
	if err := r.checkLimits(c); err != nil {
		return err
	}
	for i, l := range r.Limits {
		r.bound(rules, r.limit(c.Schema(), l, fmt.Sprintf("limit %d", i), index), l)
	}
	return nil
}

// bound adds a limit on the candidates to the rules. A limit with a min consists of a single group.
func (r *Request) bound(rules *assortment.Rules, numbered assortment.Limit, l api.Limit) {
	if l.Min == 0 {
		rules.Limits = append(rules.Limits, numbered)
		return
	}
	g := assortment.Group{Min: l.Min, Max: numbered.Max}
	for i, k := range numbered.Group {
		if k >= 0 {
			g.Items = append(g.Items, i)
		}
	}
	if len(g.Items) > 0 {
		g.Name = numbered.Name(numbered.Group[g.Items[0]])
	}
	rules.Groups = append(rules.Groups, g)
}

// noteUnmet notes the lower bounds that no page reaches, and that were therefore lowered. For a strict request, the
// first of them is an error.
func (r *Request) noteUnmet(c *setup.Config, reached assortment.Rules) error {
	k := 0 // in rules.Groups
	for i, l := range slices.Concat(c.Limits, r.Limits) {
		if l.Min == 0 {
			continue
		}
		if n := reached.Groups[k].Min; n < l.Min {
			field := ""
			if i -= len(c.Limits); i >= 0 {
				field = fmt.Sprintf("/limits/%d/min", i)
			}
			if err := r.noteBound(field, api.Unmet{Rule: "limit", On: cmp.Or(l.Group, fmt.Sprint(i)), Min: l.Min,
				Reached: n}); err != nil {
				return err
			}
		}
		k++
	}
	return r.noteSize(c, reached.Min)
}

// noteSize notes the lower bound on a page's size if it is above the size that pages reach.
func (r *Request) noteSize(c *setup.Config, reached int) error {
	if least := r.least(c); reached < least {
		return r.noteBound("/min_size", api.Unmet{Rule: "min_size", Min: least, Reached: reached})
	}
	return nil
}

// noteBound notes a lower bound that no page reaches. For a strict request it is an error.
func (r *Request) noteBound(field string, u api.Unmet) error {
	r.unmet = append(r.unmet, u)
	switch {
	case !r.Strict:
		return nil
	case field == "":
		return api.Fieldf("", "the placement's limit on %q: %d: the candidates and the other rules leave at most %d",
			u.On, u.Min, u.Reached)
	}
	return api.Fieldf(field, "%d: the candidates and the other rules leave at most %d", u.Min, u.Reached)
}

// checkLimits refuses impossible limits of the request, and limits by an attribute that every item of the catalogue
// lacks.
func (r *Request) checkLimits(c *setup.Config) error {
	for i, l := range r.Limits {
		field := fmt.Sprintf("/limits/%d", i)
		if err := setup.CheckLimit(r.Limits[:i], l, field, c.Schema()); err != nil {
			return err
		}
		if items := r.stock.items; l.Attribute != "" && items != nil && !items.HasAttribute(l.Attribute) {
			return api.Fieldf(field+"/attribute", "no item of the catalogue has the attribute %q", l.Attribute)
		}
	}
	return nil
}

// byCatalogue returns the limits of a request and its placement that need facts known only to the catalogue.
func (r *Request) byCatalogue(c *setup.Config) []api.Limit {
	return slices.DeleteFunc(slices.Concat(c.Limits, r.Limits), func(l api.Limit) bool {
		return l.Attribute == "" && l.Group == ""
	})
}

// keepGroups keeps the groups of the candidates for when the catalogue is no longer locked.
func (r *Request) keepGroups(c *setup.Config) {
	r.groups = map[catalogue.GroupsBy]assortment.Limit{}
	for _, l := range r.byCatalogue(c) {
		g := r.limit(c.Schema(), api.Limit{Attribute: l.Attribute, Group: l.Group}, "", nil)
		names := map[int32]string{}
		for _, number := range g.Group {
			if number >= 0 {
				names[number] = g.Name(number)
			}
		}
		r.groups[setup.GroupsBy(l)] = assortment.Limit{Group: slices.Clone(g.Group),
			Name: func(number int32) string { return names[number] }}
	}
}

// limit returns a limit on the candidates, which is called name if it names its items.
func (r *Request) limit(s *feature.Schema, l api.Limit, name string, index map[string]int) assortment.Limit {
	n := r.len()
	g := assortment.Limit{Max: assortment.NoLimit}
	if l.Max != nil {
		g.Max = *l.Max
	}
	if l.Items != nil {
		g.Name = func(int32) string { return name }
		g.Group = slices.Repeat([]int32{-1}, n)
		for _, i := range present(l.Items, index) {
			g.Group[i] = 0
		}
		return g
	}
	if kept, ok := r.groups[setup.GroupsBy(l)]; ok {
		kept.Max = g.Max
		return kept
	}
	var stored *catalogue.Groups
	if r.stock.items != nil {
		stored = r.stock.groups[setup.GroupsBy(l)]
		g.Name = stored.Name
		if r.stock.inPlace() {
			g.Group = stored.Of
			return g
		}
	}
	g.Group = make([]int32, n)
	values := map[string]int32{} // values that only the request's items use
	for i := range r.items {
		if l.Feature == "" {
			g.Group[i] = -1
			continue
		}
		g.Group[i] = r.groupOf(s, &r.items[i], l.Feature, stored, values)
	}
	for i := len(r.items); i < n; i++ {
		g.Group[i] = stored.Of[r.stock.slot(i)]
	}
	known := 0
	if stored != nil {
		known = stored.Len()
	}
	names := make([]string, len(values))
	for value, k := range values {
		names[int(k)-known] = fmt.Sprintf("%s %q", l.Feature, value)
	}
	g.Name = func(group int32) string {
		if int(group) < known {
			return stored.Name(group)
		}
		return names[int(group)-known]
	}
	return g
}

// groupOf returns the group number of an item's category: the catalogue's number if a catalogue item shares the value,
// otherwise a number after the catalogue's.
func (r *Request) groupOf(s *feature.Schema, item *api.Item, name string, stored *catalogue.Groups,
	values map[string]int32) int32 {
	value, known := s.Category(item, name), 0
	if stored != nil {
		if k, ok := stored.Number(value); ok {
			return k
		}
		known = stored.Len()
	}
	k, ok := values[value]
	if !ok {
		k = int32(known + len(values))
		values[value] = k
	}
	return k
}

// present returns the positions of those ids that are in the request. So a rule that hides an item also works on a day
// without that item.
func present(ids []string, index map[string]int) []int {
	at := []int{}
	for _, id := range ids {
		if i, ok := index[id]; ok {
			at = append(at, i)
		}
	}
	return at
}

// find returns the positions of the ids, or an error if one is not a candidate.
func find(field string, ids []string, index map[string]int, hasCatalogue bool) ([]int, error) {
	at := make([]int, len(ids))
	for k, id := range ids {
		i, ok := index[id]
		if !ok {
			text := "%q is not among the items"
			if hasCatalogue {
				text = "%q is not a candidate: it is not in the catalogue, may not be shown now, or is left out by the " +
					"request's candidates or filter. Name only items that can be shown"
			}
			return nil, api.Fieldf(fmt.Sprintf("%s/%d", field, k), text, id)
		}
		at[k] = i
	}
	return at, nil
}
