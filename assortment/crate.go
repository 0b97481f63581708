package assortment

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"vitrine"
	"vitrine/internal/scratch"
)

// Crate is a [Shelf] for a quota of several limits, or one that includes items:
//
//	𝒮 = {S within q : P ⊆ S, Σ_{i∈S} a_i ≤ C}
//
// with the items P. It has the sets of a [Knapsack] with these rules, and needs no tree of all items.
//
// A call passes all items twice, and solves the Knapsack of a few of them: P, and of each weight the best set that is within
// the quota together with P. These sets are those of a matroid, the contraction by P, so the argument of Shelf holds.
type Crate struct {
	items    int
	within   *Partition
	weights  Weights
	most     []int // by kind: how many of its items are candidates
	capacity int
	slack    bool // every set within the quota fits

	hiding  sync.Once
	never   []bool
	drawing sync.Once
	draws   *Knapsack // of all items
}

// NewCrate returns the family of the sets of items within a quota that weigh at most the capacity. It keeps the slices. It
// returns an error if a weight is negative or if no set is in the family.
func NewCrate(items int, q Quota, w Weights, capacity int) (*Crate, error) {
	switch {
	case len(w.Kind) != items:
		return nil, fmt.Errorf("%d numbers of weights for %d items", len(w.Kind), items)
	case capacity < 0:
		return nil, fmt.Errorf("capacity = %d: must not be negative", capacity)
	}
	within, err := NewPartition(items, q)
	if err != nil {
		return nil, err
	}
	if w.Count == nil {
		w.Count = make([]int, len(w.Of))
		for _, k := range w.Kind {
			w.Count[k]++
		}
	}
	c := &Crate{items: items, within: within, weights: w, most: make([]int, len(w.Of)), capacity: capacity, slack: true}
	left := capacity
	for _, i := range within.quota.Include {
		if left -= min(c.weightOf(i), capacity+1); left < 0 {
			return nil, fmt.Errorf("capacity = %d: the items included weigh more", capacity)
		}
	}
	heaviest := numbers(len(w.Of))
	slices.SortFunc(heaviest, func(a, b int) int { return cmp.Compare(w.Of[b], w.Of[a]) })
	size, room := within.quota.Size, capacity
	for _, k := range heaviest {
		a, n := w.Of[k], w.Count[k]
		if a < 0 {
			return nil, fmt.Errorf("weight = %d: must not be negative", a)
		}
		if taken := min(n, size); c.slack && taken > 0 {
			if c.slack = a == 0 || taken <= room/a; c.slack {
				size, room = size-taken, room-taken*a
			}
		}
		if a <= left {
			c.most[k] = min(n, within.quota.Size-len(within.quota.Include))
		}
	}
	return c, nil
}

func (c *Crate) weightOf(i int) int { return c.weights.Of[c.weights.Kind[i]] }

// Table bounds the bits of the table of the dynamic program, in proportion to which a call takes time. It is 0 if every
// set within the quota fits.
func (c *Crate) Table() float64 {
	if c.slack {
		return 0
	}
	q, unit, room := c.within.quota, 0, 0
	candidates := 0.0
	for k, most := range c.most {
		if most > 0 {
			candidates += float64(most * (1 + len(q.Limits))) // and its groups
			unit = gcd(unit, c.weights.Of[k])
			room = min(c.capacity, plus(room, most, c.weights.Of[k]))
		}
	}
	rows := float64(q.Size + 1) // of numbers of items
	for _, l := range q.Limits {
		rows *= float64(min(l.Most, q.Size)) + 1
	}
	return float64(rows*(candidates+64)) * (float64(room/max(unit, 1)) + 64)
}

// Items returns N.
func (c *Crate) Items() int { return c.items }

// Contains implements vitrine.Constraint.
func (c *Crate) Contains(set vitrine.Assortment) bool { return c.within.Contains(set) && c.fits(set) }

func (c *Crate) fits(set []int) bool {
	left := c.capacity
	for _, i := range set {
		if left -= c.weightOf(i); left < 0 {
			return false
		}
	}
	return true
}

// hides implements selective.
func (c *Crate) hides() []bool {
	if c.slack {
		return c.within.hides()
	}
	c.hiding.Do(func() {
		c.never = make([]bool, c.items)
		q := &c.within.quota
		for i, k := range c.weights.Kind {
			c.never[i] = !q.includes(i) && (c.most[k] == 0 || q.hides(i))
		}
	})
	return c.never
}

// Limit implements [Limiter].
func (c *Crate) Limit(maximum int) (vitrine.Constraint, error) {
	if c.within.quota.Size <= maximum {
		return c, nil
	}
	q := c.within.quota
	q.Size = maximum
	return NewCrate(c.items, q, c.weights, c.capacity)
}

// without implements narrower.
func (c *Crate) without(items []int) (vitrine.Constraint, error) {
	within, err := c.within.without(items)
	if err != nil {
		return nil, err
	}
	return NewCrate(c.items, within.(*Partition).quota, c.weights, c.capacity)
}

// MaxGain implements vitrine.Constraint. It panics unless there are N gains.
func (c *Crate) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	if dst = c.within.MaxGain(dst, gain); c.slack || c.fits(dst) {
		return dst
	}
	w := screenings.Get().(*screening)
	defer screenings.Put(w)
	w.reset(c.weights.Kind, c.most, c.within.quota, 0)
	for i, v := range gain {
		if k := c.weights.Kind[i]; v > w.threshold[k] {
			w.add(i, v)
		}
	}
	w.items = w.candidates(w.items)
	w.packNested(c)
	p := programs.Get().(*program)
	defer programs.Put(p)
	dst = p.solve(append(dst[:0], c.within.quota.Include...), &w.knapsack, gain)
	slices.Sort(dst)
	return dst
}

