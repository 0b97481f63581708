package assortment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"vitrine"
	"vitrine/internal/scratch"
)

// Shelf is the family of the sets within a quota whose weight is bounded,
//
//	𝒮 = {S within q : P ⊆ S, Σ_{i∈S} a_i ≤ C}
//
// with the items P and whole weights a_i ≥ 0. It has the sets of a [Knapsack] with these rules, and the numbers
// of groups and weights are the caller's, as those of a [Partition]. So it serves among millions
// of items.
//
// A call passes all items once, and solves the problem of the Knapsack among a few of them: of each weight the
// best set that is within the quota together with P. Let S be a best set, with an item i of
// weight a that is not in the best set B of this weight. The sets within a quota are, without P, those of a
// matroid, so the items of B with larger gains span i. As S is independent, they do not all lie in
// the span of S∖{i}, and one of them can take the place of i (Edmonds 1971).
type Shelf struct {
	items    int
	within   *Partition
	weights  Weights
	most     []int // by kind: how many of its items are candidates
	capacity int
	slack    bool // every set within the quota fits
	heavy    bool // an item weighs more than the capacity leaves

	hiding  sync.Once
	never   []bool
	growing sync.Once
	tree    *Knapsack // of all items
}

// Weights are those of the items of a [Shelf].
type Weights struct {
	Kind  []int32 // of each item: the number of its weight
	Of    []int   // by number
	Count []int   // how many items have each; nil to count them
}

// NewShelf returns the family of the sets of items within a quota that weigh at most the capacity. It keeps the slices. It
// returns an error if a weight is negative or if no set is in the family. [Shelf.Table] says whether a call takes long.
func NewShelf(items int, q Quota, w Weights, capacity int) (*Shelf, error) {
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
	s := &Shelf{items: items, within: within, weights: w, most: make([]int, len(w.Of)), capacity: capacity, slack: true}
	q = within.quota
	left := s.left()
	if left < 0 {
		return nil, fmt.Errorf("capacity = %d: the items included weigh more", capacity)
	}
	heaviest := numbers(len(w.Of))
	slices.SortFunc(heaviest, func(a, b int) int { return cmp.Compare(w.Of[b], w.Of[a]) })
	size, room := q.Size, capacity
	for _, k := range heaviest {
		a, n := w.Of[k], w.Count[k]
		if a < 0 {
			return nil, fmt.Errorf("weight = %d: must not be negative", a)
		}
		if taken := min(n, size); s.slack && taken > 0 {
			if s.slack = a == 0 || taken <= room/a; s.slack {
				size, room = size-taken, room-taken*a
			}
		}
		s.most[k] = min(n, q.Size-len(q.Include))
		if a > left {
			s.most[k], s.heavy = 0, s.heavy || n > 0
		} else if a > 0 && len(q.Limits) == 0 {
			s.most[k] = min(s.most[k], left/a)
		}
	}
	return s, nil
}

func (s *Shelf) weightOf(i int) int { return s.weights.Of[s.weights.Kind[i]] }

// left returns what the items of every set leave of the capacity, a negative number if they weigh more.
func (s *Shelf) left() int {
	left := s.capacity
	for _, i := range s.within.quota.Include {
		if s.weightOf(i) > left {
			return -1
		}
		left -= s.weightOf(i)
	}
	return left
}

// Table bounds the bits of the table of the dynamic program, in proportion to which a call takes time. It is 0 if every
// set within the quota fits.
func (s *Shelf) Table() float64 {
	if s.slack {
		return 0
	}
	q, candidates, unit, room, lightest := s.within.quota, 0, 0, 0, s.capacity
	for k, most := range s.most {
		if most > 0 {
			candidates += most
			unit = gcd(unit, s.weights.Of[k])
			room = min(s.capacity, plus(room, most, s.weights.Of[k]))
			lightest = min(lightest, s.weights.Of[k])
		}
	}
	rows := 1.0 // of numbers of items
	if size := q.Size - len(q.Include); lightest == 0 || s.left()/lightest > size {
		rows += float64(min(size, candidates))
	}
	for _, l := range q.Limits {
		rows *= float64(min(l.Most, q.Size)) + 1
	}
	if len(q.Limits) > 1 {
		candidates *= 1 + len(q.Limits) // and their groups
	}
	return float64(rows*float64(candidates+64)) * (float64(room/max(unit, 1)) + 64)
}

// plus returns a + n·weight, or the largest number if that is larger.
func plus(a, n, weight int) int {
	if weight > 0 && n > (math.MaxInt-a)/weight {
		return math.MaxInt
	}
	return a + n*weight
}

// Items returns N.
func (s *Shelf) Items() int { return s.items }

