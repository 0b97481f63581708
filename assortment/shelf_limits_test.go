package assortment_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
	"vitrine/internal/fatal"
)

// weighed returns the numbers of the weights of items.
func weighed(weights []int) assortment.Weights {
	w := assortment.Weights{Kind: make([]int32, len(weights))}
	for i, a := range weights {
		k := slices.Index(w.Of, a)
		if k < 0 {
			k, w.Of = len(w.Of), append(w.Of, a)
		}
		w.Kind[i] = int32(k)
	}
	return w
}

func TestShelfOfSeveralLimits(t *testing.T) {
	for _, n := range []int{7, 8, 40} {
		weights := []int{3, 1, 4, 0, 5, 9, 2}
		for len(weights) < n {
			weights = append(weights, 6*len(weights)%17)
		}
		halves := groupsOf(n, 4)
		limits := []assortment.Limit{{Group: halves, Most: 1}, {Group: halved(halves), Most: 2}}
		for k, c := range []struct {
			q        assortment.Quota
			capacity int
		}{
			{assortment.Quota{Size: 3, Limits: limits}, 8},
			{assortment.Quota{Size: 40, Limits: limits, Exclude: []int{1, 4}}, 9},
			{assortment.Quota{Size: 3, Limits: limits, Include: []int{2}}, 8},
			{assortment.Quota{Size: 4, Include: []int{0, 3}}, 7},
			{assortment.Quota{Size: 4, Include: []int{0}}, 3},
			{assortment.Quota{Size: 4, Include: []int{0}}, 1000},
			{assortment.Quota{Size: 4}, 11},
		} {
			t.Run(fmt.Sprintf("%d items, family %d", n, k), func(t *testing.T) {
				family := fatal.Or(assortment.NewShelf(n, c.q, weighed(weights), c.capacity))(t)
				assortmenttest.TestConstraint(t, family, n)
			})
		}
	}
}

// A shelf has the sets of a knapsack with the same rules, also among many items, and when it is limited or lacks items.
func TestShelfOfSeveralLimitsIsAKnapsack(t *testing.T) {
	judged, tight := 0, 0
	for seed := range uint64(1200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		n := 1 + rng.IntN([]int{8, 8, 8, 300}[seed%4])
		if seed%100 == 99 {
			n = 5000
		}
		q, rules := nestedRules(rng, n)
		weights, u, r := make([]int, n), make([]float64, n), make([]float64, n)
		unit := 1 + rng.IntN(3)
		for i := range n {
			weights[i], u[i], r[i] = unit*rng.IntN(1+rng.IntN(30)), math.Round(8*rng.NormFloat64())/4-2, math.Exp(rng.NormFloat64())
		}
		capacity := rng.IntN(80)
		c, err := assortment.NewShelf(n, q, weighed(weights), capacity)
		var same *assortment.Knapsack
		tree, err1 := assortment.NewLaminar(rules)
		if err1 == nil {
			same, err1 = assortment.NewKnapsack(tree, weights, capacity)
		}
		if err != nil || err1 != nil {
			if (err == nil) != (err1 == nil) {
				t.Fatalf("seed %d: %v, but %v", seed, err, err1)
			}
			continue
		}
		family, other := vitrine.Constraint(c), vitrine.Constraint(same)
		if rng.IntN(3) == 0 {
			maximum := 1 + rng.IntN(q.Size)
			family, err = c.Limit(maximum)
			other, err1 = same.Limit(maximum)
		}
		if err == nil && err1 == nil && rng.IntN(3) == 0 {
			family, err = assortment.Floor(family, r, 0.5)
			other, err1 = assortment.Floor(other, r, 0.5)
		}
		if err != nil || err1 != nil {
			if (err == nil) != (err1 == nil) {
				t.Fatalf("seed %d: %v, but %v", seed, err, err1)
			}
			continue
		}
		judged++
		if c.Table() > 0 && same.Table() > 0 {
			tight++
			if c.Table() < same.Table()/2 && n <= 8 {
				t.Errorf("seed %d: a table of %v bits, %v among all items", seed, c.Table(), same.Table())
			}
		}
		for _, revenue := range [][]float64{nil, r} {
			best, value := assortment.Maximize(nil, family, u, revenue)
			_, want := assortment.Maximize(nil, other, u, revenue)
			if !other.Contains(best) || math.Abs(value-want) > 1e-12*want {
				t.Fatalf("seed %d: %v earns %v, the best set %v", seed, best, value, want)
			}
		}
		gain := func(s vitrine.Assortment) (sum float64) {
			for _, i := range s {
				sum += u[i]
			}
			return sum
		}
		if got, want := family.MaxGain(nil, u), other.MaxGain(nil, u); !other.Contains(got) || math.Abs(gain(got)-gain(want)) > 1e-9 {
			t.Fatalf("seed %d: the gains %v, want %v", seed, gain(got), gain(want))
		}
		if n > 8 {
			continue
		}
		shown := make([]bool, n)
		for _, s := range subsets(n) {
			if family.Contains(s) != other.Contains(s) {
				t.Fatalf("seed %d: contains %v: %v", seed, s, family.Contains(s))
			}
			for _, i := range s {
				shown[i] = shown[i] || family.Contains(s)
			}
		}
		if hidden := assortment.Hidden(family); family == vitrine.Constraint(c) && c.Table() > 0 && slices.ContainsFunc(shown, func(is bool) bool { return is }) {
			for i := range n {
				if hidden[i] == shown[i] {
					t.Fatalf("seed %d: item %d is hidden: %v, and in a set: %v", seed, i, hidden[i], shown[i])
				}
			}
		}
	}
	if judged < 400 || tight < 100 {
		t.Errorf("%d families are judged, %d of them with a table", judged, tight)
	}
}

