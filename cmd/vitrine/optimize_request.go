package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"vitrine"
	"vitrine/assortment"
)

// request is the input of vitrine optimize: items, and rules for the items that may be shown.
type request struct {
	name string // of the input, for errors

	ids              []string
	numbered         bool // whether the ids are the numbers of the rows of a table without any
	utility, revenue []float64
	group            []int32  // in groups; -1 for none
	brand            []string // "" for none
	weight           []int    // -1 if it is not given
	groups           []string
	byGroup          map[string]int32

	minSize, maxSize int
	atLeast, atMost  map[string]int
	include, exclude []string
	brandAtMost      map[string]int
	capacity         *int
	minRevenue       *float64
}

func newRequest(name string) *request {
	return &request{name: name, byGroup: map[string]int32{}, maxSize: assortment.NoLimit, atLeast: map[string]int{}, atMost: map[string]int{}, brandAtMost: map[string]int{}}
}

// refusal is an error in a request.
type refusal struct{ message string }

func (r *refusal) Error() string { return r.message }

func (r *request) refuse(format string, args ...any) error {
	return &refusal{r.name + ": " + fmt.Sprintf(format, args...)}
}

// shortened returns a value as errors show it: the beginning, on one line.
func shortened(value string) string {
	const maximum = 40
	short := value[:min(maximum, len(value))]
	if end := strings.IndexAny(short, "\r\n"); end >= 0 {
		short = short[:end]
	}
	if len(short) < len(value) {
		short += "…"
	}
	return strings.ToValidUTF8(short, "")
}

// item is an item while it is read.
type item struct {
	id               string
	utility, revenue float64
	group            int32
	brand            string
	weight           int
	complete         bool // it has a utility
}

var noItem = item{revenue: 1, group: -1, weight: -1}

const (
	maxUtility         = 700
	minPositiveRevenue = 1e-100 // that is not 0
)

// The set functions store a value, or return what is legal.

func (i *item) setID(id string) (legal string) {
	if id == "" {
		return "must not be empty"
	}
	i.id = id
	return ""
}

func (i *item) setUtility(v float64) (legal string) {
	if !(math.Abs(v) <= maxUtility) {
		return fmt.Sprintf("must be from -%d to %d", maxUtility, maxUtility)
	}
	i.utility, i.complete = v, true
	return ""
}

func (i *item) setRevenue(v float64) (legal string) {
	if v != 0 && !(v >= minPositiveRevenue && v <= vitrine.MaxRevenue) {
		return fmt.Sprintf("must be 0 or from %v to %v", minPositiveRevenue, vitrine.MaxRevenue)
	}
	i.revenue = v
	return ""
}

func (i *item) setWeight(v int) (legal string) {
	if v < 0 {
		return "must not be negative"
	}
	i.weight = v
	return ""
}

func legalFloor(v float64) string {
	if !(v >= 0 && v <= vitrine.MaxRevenue) {
		return fmt.Sprintf("must be from 0 to %v", vitrine.MaxRevenue)
	}
	return ""
}

// missing returns the key that an item lacks.
func (i *item) missing() string {
	switch {
	case i.id == "":
		return "id"
	case !i.complete:
		return "utility"
	}
	return ""
}

// intern returns the number of a group.
func (r *request) intern(group []byte) int32 {
	if len(group) == 0 {
		return -1
	}
	k, ok := r.byGroup[string(group)]
	if !ok {
		k = int32(len(r.groups))
		r.groups = append(r.groups, string(group))
		r.byGroup[r.groups[k]] = k
	}
	return k
}

func (r *request) add(i *item) {
	r.ids = append(r.ids, i.id)
	r.utility = append(r.utility, i.utility)
	r.revenue = append(r.revenue, i.revenue)
	r.group = append(r.group, i.group)
	r.brand = append(r.brand, i.brand)
	r.weight = append(r.weight, i.weight)
}

func (r *request) itemName(i int) string { return fmt.Sprintf("item %q", r.ids[i]) }

// family returns the family of assortments that obey the rules. It only warns of excluded items that do not
// exist, because a list of items out of stock may be longer than the catalogue.
func (r *request) family(warn func(string)) (vitrine.Constraint, error) {
	index := make(map[string]int, len(r.ids))
	for i, id := range r.ids {
		index[id] = i
	}
	if len(index) < len(r.ids) {
		return nil, r.duplicate()
	}
	rules := assortment.Rules{Items: len(r.ids), Min: r.minSize, Max: r.maxSize, Name: r.itemName}
	var err error
	for _, id := range r.include {
		i, ok := index[id]
		if !ok {
			return nil, r.refuse("include: there is no item %q", id)
		}
		rules.Include = append(rules.Include, i)
	}
	var unknown []string
	for _, id := range r.exclude {
		if i, ok := index[id]; ok {
			rules.Exclude = append(rules.Exclude, i)
		} else {
			unknown = append(unknown, id)
		}
	}
	switch n := len(unknown); {
	case n == 1:
		warn(fmt.Sprintf("%s: exclude: there is no item %q", r.name, unknown[0]))
	case n > 1:
		warn(fmt.Sprintf("%s: exclude: %d of its ids are unknown, the first is %q", r.name, n, unknown[0]))
	}
	if rules.Groups, err = r.boundGroups(warn); err != nil {
		return nil, err
	}
	family, err := r.build(rules, warn)
	if err != nil {
		return nil, r.refuse("%v", err)
	}
	included := vitrine.Assortment(slices.Compact(slices.Sorted(slices.Values(rules.Include))))
	if !family.Contains(included) {
		return family, r.checkSpread(assortment.Hidden(family))
	}
	return family, nil
}