// Contains implements vitrine.Constraint.
func (s *Shelf) Contains(set vitrine.Assortment) bool {
	return s.within.Contains(set) && s.fits(set)
}

func (s *Shelf) fits(set []int) bool {
	left := s.capacity
	for _, i := range set {
		if left -= s.weightOf(i); left < 0 {
			return false
		}
	}
	return true
}

// hides implements selective.
func (s *Shelf) hides() []bool {
	if s.slack {
		return s.within.hides()
	}
	s.hiding.Do(func() {
		s.never = make([]bool, s.items)
		q := &s.within.quota
		for i, k := range s.weights.Kind {
			s.never[i] = !q.includes(i) && (s.most[k] == 0 || q.hides(i))
		}
	})
	return s.never
}

// Limit implements [Limiter].
func (s *Shelf) Limit(maximum int) (vitrine.Constraint, error) {
	if s.within.quota.Size <= maximum {
		return s, nil
	}
	q := s.within.quota
	q.Size = maximum
	return NewShelf(s.items, q, s.weights, s.capacity)
}

// without implements narrower.
func (s *Shelf) without(items []int) (vitrine.Constraint, error) {
	within, err := s.within.without(items)
	if err != nil {
		return nil, err
	}
	return NewShelf(s.items, within.(*Partition).quota, s.weights, s.capacity)
}

// MaxGain implements vitrine.Constraint. It panics unless there are N gains.
func (s *Shelf) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	if s.slack {
		return s.within.MaxGain(dst, gain)
	}
	if len(gain) != s.items {
		panic(fmt.Sprintf("assortment: %d gains for a family of %d items", len(gain), s.items))
	}
	w := screenings.Get().(*screening)
	defer screenings.Put(w)
	w.reset(s.weights.Kind, s.most, s.within.quota, 0)
	for i, v := range gain {
		if k := s.weights.Kind[i]; v > w.threshold[k] {
			w.add(i, v)
		}
	}
	w.items = w.candidates(w.items)
	w.relaxed.Reset(s.within.quota, 0)
	for _, i := range w.items {
		w.relaxed.Add(i, gain[i])
	}
	w.relaxed.quota = Quota{}
	include := s.within.quota.Include
	if dst = append(append(dst[:0], include...), w.relaxed.Items...); !s.fits(dst) {
		w.pack(s)
		p := programs.Get().(*program)
		dst = p.solve(append(dst[:0], include...), &w.knapsack, gain)
		programs.Put(p)
	}
	slices.Sort(dst)
	return dst
}

// screening holds, of the items added so far, the best sets within the quota by kind.
type screening struct {
	kind      []int32
	best      []Ranking
	threshold []float64 // by kind, that of best
	relaxed   Ranking   // the best set regardless of weight
	shelving
}

var screenings = sync.Pool{New: func() any { return new(screening) }}

// reset makes all sets empty. Only values above the minimum will enter.
func (w *screening) reset(kind []int32, most []int, q Quota, minimum float64) {
	w.kind, w.best, w.threshold = kind, scratch.Grow(w.best, len(most)), scratch.Grow(w.threshold, len(most))
	for k, most := range most {
		q.Size = most + len(q.Include)
		w.best[k].Reset(q, minimum)
		w.threshold[k] = minimum
		if most == 0 {
			w.threshold[k] = math.Inf(1)
		}
	}
}

// add adds an item whose value is above the threshold of its kind.
func (w *screening) add(i int, value float64) {
	k := w.kind[i]
	w.best[k].Add(i, value)
	w.threshold[k] = w.best[k].Threshold()
}

// candidates returns the items of all sets in dst's storage, and lets go of what is the caller's.
func (w *screening) candidates(dst []int) []int {
	dst = dst[:0]
	for k := range w.best {
		dst = append(dst, w.best[k].Items...)
		w.best[k].quota = Quota{}
	}
	w.kind = nil
	return dst
}

// shelving makes the groups and classes of the program of a [Knapsack] for some items.
type shelving struct {
	items    []int
	knapsack Knapsack // only the groups and the room

	units   []int
	classes []class
	sizes   []map[int32]int // by limit: how many items each group has
	paths   []inGroup
	nested  []nesting
}

// nesting is where an item is in the groups of a shelf.
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