// nesting is where an item is in the groups of a crate.
type nesting struct {
	item int
	path []inGroup // from the outermost group to the innermost
}

// inGroup names a group: the number of its limit, and its number there.
type inGroup struct {
	limit int
	group int32
}

func (g inGroup) compare(other inGroup) int {
	return cmp.Or(cmp.Compare(g.limit, other.limit), cmp.Compare(g.group, other.group))
}

// packNested is pack for the items of a crate. An inner group comes before the group around it.
func (p *shelving) packNested(c *Crate) {
	q := &c.within.quota
	p.sizes, p.paths, p.nested = scratch.Grow(p.sizes, len(q.Limits)), p.paths[:0], p.nested[:0]
	for k, l := range q.Limits {
		if p.sizes[k] == nil {
			p.sizes[k] = map[int32]int{}
		}
		clear(p.sizes[k])
		for _, i := range p.items {
			p.sizes[k][l.Group[i]]++
		}
	}
	p.paths = slices.Grow(p.paths, len(p.items)*len(q.Limits)) // which nested keeps parts of
	unit := 0
	for _, i := range p.items {
		unit = gcd(unit, c.weightOf(i))
		from := len(p.paths)
		for k, l := range q.Limits {
			if l.Group[i] >= 0 {
				p.paths = append(p.paths, inGroup{k, l.Group[i]})
			}
		}
		path := p.paths[from:]
		slices.SortFunc(path, func(a, b inGroup) int { // of two groups with the same item the larger one has the other
			return cmp.Or(cmp.Compare(p.sizes[b.limit][b.group], p.sizes[a.limit][a.group]), a.compare(b))
		})
		p.nested = append(p.nested, nesting{i, path})
	}
	unit = max(unit, 1)
	room := c.capacity
	for _, i := range q.Include {
		room -= c.weightOf(i)
	}
	p.knapsack.room = room / unit
	slices.SortFunc(p.nested, func(a, b nesting) int { // those in no group last, and the heaviest first
		for k := range min(len(a.path), len(b.path)) {
			if order := a.path[k].compare(b.path[k]); order != 0 {
				return order
			}
		}
		return cmp.Or(cmp.Compare(len(b.path), len(a.path)), cmp.Compare(c.weightOf(b.item), c.weightOf(a.item)), cmp.Compare(a.item, b.item))
	})
	for k := range p.nested {
		p.items[k] = p.nested[k].item
	}
	p.knapsack.groups, p.classes = p.knapsack.groups[:0], slices.Grow(p.classes[:0], len(p.items))
	needed := p.pile(c, 0, len(p.items), 0, unit, q.Size-len(q.Include), len(p.items), false)
	p.knapsack.room = min(p.knapsack.room, needed)
}

// pile makes the group of the items from one to another, which have the first groups of their paths in common, after the
// groups in it. It may have most items, and the groups around it allow around. It returns how many units a set can have of
// them, at most.
func (p *shelving) pile(c *Crate, from, to, depth, unit, most, around int, counted bool) (needed int) {
	q := &c.within.quota
	maximum := min(around, p.fit(c.weightOf, p.items[from:to], unit))
	g := bundle{parent: -1, first: len(p.knapsack.groups), maximum: min(most, maximum), capped: most < maximum}
	counted = counted || g.capped
	for from < to && len(p.nested[from].path) > depth {
		in, start := p.nested[from].path[depth], from
		for from < to && len(p.nested[from].path) > depth && p.nested[from].path[depth] == in {
			from++
		}
		l := &q.Limits[in.limit]
		needed = plus(needed, 1, p.pile(c, start, from, depth+1, unit, l.Most-q.count(l, p.items[start], nil), g.maximum, counted))
	}
	needed = plus(needed, 1, p.add(c.weightOf, p.items[from:to], unit, g, counted))
	this := len(p.knapsack.groups) - 1
	for k := g.first; k < this; k++ {
		if inner := &p.knapsack.groups[k]; inner.parent < 0 {
			inner.parent = this
		}
	}
	return needed
}

// of returns the knapsack of some items, among which are those included.
func (c *Crate) of(items []int) *Knapsack {
	q := &c.within.quota
	rules, weight := Rules{Items: len(items), Max: q.Size}, make([]int, len(items))
	for j, i := range items {
		switch weight[j] = c.weightOf(i); {
		case q.includes(i):
			rules.Include = append(rules.Include, j)
		case c.most[c.weights.Kind[i]] == 0 || q.hides(i):
			rules.Exclude = append(rules.Exclude, j)
		}
	}
	for _, l := range q.Limits {
		number := make([]int32, len(items))
		for j, i := range items {
			number[j] = l.Group[i]
		}
		rules.Groups = append(rules.Groups, GroupsOf(number, l.Most, func(g int32) string { return fmt.Sprintf("group %d", g) })...)
	}
	counts, err := NewLaminar(rules)
	if err != nil {
		panic(fmt.Sprintf("assortment: a crate is no laminar family: %v", err))
	}
	s, err := newKnapsack(counts, weight, c.capacity)
	if err != nil {
		panic(fmt.Sprintf("assortment: a crate is no knapsack: %v", err))
	}
	return s
}

// Knapsack returns the family with a tree of all items, whose table may be smaller than the bound of [Crate.Table].
func (c *Crate) Knapsack() *Knapsack {
	c.drawing.Do(func() { c.draws = c.of(numbers(c.items)) })
	return c.draws
}
