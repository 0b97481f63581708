package catalogue

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

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

	by     GroupsBy
	mu     sync.Mutex
	number map[api.Value]int32
	values []api.Value // by number
	spaces []float64   // of groups by space, the same values
	counts []int       // of groups by space, the number of items
	seen   int         // of filters.touched; −1 if no item was
	texts  int64       // bytes of the values

	charged int64 // to the budget; with the lock of filters
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
	l := &c.filters
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.budget != b {
		l.dropLists()
		l.budget = b
	}
}

// DropLists forgets the lists of groups, and gives their memory back to the budget. It waits for a change that goes on.
func (c *Catalogue) DropLists() {
	c.RLock() // a change looks whether there are lists
	defer c.RUnlock()
	c.filters.mu.Lock()
	defer c.filters.mu.Unlock()
	c.filters.dropLists()
}

// ListBytes returns the memory that the lists of groups have taken from the budget.
func (c *Catalogue) ListBytes() (bytes int64) {
	l := &c.filters
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.groups {
		bytes += g.charged
	}
	return bytes
}

// charge takes the memory of a list from the budget. Other lists give way to it. If there is still too little, the list is
// not remembered.
func (l *filters) charge(g *Groups) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.groups[g.by] != g { // it has given way to another one
		return
	}
	more := g.bytes() - g.charged
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
func (l *filters) other(g *Groups) *Groups {
	for _, other := range l.groups {
		if other != g {
			return other
		}
	}
	return g
}

func (l *filters) drop(g *Groups) {
	delete(l.groups, g.by)
	l.budget.Charge(-g.charged)
	g.charged = 0
}

func (l *filters) dropLists() {
	for _, g := range l.groups {
		l.drop(g)
	}
}

// Groups returns the groups of all items. They are remembered if the budget has room, and only items that have changed
// are looked at again. The category must be one of items.
func (c *Catalogue) Groups(by GroupsBy) *Groups {
	l := &c.filters
	l.mu.Lock()
	g := l.groups[by]
	if g == nil {
		for len(l.groups) >= maxLists {
			l.drop(l.other(nil))
		}
		if l.groups == nil {
			l.groups = map[GroupsBy]*Groups{}
		}
		g = &Groups{by: by, number: map[api.Value]int32{}, seen: -1}
		l.groups[by] = g
	}
	l.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	n := c.Len()
	if g.seen == len(l.touched) && len(g.Of) == n { // the last item may have gone, which touches no slot
		return g
	}
	var f fields
	if g.seen < 0 || len(g.values) > 2*n+len(l.touched) { // most groups have no items left
		clear(g.number)
		g.values, g.spaces, g.texts, g.Of = g.values[:0], nil, 0, make([]int32, n)
		for slot := range int32(n) {
			g.Of[slot] = g.find(c, slot, &f)
		}
	} else {
		g.Of = append(slices.Clip(g.Of[:min(len(g.Of), n)]), make([]int32, max(0, n-len(g.Of)))...)
		for _, slot := range l.touched[g.seen:] {
			if int(slot) < n {
				g.Of[slot] = g.find(c, slot, &f)
			}
		}
	}
	g.seen = len(l.touched)
	if by.Space {
		g.counts = make([]int, len(g.spaces))
		for _, k := range g.Of {
			g.counts[k]++
		}
	}
	l.charge(g)
	return g
}

// find returns the number of an item's group.
func (g *Groups) find(c *Catalogue, slot int32, f *fields) int32 {
	if g.by.Space {
		f.begin(c.kept.at(slot))
	} else {
		c.read(f, slot)
	}
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
			g.spaces = append(g.spaces, f.space)
		}
	}
	return number
}
