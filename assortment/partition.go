package assortment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"vitrine"
)

// Partition is the family of sets of at most K items, at most h of each group,
//
//	𝒮 = {S : P ⊆ S, |S| ≤ K, |S ∩ G| ≤ h_j for every group G of the limit j}
//
// with the items P. The groups of a limit are disjoint, and those of two limits are disjoint or nested. It has the sets of a
// [Laminar] with these rules and finds them in one pass over the gains, whatever the number of groups. It takes no memory for
// its items: the numbers of their groups are the caller's. So it serves among millions of items, whose groups do not change
// from request to request.
type Partition struct {
	items int
	quota Quota

	hiding  sync.Once
	never   []bool
	drawing sync.Once
	draws   *Laminar
}

// NewPartition returns the family of the sets within a quota, among some items. It keeps the slices of q. It returns an error
// if groups cross, or if no set has all items that every set must have.
func NewPartition(items int, q Quota) (*Partition, error) {
	for _, l := range q.Limits {
		switch {
		case len(l.Group) != items:
			return nil, fmt.Errorf("%d numbers of groups for %d items", len(l.Group), items)
		case l.Most < 0:
			return nil, fmt.Errorf("at most %d of a group: must not be negative", l.Most)
		}
	}
	for k, l := range q.Limits {
		for _, other := range q.Limits[:k] {
			if i, crossing := crossingItem(l.Group, other.Group); crossing {
				return nil, fmt.Errorf("group %d and group %d share item %d, but neither contains the other: groups must be nested or disjoint", other.Group[i], l.Group[i], i)
			}
		}
	}
	return newPartition(items, q)
}

// newPartition is NewPartition for groups that do not cross.
func newPartition(items int, q Quota) (*Partition, error) {
	for _, list := range [][]int{q.Exclude, q.Include} {
		if !slices.IsSorted(list) {
			return nil, fmt.Errorf("the items excluded, and those included, must increase")
		}
		for _, i := range list {
			if i < 0 || i >= items {
				return nil, fmt.Errorf("item %d is outside [0, %d)", i, items)
			}
		}
	}
	for k, i := range q.Include {
		if among(q.Exclude, i) {
			return nil, fmt.Errorf("item %d is both included and excluded", i)
		}
		if k > 0 && i == q.Include[k-1] {
			return nil, fmt.Errorf("item %d is included twice", i)
		}
		for _, l := range q.Limits {
			if n := q.count(&l, i, nil); l.Group[i] >= 0 && n > l.Most {
				return nil, fmt.Errorf("at most %d of group %d, but %s demanded", l.Most, l.Group[i], areDemanded(n))
			}
		}
	}
	q.Size = max(q.Size, 0)
	if n := len(q.Include); n > q.Size {
		return nil, fmt.Errorf("at most %d, but %s demanded", q.Size, areDemanded(n))
	}
	p := &Partition{items: items, quota: q}
	p.quota.Size = p.rank(q.Size)
	return p, nil
}

// crossingItem returns an item that two groups share of which neither contains the other.
func crossingItem(a, b []int32) (item int, crossing bool) {
	partners := [2][]int32{} // of each group: the group of the other limit that has all of its items
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
			return i, true
		}
	}
	return 0, false
}

// rank returns the size of the largest sets, at most size.
func (p *Partition) rank(size int) int {
	shown := make([][]int, len(p.quota.Limits)) // by group
	room := func(i int) bool {
		for k, l := range p.quota.Limits {
			if g := int(l.Group[i]); g >= 0 && g < len(shown[k]) && shown[k][g] >= l.Most {
				return false
			}
		}
		return true
	}
	show := func(i int) {
		for k, l := range p.quota.Limits {
			if g := int(l.Group[i]); g >= 0 {
				if g >= len(shown[k]) {
					shown[k] = append(shown[k], make([]int, g+1-len(shown[k]))...)
				}
				shown[k][g]++
			}
		}
	}
	for _, i := range p.quota.Include {
		show(i)
	}
	rank := len(p.quota.Include)
	for i := 0; i < p.items && rank < size; i++ {
		if !p.quota.hides(i) && !p.quota.includes(i) && room(i) {
			show(i)
			rank++
		}
	}
	return rank
}