func TestNewShelfRefuses(t *testing.T) {
	for want, c := range map[string]struct {
		q        assortment.Quota
		w        assortment.Weights
		capacity int
	}{
		"2 numbers of weights for 3 items":             {assortment.Quota{Size: 2}, weighed([]int{1, 2}), 5},
		"weight = -1: must not be negative":            {assortment.Quota{Size: 2}, weighed([]int{1, -1, 2}), 5},
		"capacity = 2: the items included weigh more":  {assortment.Quota{Size: 2, Include: []int{0, 1}}, weighed([]int{1, 2, 3}), 2},
		"capacity = -1: must not be negative":          {assortment.Quota{Size: 2}, weighed([]int{1, 2, 3}), -1},
		"at most 1, but 2 items are demanded":          {assortment.Quota{Size: 1, Include: []int{0, 1}}, weighed([]int{1, 2, 3}), 9},
		"item 0 is both included and excluded":         {assortment.Quota{Size: 1, Include: []int{0}, Exclude: []int{0}}, weighed([]int{1, 2, 3}), 9},
		"the items excluded, and those included, must": {assortment.Quota{Size: 2, Exclude: []int{1, 0}}, weighed([]int{1, 2, 3}), 9},
	} {
		if _, err := assortment.NewShelf(3, c.q, c.w, c.capacity); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// An included item counts in its group, also if the groups' other items have different weights.
func TestShelfCountsIncludedItems(t *testing.T) {
	q := assortment.Quota{Size: 3, Include: []int{0}, Limits: []assortment.Limit{{Group: []int32{0, 0, 0, -1, -1}, Most: 2}}}
	c := fatal.Or(assortment.NewShelf(5, q, weighed([]int{1, 1, 2, 3, 2}), 4))(t)
	if have, want := c.MaxGain(nil, []float64{0, 10, 9, 1, 0.5}), (vitrine.Assortment{0, 1, 4}); !slices.Equal(have, want) {
		t.Errorf("%v, want %v", have, want)
	}
}
