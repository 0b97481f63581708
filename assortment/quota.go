package assortment

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"vitrine"
	"vitrine/internal/scratch"
)

// Quota is the family of the sets that obey some [Rules],
//
//	𝒮 = {S : P ⊆ S, X ∩ S = ∅, Min ≤ |S| ≤ Max, Min_G ≤ |S ∩ G| ≤ Max_G for every group G, Σ_{i∈S} a_i ≤ C}
//
// with pinned items P, excluded items X, and optional weights a ≥ 0 with a capacity C. Groups may be nested, and may
// cross if they form two hierarchies, such as brands and categories. Every combination that [NewQuota] accepts is
// solved exactly. It picks the algorithm:
//
//   - If rules require only single items and groups are numbered, a [Ranking] passes over the gains once. It needs no
//     memory per item, so it works with millions of items.
//   - Groups in one hierarchy, without a capacity, take a greedy choice from the smallest to the largest group: see
//     tree.
//   - Groups that cross take a flow: see flow.
//   - A capacity takes a dynamic program, unless the best set regardless of weight fits: see program.
//
// The family includes the empty set unless a rule requires items.
type Quota struct {
	rules Rules
	size  int // size of the largest sets

	// Used if a ranking applies:
	plain   bool
	most    []int // by kind of weight: number of candidates; nil if every set fits
	hiding  sync.Once
	growing sync.Once
	whole   *Quota // the same family as a tree

	// Used otherwise:
	sides   []*hierarchy
	states  []state
	demands [][2]int // the groups that require items: hierarchy and node
	tree    *tree
	flow    *crossing
	program *program // nil if every set fits

	never []bool // N: whether no set contains the item; nil if there are no such items
}

// NewQuota returns the family of the sets that obey the rules. It keeps the numbers of r.Limits and r.Weights, and no
// other slice of r. It returns an error if no set obeys the rules, if they combine groups that cross with a capacity,
// if groups cross in three ways, which is a [*CrossingError], or if the program for a capacity would be too large,
// which is an [ErrTable].
func NewQuota(r Rules) (*Quota, error) {
	r.Include, r.Exclude, r.Groups = slices.Compact(sorted(r.Include)), sorted(r.Exclude), slices.Clone(r.Groups)
	for k := range r.Groups {
		r.Groups[k].Items = slices.Clone(r.Groups[k].Items)
		if r.Groups[k].Name == "" {
			r.Groups[k].Name = fmt.Sprintf("group %d", k+1)
		}
	}
	if q, ok := newPlain(r); ok {
		return q, nil
	}
	return grow(r, false)
}

// NewReachable returns the family of rules whose lower bounds may be out of reach: first the groups' bounds, in their
// order, then the bound on all items. If no set reaches a bound, given the rules and the earlier bounds, the bound is
// lowered to the largest number that some set reaches. reached returns the rules with the lowered bounds. Other errors
// are those of [NewQuota].
func NewReachable(r Rules) (q *Quota, reached Rules, err error) {
	if q, err = NewQuota(r); err == nil || r.Min == 0 && !slices.ContainsFunc(r.Groups,
		func(g Group) bool { return g.Min > 0 }) {
		return q, r, err
	}
	want := append(slices.Clone(r.Groups), Group{Items: numbers(r.Items), Min: r.Min})
	r.Min, r.Groups = 0, slices.Clone(r.Groups)
	bounds := make([]*int, len(want))
	for k := range r.Groups {
		bounds[k], r.Groups[k].Min = &r.Groups[k].Min, 0
	}
	bounds[len(r.Groups)] = &r.Min
	if q, err = NewQuota(r); err != nil {
		return nil, r, err
	}
	gain := make([]float64, r.Items)
	for k, g := range want {
		if g.Min == 0 {
			continue
		}
		*bounds[k] = g.Min
		if next, err := NewQuota(r); err == nil {
			q = next
			continue
		}
		clear(gain)
		for _, i := range g.Items {
			gain[i] = 1
		}
		most := 0
		for _, i := range q.MaxGain(nil, gain) {
			most += int(gain[i])
		}
		*bounds[k] = min(most, g.Min)
		if q, err = NewQuota(r); err != nil {
			return nil, r, err
		}
	}
	return q, r, nil
}

