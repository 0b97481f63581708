package catalogue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"vitrine/service/api"
	"vitrine/service/budget"
)

// GroupsBy selects how items are grouped: by the value of a category or an attribute, by membership in a group, or by
// space.
type GroupsBy struct {
	Category, Attribute, Group string // at most one is set
	Space                      bool   // if all names are empty
}

type Groups struct {
	Of []int32 // each item's group number by slot, −1 without a group; callers must not change it

	sweep
	by     GroupsBy
	fields fields
	number map[api.Value]int32
	values []api.Value // by group number
	spaces []float64   // the same values as numbers, if grouped by space
	counts []int       // items per group, if grouped by space
	texts  int64       // total bytes of the values

	charged int64 // memory charged to the budget; guarded by the lists' lock
}

// Number returns the number of the group with a value; ok is false if no item was ever in it.
func (g *Groups) Number(value string) (number int32, ok bool) {
	number, ok = g.number[api.Text("", value)]
	return number, ok
}

// Len returns one more than the largest number.
func (g *Groups) Len() int { return len(g.values) }

// Spaces returns the space of each group and its number of items, if grouped by space. Callers must not change them.
func (g *Groups) Spaces() (of []float64, count []int) { return g.spaces, g.counts }

// Name returns a group's name for errors.
func (g *Groups) Name(number int32) string {
	value := ""
	switch v := g.values[number]; v.Kind {
	case api.IsText:
		value = strconv.Quote(v.Text)
	case api.IsNumber:
		value = fmt.Sprint(v.Number)
	default:
		value = fmt.Sprint(v.Kind == isTrue)
	}
	return cmp.Or(g.by.Category, g.by.Attribute, "group") + " " + value
}

// HasAttribute reports whether any item carries an attribute.
func (c *Catalogue) HasAttribute(name string) bool { return c.attributes[name] > 0 }

const (
	maxLists   = 8   // lists of groups
	valueBytes = 200 // a value's memory beyond its text
)

// bytes returns the list's memory.
func (g *Groups) bytes() int64 { return 4*int64(len(g.Of)) + valueBytes*int64(len(g.values)) + g.texts }

// ChargeTo charges the lists of groups to a budget, and drops lists charged to another one.
func (c *Catalogue) ChargeTo(b *budget.Budget) {
	l := &c.lists
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.budget != b {
		l.dropLists()
		l.budget = b
	}
}

// DropLists forgets the lists of groups and returns their memory to the budget.
func (c *Catalogue) DropLists() {
	c.lists.mu.Lock()
	defer c.lists.mu.Unlock()
	c.lists.dropLists()
}

// ListBytes returns the memory charged to the budget for lists of groups.
func (c *Catalogue) ListBytes() (bytes int64) {
	l := &c.lists
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.groups {
		bytes += g.charged
	}
	return bytes
}

// charge takes a list's memory from the budget, dropping other lists if necessary. If there is still too little, the
// list is not remembered.
func (l *lists) charge(g *Groups, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.groups[g.by] != g { // dropped for another list
		return
	}
	more := bytes - g.charged
	for more > 0 && l.budget.Hold(more) != nil {
		other := l.other(g)
		l.drop(other)
		if other == g {
			return
		}
	}
	if more < 0 {
		l.budget.Charge(more)
	}
	g.charged += more
}

// other returns any list but g, or g if it is the only one.
func (l *lists) other(g *Groups) *Groups {
	for _, other := range l.groups {
		if other != g {
			return other
		}
	}
	return g
}

func (l *lists) drop(g *Groups) {
	delete(l.groups, g.by)
	l.budget.Charge(-g.charged)
	g.charged = 0
}

func (l *lists) dropLists() {
	for _, g := range l.groups {
		l.drop(g)
	}
}

// Groups returns the groups of all items, and remembers them if the budget allows. It holds the catalogue's lock only
// for short slices, and stops when ctx ends. Errors are *[BusyError] and ctx's error. The category must be a feature of
// items.
func (c *Catalogue) Groups(ctx context.Context, by GroupsBy) (*Groups, error) {
	l := &c.lists
	l.mu.Lock()
	g := l.groups[by]
	if g == nil {
		for len(l.groups) >= maxLists {
			l.drop(l.other(nil))
		}
		if l.groups == nil {
			l.groups = map[GroupsBy]*Groups{}
		}
		g = &Groups{by: by}
		l.groups[by] = g
	}
	l.mu.Unlock()
	if err := c.complete(ctx, g); err != nil {
		return nil, err
	}
	g.mu.Lock()
	bytes := g.bytes()
	g.mu.Unlock()
	l.charge(g, bytes)
	return g, nil
}

func (g *Groups) begin(n int) {
	g.number, g.values, g.spaces, g.counts, g.texts, g.Of = map[api.Value]int32{}, nil, nil, nil, 0, make([]int32, 0, n)
}

func (g *Groups) fit(n int) {
	for slot := n; slot < len(g.Of); slot++ {
		g.move(slot, -1)
	}
	switch have := len(g.Of); {
	case n < have:
		g.Of = slices.Clip(g.Of[:n])
	case n > have:
		g.Of = append(g.Of, slices.Repeat([]int32{-1}, n-have)...)
	}
}

// isWorn reports whether most of the groups are empty; n is the number of items.
func (g *Groups) isWorn(n int) bool { return len(g.values) > 2*n+sliceItems }

func (g *Groups) move(slot int, to int32) {
	from := g.Of[slot]
	if g.Of[slot] = to; !g.by.Space {
		return
	}
	if from >= 0 {
		g.counts[from]--
	}
	if to >= 0 {
		g.counts[to]++
	}
}

func (g *Groups) cost() int { return 1 }

func (g *Groups) look(c *Catalogue, slot int32) { g.move(int(slot), g.find(c, slot)) }

func (g *Groups) find(c *Catalogue, slot int32) int32 {
	f := &g.fields
	to := untilRest
	switch {
	case g.by.Space:
		to = untilID
	case g.by.Category != "":
		to = untilFeatures
	}
	c.readTo(f, slot, to)
	var value api.Value
	switch {
	case g.by.Space:
		value = api.Number("", f.space)
	case g.by.Category != "":
		value = api.Text("", c.Split().Schema().Category(&api.Item{Features: f.values}, g.by.Category))
	case g.by.Attribute != "":
		at := slices.IndexFunc(f.attributes, func(a api.Value) bool { return a.Name == g.by.Attribute })
		if at < 0 {
			return -1
		}
		value = f.attributes[at]
		value.Name = ""
	case slices.Contains(f.groups, g.by.Group):
		value = api.Text("", g.by.Group)
	default:
		return -1
	}
	number, ok := g.number[value]
	if !ok {
		number = int32(len(g.values))
		value.Text = string(append([]byte(nil), value.Text...)) // a copy, because the text may be part of a page
		g.number[value], g.values = number, append(g.values, value)
		g.texts += int64(len(value.Text))
		if g.by.Space {
			g.spaces, g.counts = append(g.spaces, f.space), append(g.counts, 0)
		}
	}
	return number
}