func (r *request) build(rules assortment.Rules, warn func(string)) (vitrine.Constraint, error) {
	rules.Groups = append(rules.Groups, r.brandGroups(warn)...)
	family, err := assortment.Obeying(rules, nil)
	if err != nil {
		return nil, err
	}
	if r.capacity != nil {
		counts, ok := family.(*assortment.Laminar)
		if !ok {
			return nil, errors.New("capacity cannot be combined with bounds of brands and groups that cross")
		}
		if i := slices.Index(r.weight, -1); i >= 0 {
			return nil, fmt.Errorf("%s: weight is missing, which a request with a capacity needs", r.itemName(i))
		}
		if family, err = assortment.NewKnapsack(counts, r.weight, *r.capacity); err != nil {
			return nil, err
		}
	}
	if r.minRevenue != nil {
		if legal := legalFloor(*r.minRevenue); legal != "" {
			return nil, fmt.Errorf("min_revenue = %v: %s", *r.minRevenue, legal)
		}
		return assortment.Floor(family, r.revenue, *r.minRevenue)
	}
	return family, nil
}

// brandGroups returns the brands that have bounds, with their items.
func (r *request) brandGroups(warn func(string)) (list []assortment.Group) {
	for _, name := range slices.Sorted(maps.Keys(r.brandAtMost)) {
		g := assortment.Group{Name: fmt.Sprintf("brand %q", name), Max: r.brandAtMost[name]}
		for i, brand := range r.brand {
			if brand == name {
				g.Items = append(g.Items, i)
			}
		}
		if len(g.Items) == 0 {
			warn(fmt.Sprintf("%s: brand_at_most: no item is of the brand %q%s", r.name, name, r.knownBrands()))
		}
		list = append(list, g)
	}
	return list
}

func (r *request) knownBrands() string {
	brands := slices.Compact(slices.Sorted(slices.Values(r.brand)))
	if len(brands) > 0 && brands[0] == "" {
		brands = brands[1:]
	}
	if len(brands) == 0 {
		return ": items have no brands"
	}
	return ": there are " + strings.Join(brands[:min(10, len(brands))], ", ")
}

// duplicate returns an error that names the first id that two items share.
func (r *request) duplicate() error {
	seen := make(map[string]int, len(r.ids))
	for i, id := range r.ids {
		if first, ok := seen[id]; ok {
			return r.refuse("items %d and %d both have the id %q: every item needs its own", first+1, i+1, id)
		}
		seen[id] = i
	}
	return nil
}

// boundGroups returns the groups that have bounds, with the items in them and in
// the groups within them. A bound on a group without items holds, unless it demands some: a shop's rules
// stand on days without shoes.
func (r *request) boundGroups(warn func(string)) ([]assortment.Group, error) {
	var list []assortment.Group
	place := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(r.atMost)) {
		place[name] = len(list)
		list = append(list, assortment.Group{Name: fmt.Sprintf("group %q", name), Max: r.atMost[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(r.atLeast)) {
		k, ok := place[name]
		if !ok {
			k = len(list)
			place[name] = k
			list = append(list, assortment.Group{Name: fmt.Sprintf("group %q", name), Max: assortment.NoLimit})
		}
		list[k].Min = r.atLeast[name]
	}
	lengths := map[int]bool{} // of the names, so that not every prefix of a long name is looked up
	for name := range place {
		lengths[len(name)] = true
	}
	within := make([][]int, len(r.groups)) // the bounded groups that contain a group
	for g, name := range r.groups {
		for end := range len(name) + 1 {
			if !lengths[end] || end < len(name) && name[end] != '/' {
				continue
			}
			if k, ok := place[name[:end]]; ok {
				within[g] = append(within[g], k)
			}
		}
	}
	for i, g := range r.group {
		if g < 0 {
			continue
		}
		for _, k := range within[g] {
			list[k].Items = append(list[k].Items, i)
		}
	}
	for _, g := range list {
		switch {
		case len(g.Items) > 0:
		case g.Min > 0:
			return nil, r.refuse("at_least: no item is in the %s%s", g.Name, r.knownGroups())
		case g.Max != assortment.NoLimit:
			warn(fmt.Sprintf("%s: at_most: no item is in the %s%s", r.name, g.Name, r.knownGroups()))
		}
	}
	return list, nil
}

func (r *request) knownGroups() string {
	const maximum = 10
	switch n := len(r.groups); {
	case n == 0:
		return ": items have no groups"
	case n > maximum:
		return fmt.Sprintf(": there are %s and %d more", strings.Join(r.groups[:maximum], ", "), n-maximum)
	default:
		return ": there are " + strings.Join(r.groups, ", ")
	}
}

// checkSpread reports utilities that are too far from each other if more items are demanded than are
// included: see assortment.Maximize.
func (r *request) checkSpread(hidden []bool) error {
	const maximum = 400
	low, high := -1, -1
	for i, u := range r.utility {
		if hidden != nil && hidden[i] {
			continue
		}
		if low < 0 || u < r.utility[low] {
			low = i
		}
		if high < 0 || u > r.utility[high] {
			high = i
		}
	}
	if r.utility[high]-r.utility[low] > maximum {
		return r.refuse("%s has utility %v and %s %v: if rules demand a number of items, utilities must lie within %d of each other", r.itemName(low), r.utility[low], r.itemName(high), r.utility[high], maximum)
	}
	return nil
}