func sorted(items []int) []int {
	items = slices.Clone(items)
	slices.Sort(items)
	return items
}

// newPlain returns the family if a ranking can search it. ok is also false for rules that no set obeys, which other
// code reports.
func newPlain(r Rules) (q *Quota, ok bool) {
	if r.Items < 0 || len(r.Groups) > 0 || r.Min != 0 || r.Max < len(r.Include) {
		return nil, false
	}
	for k, l := range r.Limits {
		if len(l.Group) != r.Items || l.Max < 0 ||
			slices.ContainsFunc(r.Limits[:k], func(other Limit) bool { return cross(l.Group, other.Group) }) {
			return nil, false
		}
	}
	for _, list := range [][]int{r.Include, r.Exclude} {
		if n := len(list); n > 0 && (list[0] < 0 || list[n-1] >= r.Items) {
			return nil, false
		}
	}
	for _, i := range r.Include {
		if among(r.Exclude, i) || slices.ContainsFunc(r.Limits, func(l Limit) bool {
			return l.Group[i] >= 0 && r.count(&l, i, nil) > l.Max
		}) {
			return nil, false
		}
	}
	q = &Quota{rules: r, plain: true}
	q.size = q.rank()
	q.rules.Max = q.size
	return q, r.Weights == nil || q.weighPlain()
}

// cross reports whether two groups share items without one containing the other.
func cross(a, b []int32) bool {
	partners := [2][]int32{} // by group: the group of the other limit that contains all of its items
	const unknown, several = math.MinInt32, math.MinInt32 + 1
	note := func(k int, group, other int32) {
		p := partners[k]
		for int(group) >= len(p) {
			p = append(p, unknown)
		}
		partners[k] = p
		switch other = max(other, -1); {
		case p[group] == unknown:
			p[group] = other
		case p[group] != other:
			p[group] = several
		}
	}
	for i := range a {
		if a[i] >= 0 {
			note(0, a[i], b[i])
		}
		if b[i] >= 0 {
			note(1, b[i], a[i])
		}
	}
	for i := range a {
		if a[i] >= 0 && b[i] >= 0 && partners[0][a[i]] != b[i] && partners[1][b[i]] != a[i] {
			return true
		}
	}
	return false
}

// rank returns the size of the largest sets.
func (q *Quota) rank() int {
	r := &q.rules
	shown := make([][]int, len(r.Limits)) // number of items shown, by group
	show := func(i int) {
		for k, l := range r.Limits {
			if g := int(l.Group[i]); g >= 0 {
				if g >= len(shown[k]) {
					shown[k] = append(shown[k], make([]int, g+1-len(shown[k]))...)
				}
				shown[k][g]++
			}
		}
	}
	full := func(i int) bool {
		for k, l := range r.Limits {
			if g := int(l.Group[i]); g >= 0 && g < len(shown[k]) && shown[k][g] >= l.Max {
				return true
			}
		}
		return false
	}
	for _, i := range r.Include {
		show(i)
	}
	rank := len(r.Include)
	unweighted := *r
	unweighted.Weights = nil
	for i := 0; i < r.Items && rank < r.Max; i++ {
		if !unweighted.hides(i) && !r.includes(i) && !full(i) {
			show(i)
			rank++
		}
	}
	return rank
}

// plainItems is the number of items beyond which the candidates under a capacity are found separately for each call.
// Tests change it.
var plainItems = 200

