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
//	𝒮 = {S within q : Σ_{i∈S} a_i ≤ C}
//
// with whole weights a_i ≥ 0. It has the sets of a [Knapsack] with these rules, and the numbers
// of groups and weights are the caller's, as those of a [Partition]. So it serves among millions
// of items.
//
// A call passes all items once, and solves the problem of the Knapsack among a few of them: the
// best set within the quota of the items of each weight. Let S be a best set, with an item i of
// weight a that is not in the best set B of this weight. The sets within a quota are those of a
// matroid, so the items of B with larger gains span i. As S is independent, they do not all lie in
// the span of S∖{i}, and one of them can take the place of i (Edmonds 1971).
type Shelf struct {
	items    int
	within   *Partition
	kind     []int32 // of each item: the number of its weight
	weight   []int   // by kind
	count    []int   // by kind: how many items it has
	most     []int   // by kind: how many of its items are candidates
	capacity int
	slack    bool // every set within the quota fits
	heavy    bool // an item weighs more than the capacity

	hiding sync.Once
	never  []bool
}

// Weights are those of the items of a [Shelf].
type Weights struct {
	Kind  []int32 // of each item: the number of its weight
	Of    []int   // by number
	Count []int   // how many items have each; nil to count them
}

// NewShelf returns the family of the sets of items within a quota that weigh at most the capacity. It keeps the slices. It
// returns an error if a weight is negative, if the quota has several limits or includes items, or if the table of the program would exceed 2³² bits.
func NewShelf(items int, q Quota, w Weights, capacity int) (*Shelf, error) {
	kind, weight := w.Kind, w.Of
	switch {
	case len(kind) != items:
		return nil, fmt.Errorf("%d numbers of weights for %d items", len(kind), items)
	case len(q.Limits) > 1 || len(q.Include) > 0:
		return nil, fmt.Errorf("a quota of %d limits and %d items included: a shelf may have one limit, and includes none", len(q.Limits), len(q.Include))
	case capacity < 0:
		return nil, fmt.Errorf("capacity = %d: must not be negative", capacity)
	}
	within, err := NewPartition(items, q)
	if err != nil {
		return nil, err
	}
	s := &Shelf{items: items, within: within, kind: kind, weight: weight, most: make([]int, len(weight)), capacity: capacity}
	if w.Count == nil {
		for _, k := range kind {
			s.most[k]++
		}
	}
	copy(s.most, w.Count)
	s.count = slices.Clone(s.most)
	heaviest := numbers(len(weight))
	slices.SortFunc(heaviest, func(a, b int) int { return cmp.Compare(weight[b], weight[a]) })
	s.slack = true
	size, left := within.quota.Size, capacity
	for _, k := range heaviest {
		a, n := weight[k], s.most[k]
		if a < 0 {
			return nil, fmt.Errorf("weight = %d: must not be negative", a)
		}
		if taken := min(n, size); s.slack && taken > 0 {
			if s.slack = a == 0 || taken <= left/a; s.slack {
				size, left = size-taken, left-taken*a
			}
		}
		s.most[k] = min(n, within.quota.Size)
		if a > capacity {
			s.most[k], s.heavy = 0, s.heavy || n > 0
		} else if a > 0 && len(within.quota.Limits) == 0 {
			s.most[k] = min(s.most[k], capacity/a)
		}
	}
	if bits := s.Table(); bits > maxTable {
		return nil, fmt.Errorf("capacity = %d: %w: its table would have %.0f MB, more than %.0f: measure weights in larger units", capacity, ErrTable, bits/8e6, maxTable/8e6)
	}
	return s, nil
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
			unit = gcd(unit, s.weight[k])
			room = min(s.capacity, plus(room, most, s.weight[k]))
			lightest = min(lightest, s.weight[k])
		}
	}
	rows := 1.0 // of numbers of items
	if lightest == 0 || s.capacity/lightest > q.Size {
		rows += float64(min(q.Size, candidates))
	}
	for _, l := range q.Limits {
		rows *= float64(min(l.Most, q.Size)) + 1
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
		if left -= s.weight[s.kind[i]]; left < 0 {
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
		for i, k := range s.kind {
			s.never[i] = s.most[k] == 0 || s.within.quota.hides(i)
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
	return NewShelf(s.items, q, Weights{s.kind, s.weight, s.count}, s.capacity)
}

// without implements narrower.
func (s *Shelf) without(items []int) (vitrine.Constraint, error) {
	within, err := s.within.without(items)
	if err != nil {
		return nil, err
	}
	return NewShelf(s.items, within.(*Partition).quota, Weights{s.kind, s.weight, s.count}, s.capacity)
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
	w.reset(s.kind, s.most, s.within.quota, 0)
	for i, v := range gain {
		if k := s.kind[i]; v > w.threshold[k] {
			w.add(i, v)
		}
	}
	w.shelving.items = w.candidates(w.shelving.items)
	return w.solve(dst, s, gain)
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

// solve returns the best set of the candidates.
func (w *screening) solve(dst vitrine.Assortment, s *Shelf, gain []float64) vitrine.Assortment {
	w.relaxed.Reset(s.within.quota, 0)
	for _, i := range w.items {
		w.relaxed.Add(i, gain[i])
	}
	w.relaxed.quota = Quota{}
	dst = dst[:0]
	if s.fits(w.relaxed.Items) {
		dst = append(dst, w.relaxed.Items...)
	} else {
		w.pack(s)
		p := programs.Get().(*program)
		dst = p.solve(dst, &w.knapsack, gain)
		programs.Put(p)
	}
	slices.Sort(dst)
	return dst
}

// shelving makes the groups and classes of the program of a [Knapsack] for some items.
type shelving struct {
	items    []int
	knapsack Knapsack // only the groups and the room

	single  []int // items whose groups bound nothing
	units   []int
	classes []class

	sizes  []map[int32]int // of a crate, by limit: how many items each group has
	paths  []inGroup
	nested []nesting
}

// pack makes them. It sorts the items.
func (p *shelving) pack(s *Shelf) {
	q := &s.within.quota
	limit := Limit{}
	if len(q.Limits) > 0 {
		limit = q.Limits[0]
	}
	groupOf := func(i int) int32 {
		if limit.Group == nil {
			return -1
		}
		return limit.Group[i]
	}
	p.knapsack.room, p.units = s.capacity, p.units[:0]
	unit := 0
	for _, i := range p.items {
		unit = gcd(unit, s.weightOf(i))
	}
	unit = max(unit, 1)
	p.knapsack.room /= unit
	slices.SortFunc(p.items, func(i, j int) int { // those in no group last, and the heaviest first
		return cmp.Or(cmp.Compare(groupOf(j), groupOf(i)), cmp.Compare(s.weightOf(j), s.weightOf(i)), cmp.Compare(i, j))
	})
	fit := p.fit(s.weightOf, p.items, unit)
	root := bundle{parent: -1, maximum: min(q.Size, fit), capped: q.Size < fit}
	p.knapsack.groups, p.single = p.knapsack.groups[:0], p.single[:0]
	p.classes = slices.Grow(p.classes[:0], len(p.items)) // which bundles keep parts of
	needed := 0
	for from, to := 0, 0; from < len(p.items); from = to {
		g := groupOf(p.items[from])
		for to++; to < len(p.items) && groupOf(p.items[to]) == g; to++ {
		}
		group := p.items[from:to]
		if g < 0 || len(group) <= limit.Most {
			p.single = append(p.single, group...)
			continue
		}
		maximum := min(root.maximum, p.fit(s.weightOf, group, unit))
		needed = plus(needed, 1, p.add(s.weightOf, group, unit, bundle{first: len(p.knapsack.groups), maximum: min(limit.Most, maximum), capped: limit.Most < maximum}, root.capped))
	}
	for k := range p.knapsack.groups {
		p.knapsack.groups[k].parent = len(p.knapsack.groups)
	}
	slices.SortFunc(p.single, func(i, j int) int { return cmp.Or(cmp.Compare(s.weightOf(j), s.weightOf(i)), cmp.Compare(i, j)) })
	needed = plus(needed, 1, p.add(s.weightOf, p.single, unit, root, false))
	p.knapsack.room = min(p.knapsack.room, needed)
}

func (s *Shelf) weightOf(i int) int { return s.weight[s.kind[i]] }

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
