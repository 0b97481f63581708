package catalogue

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"vitrine/service/api"
	"vitrine/service/budget"
)

// GroupsBy says what groups items: the value of a category, that of an attribute, whether they are in a group, or the space
// that they take.
type GroupsBy struct {
	Category, Attribute, Group string // one of them
	Space                      bool   // if none is given
}

// Groups are disjoint groups of the items.
type Groups struct {
	Of []int32 // the number of each item's group, by slot; −1 for none. It must not be changed

	sweep
	by     GroupsBy
	fields fields
	number map[api.Value]int32
	values []api.Value // by number
	spaces []float64   // of groups by space, the same values
	counts []int       // of groups by space, the number of items
	texts  int64       // bytes of the values

	charged int64 // to the budget; with the lock of lists
}

// Number returns the number of the group with a value; ok is false if no item has been in it.
func (g *Groups) Number(value string) (number int32, ok bool) {
	number, ok = g.number[api.Text("", value)]
	return number, ok
}

// Len returns one more than the largest number.
func (g *Groups) Len() int { return len(g.values) }

// Spaces returns the spaces of groups by space, by number, and how many items have each. They must not be changed.
func (g *Groups) Spaces() (of []float64, count []int) { return g.spaces, g.counts }

// Name returns what errors call a group.
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
	return g.by.Category + g.by.Attribute + " " + value
}

// HasAttribute reports whether any item has an attribute.
func (c *Catalogue) HasAttribute(name string) bool { return c.attributes[name] > 0 }

const (
	maxLists   = 8   // of groups
	valueBytes = 200 // that a value takes beside its text
)

// bytes returns the memory of a list.
func (g *Groups) bytes() int64 { return 4*int64(len(g.Of)) + valueBytes*int64(len(g.values)) + g.texts }

// ChargeTo has the lists of groups take their memory from a budget. Those that took it from another one are dropped.
func (c *Catalogue) ChargeTo(b *budget.Budget) {
	l := &c.lists
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.budget != b {
		l.dropLists()
		l.budget = b
	}
}

// DropLists forgets the lists of groups, and gives their memory back to the budget.
func (c *Catalogue) DropLists() {
	c.lists.mu.Lock()
	defer c.lists.mu.Unlock()
	c.lists.dropLists()
}

// ListBytes returns the memory that the lists of groups have taken from the budget.
func (c *Catalogue) ListBytes() (bytes int64) {
	l := &c.lists
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.groups {
		bytes += g.charged
	}
	return bytes
}

// charge takes the memory of a list from the budget. Other lists give way to it. If there is still too little, the list is
// not remembered.
func (l *lists) charge(g *Groups, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.groups[g.by] != g { // it has given way to another one
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

// other returns a list that is not g, or g if there is none.
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

// Groups returns the groups of all items. They are remembered if the budget has room. It locks the catalogue only for short
// slices, and stops when ctx ends: errors are *[BusyError] and that of ctx. The category must be one of items.
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

// isWorn reports whether most groups of n items have no item left.
func (g *Groups) isWorn(n int) bool { return len(g.values) > 2*n+sliceItems }

// move puts an item into another group.
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

// find returns the number of an item's group.
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
		value.Text = string(append([]byte(nil), value.Text...)) // not a part of a page
		g.number[value], g.values = number, append(g.values, value)
		g.texts += int64(len(value.Text))
		if g.by.Space {
			g.spaces, g.counts = append(g.spaces, f.space), append(g.counts, 0)
		}
	}
	return number
}
