package assortment_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
	"vitrine/internal/expect"
)

func TestCapacity(t *testing.T) {
	weight := []int{3, 1, 4, 0, 5, 9, 2, 0}
	for _, f := range []struct {
		name     string
		rules    assortment.Rules
		capacity int
	}{
		{"weight only", assortment.Rules{Max: noLimit}, 8},
		{"no capacity", assortment.Rules{Max: noLimit}, 0},
		{"ample capacity", assortment.Rules{Max: noLimit}, 100},
		{"at most", assortment.Rules{Max: 2}, 8},
		{"at least", assortment.Rules{Min: 3, Max: noLimit}, 6},
		{"at least so many that few fit", assortment.Rules{Min: 5, Max: noLimit}, 8},
		{"between", assortment.Rules{Min: 2, Max: 3}, 7},
		{"included and excluded", assortment.Rules{Max: 4, Include: []int{2}, Exclude: []int{1}}, 9},
		{"included, and at least", assortment.Rules{Min: 3, Max: noLimit, Include: []int{0, 3}}, 8},
		{"included without room for more",
			assortment.Rules{Min: 1, Max: 3, Include: []int{5}, Exclude: []int{3, 7}}, 9},
		{"nothing", assortment.Rules{}, 9},
		{"groups side by side", assortment.Rules{
			Max: noLimit, Groups: []assortment.Group{group("a", 0, 1, 0, 1, 3), group("b", 1, 2, 4, 6, 7)},
		}, 8},
		{"groups within groups", assortment.Rules{Min: 2, Max: 4, Groups: []assortment.Group{
			group("department", 1, 3, 0, 1, 2, 3, 4), group("category", 0, 1, 0, 1),
			group("other", 1, 2, 2, 3), group("far", 0, 1, 6, 7),
		}}, 9},
		{"included and excluded in groups", assortment.Rules{Max: 4, Include: []int{2}, Exclude: []int{6},
			Groups: []assortment.Group{group("a", 1, 2, 0, 1, 2), group("b", 1, 1, 6, 4, 5)}}, 12},
	} {
		t.Run(f.name, func(t *testing.T) {
			assortmenttest.TestConstraint(t, quota(t, weighed(f.rules, weight, f.capacity)), len(weight))
		})
	}
	t.Run("40 items", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(4, 4))
		weight := make([]int, 40)
		for i := range weight {
			weight[i] = 6 * rng.IntN(8)
		}
		assortmenttest.TestConstraint(t, quota(t, weighed(assortment.Rules{Min: 2, Max: 7}, weight, 100)), 40)
	})
	t.Run("no items", func(t *testing.T) {
		assortmenttest.TestConstraint(t, quota(t, weighed(assortment.Rules{Max: 3}, nil, 5)), 0)
	})
}

func TestCapacitiesThatAreRefused(t *testing.T) {
	five := func(r assortment.Rules) assortment.Rules {
		r.Items = 5
		r.Name = func(i int) string { return fmt.Sprintf("item %q", "abcde"[i:i+1]) }
		return r
	}
	weight := []int{4, 3, 2, 7, 7}
	for want, c := range map[string]struct {
		rules    assortment.Rules
		weight   []int
		capacity int
	}{
		"capacity = -1: must not be negative":         {assortment.Rules{Max: 5}, weight, -1},
		`item "c": weight = -2: must not be negative`: {assortment.Rules{Max: 5}, []int{1, 1, -2, 1, 1}, 4},
		"4 weights for 5 items":                       {assortment.Rules{Max: 5}, weight[:4], 4},
		`capacity = 8: the lightest set that the other rules allow weighs more: item "a" weighs 4, item "d" weighs 7`: {
			assortment.Rules{Max: 5, Include: []int{0, 3}}, weight, 8,
		},
		`capacity = 8: the lightest set that the other rules allow weighs more: item "a" weighs 4, item "b" weighs ` +
			`3, item "c" weighs 2`: {assortment.Rules{Min: 3, Max: 5}, weight, 8},
		`capacity = 8: the lightest set that the other rules allow weighs more: item "c" weighs 2, item "d" weighs 7`: {
			assortment.Rules{Min: 2, Max: 5, Include: []int{3}}, weight, 8,
		},
		`capacity = 9: the lightest set that the other rules allow weighs more: item "c" weighs 2, item "d" weighs ` +
			`7, item "e" weighs 7`: {
			assortment.Rules{Max: 5, Include: []int{3}, Groups: []assortment.Group{
				group("group d and e", 2, 2, 3, 4), group("group shoes", 1, 2, 1, 2),
			}}, weight, 9,
		},
	} {
		rules := five(c.rules)
		rules.Weights = assortment.WeightsOf(c.weight, c.capacity)
		expect.Prefix(assortment.NewQuota(rules))(t, want)
	}
}