// pack makes them. An inner group comes before the group around it.
func (p *shelving) pack(s *Shelf) {
	q := &s.within.quota
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
		unit = gcd(unit, s.weightOf(i))
		from := len(p.paths)
		for k, l := range q.Limits {
			if g := l.Group[i]; g >= 0 && p.sizes[k][g] > l.Most-q.count(&l, i, nil) { // it bounds something
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
	p.knapsack.room = s.left() / unit
	slices.SortFunc(p.nested, func(a, b nesting) int { // those in no group last, and the heaviest first
		for k := range min(len(a.path), len(b.path)) {
			if order := a.path[k].compare(b.path[k]); order != 0 {
				return order
			}
		}
		return cmp.Or(cmp.Compare(len(b.path), len(a.path)), cmp.Compare(s.weightOf(b.item), s.weightOf(a.item)), cmp.Compare(a.item, b.item))
	})
	for k := range p.nested {
		p.items[k] = p.nested[k].item
	}
	p.knapsack.groups, p.classes = p.knapsack.groups[:0], slices.Grow(p.classes[:0], len(p.items))
	needed := p.pile(s, 0, len(p.items), 0, unit, q.Size-len(q.Include), len(p.items), false)
	p.knapsack.room = min(p.knapsack.room, needed)
}

// pile makes the group of the items from one to another, which have the first groups of their paths in common, after the
// groups in it. It may have most items, and the groups around it allow around. It returns how many units a set can have of
// them, at most.
func (p *shelving) pile(s *Shelf, from, to, depth, unit, most, around int, counted bool) (needed int) {
	q := &s.within.quota
	maximum := min(around, p.fit(s.weightOf, p.items[from:to], unit))
	g := bundle{parent: -1, first: len(p.knapsack.groups), maximum: min(most, maximum), capped: most < maximum}
	counted = counted || g.capped
	for from < to && len(p.nested[from].path) > depth {
		in, start := p.nested[from].path[depth], from
		for from < to && len(p.nested[from].path) > depth && p.nested[from].path[depth] == in {
			from++
		}
		l := &q.Limits[in.limit]
		needed = plus(needed, 1, p.pile(s, start, from, depth+1, unit, l.Most-q.count(l, p.items[start], nil), g.maximum, counted))
	}
	needed = plus(needed, 1, p.add(s.weightOf, p.items[from:to], unit, g, counted))
	this := len(p.knapsack.groups) - 1
	for k := g.first; k < this; k++ {
		if inner := &p.knapsack.groups[k]; inner.parent < 0 {
			inner.parent = this
		}
	}
	return needed
}

// fit returns how many of some items fit.
func (p *shelving) fit(weightOf func(i int) int, items []int, unit int) (number int) {
	p.units = p.units[:0]
	for _, i := range items {
		p.units = append(p.units, weightOf(i)/unit)
	}
	slices.Sort(p.units)
	left := p.knapsack.room
	for _, units := range p.units {
		if left -= units; left < 0 {
			break
		}
		number++
	}
	return number
}

// add adds a group of items, sorted by weight. It returns how many units a set can have of them, at most.
func (p *shelving) add(weightOf func(i int) int, items []int, unit int, g bundle, counted bool) (needed int) {
	first := len(p.classes)
	for from, to := 0, 0; from < len(items); from = to {
		a := weightOf(items[from])
		for to++; to < len(items) && weightOf(items[to]) == a; to++ {
		}
		c := class{items: items[from:to], units: a / unit, cap: min(to-from, g.maximum), free: a == 0 && !counted && !g.capped}
		if c.units > 0 {
			c.cap = min(c.cap, p.knapsack.room/c.units)
			needed = plus(needed, c.cap, c.units)
		}
		p.classes = append(p.classes, c)
	}
	g.classes = p.classes[first:]
	p.knapsack.groups = append(p.knapsack.groups, g)
	return needed
}

// Knapsack returns the family with a tree of all items, whose table may be smaller than the bound of [Shelf.Table].
func (s *Shelf) Knapsack() *Knapsack {
	s.growing.Do(func() {
		q := &s.within.quota
		rules, weight := Rules{Items: s.items, Max: q.Size, Include: q.Include}, make([]int, s.items)
		for i := range weight {
			if weight[i] = s.weightOf(i); !q.includes(i) && (s.most[s.weights.Kind[i]] == 0 || q.hides(i)) {
				rules.Exclude = append(rules.Exclude, i)
			}
		}
		for _, l := range q.Limits {
			rules.Groups = append(rules.Groups, GroupsOf(l.Group, l.Most, func(g int32) string { return fmt.Sprintf("group %d", g) })...)
		}
		counts, err := NewLaminar(rules)
		if err != nil {
			panic(fmt.Sprintf("assortment: a shelf is no laminar family: %v", err))
		}
		if s.tree, err = newKnapsack(counts, weight, s.capacity); err != nil {
			panic(fmt.Sprintf("assortment: a shelf is no knapsack: %v", err))
		}
	})
	return s.tree
}
