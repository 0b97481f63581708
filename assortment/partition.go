package assortment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"vitrine"
)

// Partition is the family of sets of at most K items, at most h of each group,
//
//	𝒮 = {S : |S| ≤ K, |S ∩ G_j| ≤ h for every group G_j}
//
// of disjoint groups. It has the sets of a [Laminar] with these rules and finds them in one pass over the gains, whatever
// the number of groups. It takes no memory for its items: the numbers of their groups are the caller's. So it serves
// among millions of items, whose groups do not change from request to request.
type Partition struct {
	items int
	quota Quota

	hiding  sync.Once
	never   []bool
	drawing sync.Once
	draws   *Laminar
}

// NewPartition returns the family of the sets within a quota, among some items. It keeps the slices of q.
func NewPartition(items int, q Quota) (*Partition, error) {
	switch {
	case q.Group != nil && len(q.Group) != items:
		return nil, fmt.Errorf("%d numbers of groups for %d items", len(q.Group), items)
	case q.Most < 0:
		return nil, fmt.Errorf("at most %d of a group: must not be negative", q.Most)
	case !slices.IsSorted(q.Exclude):
		return nil, fmt.Errorf("the items excluded must increase")
	}
	for _, i := range q.Exclude {
		if i < 0 || i >= items {
			return nil, fmt.Errorf("item %d is outside [0, %d)", i, items)
		}
	}
	p := &Partition{items: items, quota: q}
	p.quota.Size = p.rank(max(q.Size, 0))
	return p, nil
}

// rank returns the size of the largest sets, at most size.
func (p *Partition) rank(size int) int {
	var shown []int // by group
	rank := 0
	for i := 0; i < p.items && rank < size; i++ {
		if p.quota.hides(i) {
			continue
		}
		if g := p.quota.group(i); g >= 0 {
			if int(g) >= len(shown) {
				shown = append(shown, make([]int, int(g)+1-len(shown))...)
			}
			if shown[g] == p.quota.Most {
				continue
			}
			shown[g]++
		}
		rank++
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
func (p *Partition) matroid() (int, bool) { return 0, true }

// hides implements selective.
func (p *Partition) hides() []bool {
	if !p.quota.hidesAny() {
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
	return NewPartition(p.items, q)
}

// without implements narrower.
func (p *Partition) without(items []int) (vitrine.Constraint, error) {
	q := p.quota
	q.Exclude = slices.Concat(q.Exclude, items)
	slices.Sort(q.Exclude)
	return NewPartition(p.items, q)
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
		rules := Rules{Items: p.items, Max: p.quota.Size, Exclude: p.quota.Exclude}
		rules.Groups = GroupsOf(p.quota.Group, p.quota.Most, func(g int32) string { return fmt.Sprintf("group %d", g) })
		l, err := NewLaminar(rules)
		if err != nil {
			panic(fmt.Sprintf("assortment: a partition is no laminar family: %v", err))
		}
		p.draws = l
	})
	return p.draws
}