// Tables that would not fit in memory are rejected, unless the capacity does not bind, or a common unit or few items
// make them small.
func TestLargeTablesAreRefused(t *testing.T) {
	const n = 1500
	rng := rand.New(rand.NewPCG(6, 6))
	weight := make([]int, n)
	total := 0
	for i := range weight {
		weight[i] = 1_000_003 + rng.IntN(100_000)
		total += weight[i]
	}
	all := assortment.Rules{Max: noLimit}
	_, err := assortment.NewQuota(weighed(all, weight, total/20))
	want := "capacity = " + fmt.Sprint(total/20) + ": too large for the exact program: its table would have "
	if err == nil || !strings.HasPrefix(err.Error(), want) ||
		!strings.HasSuffix(err.Error(), " MB, more than 537: measure weights in larger units") {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := assortment.NewQuota(weighed(assortment.Rules{Min: 3, Max: noLimit}, weight, total/20)); err == nil ||
		!strings.HasSuffix(err.Error(), ", or bound fewer numbers of items, which multiply it by up to 4") {
		t.Errorf("error %v, want what multiplies the table", err)
	}
	quota(t, weighed(all, weight, total))
	quota(t, weighed(assortment.Rules{Max: 5}, weight, total/20))
	for i := range weight {
		weight[i] = weight[i] / 100_000 * 100_000
	}
	quota(t, weighed(all, weight, total/20))
}

// One unit of capacity more or less only changes which items fit: compare a large shelf of many items with its
// neighbours.
func TestCapacityOfManyItems(t *testing.T) {
	const n, capacity = 100_000, 500
	rng := rand.New(rand.NewPCG(7, 7))
	u, r, weight := make([]float64, n), make([]float64, n), make([]int, n)
	for i := range u {
		u[i], r[i], weight[i] = rng.NormFloat64()-4, rng.Float64(), 1+rng.IntN(40)
	}
	brands := make([]assortment.Group, 100)
	for b := range brands {
		brands[b] = group(fmt.Sprint("brand ", b), b/98, 1, numbers(n)[1000*b:][:1000]...)
	}
	for _, rules := range []assortment.Rules{
		{Max: noLimit}, {Max: 20}, {Min: 3, Max: noLimit}, {Max: noLimit, Groups: brands},
	} {
		c := quota(t, weighed(rules, weight, capacity))
		s, value := assortment.Maximize(nil, c, u, r)
		if !c.Contains(s) || value <= 0 {
			t.Fatalf("%+v: %v earns %v", rules, s, value)
		}
	}
}

func BenchmarkCapacity(b *testing.B) {
	const n = 1_000_000
	rng := rand.New(rand.NewPCG(2, 2))
	u, r, weight := make([]float64, n), make([]float64, n), make([]int, n)
	for i := range u {
		u[i], r[i], weight[i] = rng.NormFloat64(), rng.Float64(), 1+rng.IntN(50)
	}
	brands := make([]assortment.Group, 1000)
	for k := range brands {
		brands[k] = group(fmt.Sprint("brand ", k), 0, 1, numbers(n)[1000*k:][:1000]...)
	}
	for name, rules := range map[string]assortment.Rules{
		"free": {Max: noLimit}, "at most 20": {Max: 20}, "at least 5": {Min: 5, Max: noLimit},
		"1 of a brand": {Max: noLimit, Groups: brands},
	} {
		c := quota(b, weighed(rules, weight, 1000))
		b.Run("C=1000,"+name, func(b *testing.B) {
			dst := make(vitrine.Assortment, 0, n)
			b.ReportAllocs()
			for b.Loop() {
				assortment.Maximize(dst, c, u, r)
			}
		})
	}
}

func TestCapacityOfNumberedGroups(t *testing.T) {
	for _, n := range []int{0, 7, 8, 40} {
		weights := []int{3, 1, 4, 0, 5, 9, 2}
		for len(weights) < n {
			weights = append(weights, 6*len(weights)%17)
		}
		weights = weights[:n]
		for k, c := range []struct {
			q        assortment.Rules
			capacity int
		}{
			{assortment.Rules{Max: 3}, 8},
			{assortment.Rules{Max: 40}, 9},
			{assortment.Rules{Max: 3}, 0},
			{assortment.Rules{Max: 3}, 100},
			{assortment.Rules{Max: 0}, 8},
			{assortment.Rules{Max: 40, Limits: []assortment.Limit{{Group: groupsOf(n, 2), Max: 1}}}, 9},
			{assortment.Rules{
				Max: 4, Limits: []assortment.Limit{{Group: groupsOf(n, 2), Max: 2}}, Exclude: []int{1, 4},
			}, 8},
			{assortment.Rules{Max: 3, Limits: []assortment.Limit{{Group: make([]int32, n), Max: 0}}}, 8},
		} {
			if n > 0 || c.q.Exclude == nil {
				t.Run(fmt.Sprintf("%d items, family %d", n, k), func(t *testing.T) {
					assortmenttest.TestConstraint(t, quota(t, weighed(c.q, weights, c.capacity)), n)
				})
			}
		}
	}
}

// With many items of many weights, the best set is the knapsack solution over all items.
func TestCapacityOfNumberedItems(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 8))
		n := 1 + rng.IntN([]int{50, 3000, 20_000}[seed%3])
		q := assortment.Rules{Max: 1 + rng.IntN(12)}
		rules := assortment.Rules{Items: n, Max: q.Max}
		if seed%2 == 0 {
			q.Limits = []assortment.Limit{{Group: make([]int32, n), Max: 1 + rng.IntN(2)}}
			rules.Groups = make([]assortment.Group, 1+rng.IntN(30))
		}
		u, r, weights := make([]float64, n), make([]float64, n), make([]int, n)
		for i := range n {
			u[i], r[i], weights[i] = rng.NormFloat64()-3, math.Exp(rng.NormFloat64()), rng.IntN(1+rng.IntN(60))
			for _, l := range q.Limits {
				g := rng.IntN(len(rules.Groups))
				l.Group[i] = int32(g)
				rules.Groups[g].Items, rules.Groups[g].Max = append(rules.Groups[g].Items, i), l.Max
			}
			if rng.IntN(20) == 0 {
				q.Exclude = append(q.Exclude, i)
			}
		}
		rules.Exclude = q.Exclude
		if seed%5 == 0 {
			r = nil
		}
		c, same := quota(t, weighed(q, weights, 100)), quota(t, weighed(rules, weights, 100))
		s, value := assortment.Maximize(nil, c, u, r)
		_, want := assortment.Maximize(nil, same, u, r)
		if !same.Contains(s) || math.Abs(value-want) > 1e-12*want {
			t.Fatalf("seed %d: %v earns %v, the best set %v", seed, s, value, want)
		}
	}
}