// weighPlain prepares a plain family for its capacity. It returns false if a tree of all items works better, because
// there are few items or the bound on the table is too large.
func (q *Quota) weighPlain() bool {
	r, w := &q.rules, q.rules.Weights
	if len(w.Kind) != r.Items || w.Capacity < 0 || len(w.Of) > 0 && slices.Min(w.Of) < 0 || w.left(r.Include) < 0 {
		return false
	}
	left, free := w.left(r.Include), r.Max-len(r.Include)
	size, room, slack := r.Max, w.Capacity, true // left over by the heaviest items
	most := make([]int, len(w.Of))
	for _, k := range slices.Backward(w.ascending()) {
		a, n := w.Of[k], w.Count[k]
		if taken := min(n, size); slack && taken > 0 {
			if slack = a == 0 || taken <= room/a; slack {
				size, room = size-taken, room-taken*a
			}
		}
		if most[k] = min(n, free); a > left {
			most[k] = 0
		} else if a > 0 && len(r.Limits) == 0 {
			most[k] = min(most[k], left/a)
		}
	}
	if slack {
		r.Weights = nil
		return true
	}
	q.most = most
	return r.Items > plainItems && q.tableBound() <= cmp.Or(r.MaxTable, defaultTable)
}

// ascending returns the indices of the weights in increasing order of weight.
func (w *Weights) ascending() []int {
	kinds := numbers(len(w.Of))
	slices.SortStableFunc(kinds, func(a, b int) int { return cmp.Compare(w.Of[a], w.Of[b]) })
	return kinds
}

// numbers returns 0, …, n−1.
func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// tableBound bounds the table bits of the program for any candidates.
func (q *Quota) tableBound() float64 {
	r, w := &q.rules, q.rules.Weights
	candidates, unit, room, lightest := 0, 0, 0, w.Capacity
	for k, most := range q.most {
		if most > 0 {
			candidates += most
			unit = gcd(unit, w.Of[k])
			room = min(w.Capacity, plus(room, most, w.Of[k]))
			lightest = min(lightest, w.Of[k])
		}
	}
	rows := 1.0 // number of rows
	if size := r.Max - len(r.Include); lightest == 0 || w.left(r.Include)/lightest > size {
		rows += float64(min(size, candidates))
	}
	for _, l := range r.Limits {
		rows *= float64(min(l.Max, r.Max)) + 1
	}
	if len(r.Limits) > 1 {
		candidates *= 1 + len(r.Limits) // count their groups, too
	}
	return float64(rows*float64(candidates+64)) * (float64(room/max(unit, 1)) + 64)
}

// plus returns a + n·weight, or math.MaxInt on overflow.
func plus(a, n, weight int) int {
	if weight > 0 && n > (math.MaxInt-a)/weight {
		return math.MaxInt
	}
	return a + n*weight
}

// grow returns the family with its groups in hierarchies. fit promises that every item fits in some set.
func grow(r Rules, fit bool) (*Quota, error) {
	if r.Items < 0 {
		return nil, fmt.Errorf("items = %d: must not be negative", r.Items)
	}
	q := &Quota{rules: r}
	for _, l := range r.Limits {
		if len(l.Group) != r.Items {
			return nil, fmt.Errorf("%d numbers of groups for %d items", len(l.Group), r.Items)
		}
	}
	grouped := r.grouped()
	var err error
	if q.states, err = r.states(); err != nil {
		return nil, err
	}
	if q.sides, err = grouped.hierarchies(q.states); err != nil {
		return nil, err
	}
	never := make([]bool, r.Items)
	for s, h := range q.sides {
		h.hide(never, q.states)
		for k := range h.nodes {
			if h.nodes[k].Min > 0 {
				q.demands = append(q.demands, [2]int{s, k})
			}
		}
	}
	q.size = q.root().maximum
	if len(q.sides) == 2 {
		q.size = r.Max
		if q.flow, err = newCrossing(&r, q.sides, q.states, never); err != nil {
			return nil, err
		}
	} else if q.tree = newTree(q.sides[0], q.states); r.Weights != nil && fit {
		return q, q.plan()
	} else if r.Weights != nil {
		if err := q.weigh(); err != nil {
			var unfit unfitError
			if errors.As(err, &unfit) {
				r.Exclude = sorted(append(unfit, r.Exclude...))
				return grow(r, false)
			}
			return nil, err
		}
	}
	if slices.Contains(never, true) {
		q.never = never
	}
	return q, nil
}