// Items returns N.
func (p *Partition) Items() int { return p.items }

// Contains implements vitrine.Constraint.
func (p *Partition) Contains(s vitrine.Assortment) bool {
	for _, i := range s {
		if i < 0 || i >= p.items {
			return false
		}
	}
	for _, i := range p.quota.Include {
		if !slices.Contains(s, i) {
			return false
		}
	}
	return p.quota.Allows(s)
}

// MaxGain implements vitrine.Constraint. It panics unless there are N gains.
func (p *Partition) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	return p.best(dst, gain, 0)
}

// top implements ranker.
func (p *Partition) top(dst vitrine.Assortment, u []float64) vitrine.Assortment {
	return p.best(dst, u, noMinimum)
}

func (p *Partition) best(dst vitrine.Assortment, values []float64, minimum float64) vitrine.Assortment {
	if len(values) != p.items {
		panic(fmt.Sprintf("assortment: %d gains for a family of %d items", len(values), p.items))
	}
	r := rankings.Get().(*Ranking)
	defer rankings.Put(r)
	return r.best(dst, p.quota, values, minimum)
}

var rankings = sync.Pool{New: func() any { return new(Ranking) }}

// Stable implements [Stabler].
func (p *Partition) Stable() bool { return true }

// matroid implements matroid.
func (p *Partition) matroid() (int, bool) { return 0, len(p.quota.Include) == 0 }

// hides implements selective.
func (p *Partition) hides() []bool {
	if !p.quota.HidesAny() {
		return nil
	}
	p.hiding.Do(func() {
		p.never = make([]bool, p.items)
		for i := range p.never {
			p.never[i] = p.quota.hides(i)
		}
	})
	return p.never
}

// Limit implements [Limiter].
func (p *Partition) Limit(maximum int) (vitrine.Constraint, error) {
	if p.quota.Size <= maximum {
		return p, nil
	}
	q := p.quota
	q.Size = maximum
	return newPartition(p.items, q)
}

// without implements narrower.
func (p *Partition) without(items []int) (vitrine.Constraint, error) {
	q := p.quota
	q.Exclude = slices.Concat(q.Exclude, items)
	slices.Sort(q.Exclude)
	return newPartition(p.items, q)
}

// Sample implements [Sampler], as [Laminar.Sample] does, whose tables it makes for the first draw.
func (p *Partition) Sample(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment {
	return p.laminar().Sample(dst, n, rng)
}

// Propensity implements [Sampler].
func (p *Partition) Propensity(n int) float64 { return p.laminar().Propensity(n) }

// GroupsOf returns the groups of items by the numbers of their groups, in the order of their first items. A negative number
// is of no group. A set has at most the maximum of each.
func GroupsOf(numbers []int32, maximum int, name func(number int32) string) (groups []Group) {
	at := map[int32]int{}
	for i, number := range numbers {
		if number < 0 {
			continue
		}
		k, ok := at[number]
		if !ok {
			k = len(groups)
			at[number] = k
			groups = append(groups, Group{Name: name(number), Max: maximum})
		}
		groups[k].Items = append(groups[k].Items, i)
	}
	return groups
}

// laminar returns the same family as a tree.
func (p *Partition) laminar() *Laminar {
	p.drawing.Do(func() {
		rules := Rules{Items: p.items, Max: p.quota.Size, Include: p.quota.Include, Exclude: p.quota.Exclude}
		for _, l := range p.quota.Limits {
			rules.Groups = append(rules.Groups, GroupsOf(l.Group, l.Most, func(g int32) string { return fmt.Sprintf("group %d", g) })...)
		}
		l, err := NewLaminar(rules)
		if err != nil {
			panic(fmt.Sprintf("assortment: a partition is no laminar family: %v", err))
		}
		p.draws = l
	})
	return p.draws
}