func TestTablesOfManyItemsAreRefused(t *testing.T) {
	const n = 100_000
	weights := make([]int, n)
	for i := range n {
		weights[i] = 1_000_003 + i
	}
	expect.Fails(assortment.NewQuota(weighed(assortment.Rules{Max: 100}, weights, 50_000_000)))(t, assortment.ErrTable)
}

// The largest possible capacity leaves room for a pinned item.
func TestLargestCapacity(t *testing.T) {
	s := quota(t, weighed(assortment.Rules{Max: 2, Include: []int{0}}, []int{3, 5}, math.MaxInt))
	expect.List(t, s.MaxGain(nil, []float64{1, 1}), vitrine.Assortment{0, 1}, "the best set is")
}

// Weights that overflow int when summed are rejected as too large a table, like others.
func TestLargeWeights(t *testing.T) {
	const large = math.MaxInt / 2
	r := assortment.Rules{Max: 3, Limits: []assortment.Limit{{Group: make([]int32, 4), Max: 3}}}
	expect.Fails(assortment.NewQuota(weighed(r, []int{large, large, large, large - 1}, math.MaxInt-1)))(t,
		assortment.ErrTable)
	c := quota(t, weighed(r, []int{large, large, large, 0}, math.MaxInt-1))
	expect.List(t, c.MaxGain(nil, []float64{1, 2, 3, 4}), vitrine.Assortment{1, 2, 3}, "is the best set")
}