func (q *Quota) root() *node { return &q.sides[0].nodes[len(q.sides[0].nodes)-1] }

// unfitError lists items that are too heavy for every set.
type unfitError []int

func (unfitError) Error() string { return "items that no set has room for" }

// weigh creates the program, unless every set fits.
func (q *Quota) weigh() error {
	r, w := &q.rules, q.rules.Weights
	switch {
	case len(w.Kind) != r.Items:
		return fmt.Errorf("%d weights for %d items", len(w.Kind), r.Items)
	case w.Capacity < 0:
		return fmt.Errorf("capacity = %d: must not be negative", w.Capacity)
	}
	order := make([]float64, len(w.Of)) // rank of each weight
	for rank, k := range w.ascending() {
		order[k] = float64(rank)
	}
	// A greedy oracle looks only at the order of the values, so ranks serve as well as weights.
	value := make([]float64, r.Items)
	for i, k := range w.Kind {
		if w.Of[k] < 0 {
			return fmt.Errorf("%s: weight = %d: must not be negative", r.name(i), w.Of[k])
		}
		value[i] = -order[k]
	}
	lightest := q.tree.best(nil, value, 0)
	if w.left(lightest) < 0 {
		var list []string
		for _, i := range lightest {
			list = append(list, fmt.Sprintf("%s weighs %d", r.name(i), w.of(i)))
		}
		return fmt.Errorf("capacity = %d: the lightest set that the other rules allow weighs more: %s",
			w.Capacity, few(list))
	}
	if unfit := q.unfit(lightest); len(unfit) > 0 {
		return unfitError(unfit)
	}
	for i := range value {
		value[i] = 1 - value[i]
	}
	if w.left(q.tree.best(nil, value, 0)) >= 0 { // the heaviest set
		r.Weights = nil
		return nil
	}
	return q.plan()
}

// plan creates the program.
func (q *Quota) plan() (err error) {
	w := q.rules.Weights
	byKind := make([]int, len(w.Of)+1)
	for _, k := range w.Kind {
		byKind[k+1]++
	}
	for k := range w.Of {
		byKind[k+1] += byKind[k]
	}
	items := make([]int, len(w.Kind)) // sorted by kind
	for i, k := range w.Kind {
		items[byKind[k]] = i
		byKind[k]++
	}
	ascending := make([]int, 0, len(items))
	for _, k := range w.ascending() {
		from := 0
		if k > 0 {
			from = byKind[k-1]
		}
		ascending = append(ascending, items[from:byKind[k]]...)
	}
	q.program, err = newProgram(q.sides[0], q.tree, q.states, &q.rules, ascending)
	return err
}

// unfit returns the items that are too heavy for every set. The lightest set with item i is the lightest set of all,
// either with i added or with i exchanged for another item: this is the exchange property of M♮-convex sets, such as a
// laminar family (Murota, Discrete Convex Analysis, 2003).
func (q *Quota) unfit(lightest vitrine.Assortment) (items []int) {
	w, h := q.rules.Weights, q.sides[0]
	left := w.left(lightest)
	number := make([]int, len(h.nodes))
	// the largest weight that may leave if another item of the group enters
	spare := slices.Repeat([]int{none}, len(h.nodes))
	for _, i := range lightest {
		k := h.at[i]
		number[k]++
		if q.states[i] != pinned {
			spare[k] = max(spare[k], w.of(i))
		}
	}
	for k := range h.nodes {
		if a := &h.nodes[k]; a.parent >= 0 {
			number[a.parent] += number[k]
			if number[k] > a.Min {
				spare[a.parent] = max(spare[a.parent], spare[k])
			}
		}
	}
	for k := len(h.nodes) - 1; k >= 0; k-- {
		if a := &h.nodes[k]; number[k] < a.Max {
			around := 0 // add the item
			if a.parent >= 0 {
				around = spare[a.parent]
			}
			spare[k] = max(spare[k], around)
		}
		for _, i := range q.tree.free[k] {
			if !among(lightest, i) && (spare[k] == none || w.of(i) > left+spare[k]) {
				items = append(items, i)
			}
		}
	}
	return items
}

// Items returns N.
func (q *Quota) Items() int { return q.rules.Items }

// byOrder reports whether the best set depends only on the order of the gains.
func (q *Quota) byOrder() bool { return q.flow == nil && q.program == nil && q.most == nil }

// hides implements selective.
func (q *Quota) hides() []bool {
	if q.plain && q.rules.HidesAny() {
		q.hiding.Do(func() {
			q.never = make([]bool, q.rules.Items)
			for i := range q.never {
				q.never[i] = q.rules.hides(i)
			}
		})
	}
	return q.never
}

// Limit implements [Limiter].
func (q *Quota) Limit(maximum int) (vitrine.Constraint, error) {
	if q.size <= maximum {
		return q, nil
	}
	r := q.rules
	r.Max = max(maximum, 0)
	limited, err := NewQuota(r)
	if err != nil {
		return nil, err // a nil *Quota in the interface would not be nil
	}
	return limited, nil
}

// Full returns the size of the family's sets if it contains all sets of one size, and no others.
func (q *Quota) Full() (size int, ok bool) {
	r := &q.rules
	size = min(r.Max, r.Items)
	return size, r.Min == size && len(r.Groups)+len(r.Limits)+len(r.Include)+len(r.Exclude) == 0 && r.Weights == nil
}

// matroid implements matroid.
func (q *Quota) matroid() (minimum int, ok bool) {
	if !q.byOrder() || len(q.rules.Include) > 0 {
		return 0, false
	}
	groups := len(q.demands)
	if q.rules.Min > 0 {
		groups--
	}
	return q.rules.Min, groups == 0
}

// hereditary implements the interface of [Hereditary].
func (q *Quota) hereditary() bool { return len(q.rules.Include) == 0 && len(q.demands) == 0 }

// Contains implements vitrine.Constraint.
func (q *Quota) Contains(s vitrine.Assortment) bool {
	pins := 0
	for _, i := range s {
		if i < 0 || i >= q.rules.Items {
			return false
		}
		if q.rules.includes(i) {
			pins++
		}
	}
	if pins < len(q.rules.Include) || q.rules.Weights != nil && q.rules.Weights.left(s) < 0 {
		return false
	}
	if q.plain {
		return q.rules.Allows(s)
	}
	w := countings.Get().(*counting)
	defer countings.Put(w)
	ok := true
	for side, h := range q.sides {
		if len(w[side]) < len(h.nodes) {
			w[side] = make([]int, len(h.nodes))
		}
		for _, i := range s {
			ok = ok && q.states[i] != excluded
			for k := h.at[i]; k >= 0; k = h.nodes[k].parent {
				w[side][k]++
				ok = ok && w[side][k] <= h.nodes[k].Max
			}
		}
	}
	for _, d := range q.demands {
		ok = ok && w[d[0]][d[1]] >= q.sides[d[0]].nodes[d[1]].Min
	}
	for side, h := range q.sides {
		for _, i := range s {
			for k := h.at[i]; k >= 0; k = h.nodes[k].parent {
				w[side][k] = 0
			}
		}
	}
	return ok
}

// counting counts a set's items by hierarchy and node. All counts are 0 between calls.
type counting [2][]int

var countings = sync.Pool{New: func() any { return new(counting) }}

// MaxGain implements vitrine.Constraint. It panics unless there are N gains.
func (q *Quota) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	return q.best(dst, gain, 0)
}

// top implements ranker. exp(u_i) is positive if u_i is above −∞.
func (q *Quota) top(dst vitrine.Assortment, u []float64) (vitrine.Assortment, bool) {
	if !q.byOrder() {
		return dst, false
	}
	return q.best(dst, u, negInf), true
}