func TestCapacityOfSeveralLimits(t *testing.T) {
	for _, n := range []int{7, 8, 40} {
		weights := []int{3, 1, 4, 0, 5, 9, 2}
		for len(weights) < n {
			weights = append(weights, 6*len(weights)%17)
		}
		halves := groupsOf(n, 4)
		limits := []assortment.Limit{{Group: halves, Max: 1}, {Group: halved(halves), Max: 2}}
		for k, c := range []struct {
			q        assortment.Rules
			capacity int
		}{
			{assortment.Rules{Max: 3, Limits: limits}, 8},
			{assortment.Rules{Max: 40, Limits: limits, Exclude: []int{1, 4}}, 9},
			{assortment.Rules{Max: 3, Limits: limits, Include: []int{2}}, 8},
			{assortment.Rules{Max: 4, Include: []int{0, 3}}, 7},
			{assortment.Rules{Max: 4, Include: []int{0}}, 3},
			{assortment.Rules{Max: 4, Include: []int{0}}, 1000},
			{assortment.Rules{Max: 4}, 11},
		} {
			t.Run(fmt.Sprintf("%d items, family %d", n, k), func(t *testing.T) {
				family := quota(t, weighed(c.q, weights, c.capacity))
				assortmenttest.TestConstraint(t, family, n)
			})
		}
	}
}

// Under a capacity, the screened candidates contain the best set, also among many items and for families that are
// limited or lack items.
func TestScreeningIsExact(t *testing.T) {
	judged := 0
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
			weights[i], u[i], r[i] = unit*rng.IntN(1+rng.IntN(30)),
				math.Round(8*rng.NormFloat64())/4-2, math.Exp(rng.NormFloat64())
		}
		capacity := rng.IntN(80)
		undo := assortment.SetPlainItems(0)
		c, err := assortment.NewQuota(weighed(q, weights, capacity))
		undo()
		same, err1 := assortment.NewQuota(weighed(rules, weights, capacity))
		if err != nil || err1 != nil {
			if (err == nil) != (err1 == nil) {
				t.Fatalf("seed %d: %v, but %v", seed, err, err1)
			}
			continue
		}
		family, other := vitrine.Constraint(c), vitrine.Constraint(same)
		if rng.IntN(3) == 0 {
			maximum := 1 + rng.IntN(q.Max)
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
		if got, want := family.MaxGain(nil, u), other.MaxGain(nil, u); !other.Contains(got) ||
			math.Abs(gain(got)-gain(want)) > 1e-9 {
			t.Fatalf("seed %d: the gains %v, want %v", seed, gain(got), gain(want))
		}
	}
	if judged < 400 {
		t.Errorf("%d families are judged", judged)
	}
}

// A pinned item counts towards its group, even if the group's other items differ in weight.
func TestScreeningCountsIncludedItems(t *testing.T) {
	q := assortment.Rules{
		Max: 3, Include: []int{0}, Limits: []assortment.Limit{{Group: []int32{0, 0, 0, -1, -1}, Max: 2}},
	}
	defer assortment.SetPlainItems(0)()
	c := quota(t, weighed(q, []int{1, 1, 2, 3, 2}, 4))
	have, want := c.MaxGain(nil, []float64{0, 10, 9, 1, 0.5}), (vitrine.Assortment{0, 1, 4})
	expect.List(t, have, want)
}