// best returns the set with the largest values. Items that no rule requires need a value above minimum, which is 0
// unless only the order of the values matters.
func (q *Quota) best(dst vitrine.Assortment, value []float64, minimum float64) vitrine.Assortment {
	if len(value) != q.rules.Items {
		panic(fmt.Sprintf("assortment: %d gains for a family of %d items", len(value), q.rules.Items))
	}
	switch {
	case q.most != nil:
		return q.screen(dst, value)
	case q.plain:
		return q.rules.best(dst, value, minimum)
	case q.flow != nil:
		return q.flow.best(dst, value)
	}
	if dst = q.tree.best(dst, value, minimum); q.program != nil && q.rules.Weights.left(dst) < 0 {
		return q.program.best(dst, value)
	}
	return dst
}

// screen finds the best set under a capacity among a few items: for each weight, the best set of items of this weight
// that the rules allow together with the pinned items P. To see why these suffice, let S be a best set, with an item i
// of weight a that is not in the best set B of this weight. Without P, the sets that the rules allow are the
// independent sets of a matroid, so the items of B with larger gains span i. As S is independent, they do not all lie
// in the span of S∖{i}, and one of them can replace i (Edmonds 1971).
func (q *Quota) screen(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	w := screenings.Get().(*screening)
	defer screenings.Put(w)
	kind := q.rules.Weights.Kind
	w.best, w.threshold = scratch.Grow(w.best, len(q.most)), scratch.Grow(w.threshold, len(q.most))
	r := q.rules
	for k, most := range q.most {
		r.Max = most + len(r.Include)
		w.best[k].Reset(r, 0)
		w.threshold[k] = 0
		if most == 0 {
			w.threshold[k] = math.Inf(1)
		}
	}
	for i, v := range gain {
		if k := kind[i]; v > w.threshold[k] {
			w.best[k].Add(i, v)
			w.threshold[k] = w.best[k].Threshold()
		}
	}
	w.items = append(w.items[:0], r.Include...)
	for k := range w.best {
		w.items = append(w.items, w.best[k].Items...)
		w.best[k].rules = Rules{} // the pool must not retain the caller's slices
	}
	slices.Sort(w.items)
	w.gain = scratch.Grow(w.gain, len(w.items))
	for j, i := range w.items {
		w.gain[j] = gain[i]
	}
	dst = q.rules.grown(w.items).MaxGain(dst, w.gain)
	for k, j := range dst {
		dst[k] = w.items[j]
	}
	return dst
}

// grown returns the family of [Rules.among], which is never empty.
func (r Rules) grown(items []int) *Quota {
	r.MaxTable = math.Inf(1)
	q, err := grow(r.among(items), true)
	if err != nil {
		panic(fmt.Sprintf("assortment: rules that sets obey have none among some items: %v", err))
	}
	return q
}

// screening is the scratch of one call.
type screening struct {
	best      []Ranking // by kind of weight
	threshold []float64 // by kind of weight: the threshold of best
	items     []int
	gain      []float64
}

var screenings = sync.Pool{New: func() any { return new(screening) }}

// Sample implements [Sampler] for the families of [SamplerOf]. It panics unless n is N.
func (q *Quota) Sample(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment {
	return q.sampled(n).sample(dst[:0], rng)
}

// Propensity implements [Sampler]. It panics unless n is N.
func (q *Quota) Propensity(n int) float64 { return q.sampled(n).propensity() }

// sampled returns the family as a tree.
func (q *Quota) sampled(n int) *tree {
	if n != q.rules.Items {
		panic(fmt.Sprintf("assortment: a draw from %d items of a family of %d", n, q.rules.Items))
	}
	if q.plain {
		q.growing.Do(func() {
			var err error
			if q.whole, err = grow(q.rules, false); err != nil {
				panic(fmt.Sprintf("assortment: a plain family is no tree: %v", err))
			}
		})
		return q.whole.tree
	}
	return q.tree
}
