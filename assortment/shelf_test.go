package assortment_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
	"vitrine/internal/fatal"
)

// onShelf returns a family of items with these weights.
func onShelf(t fatal.TB, q assortment.Quota, weights []int, capacity int) *assortment.Shelf {
	kind, weight := make([]int32, len(weights)), []int{}
	for i, a := range weights {
		k := slices.Index(weight, a)
		if k < 0 {
			k, weight = len(weight), append(weight, a)
		}
		kind[i] = int32(k)
	}
	s := fatal.Or(assortment.NewShelf(len(weights), q, assortment.Weights{Kind: kind, Of: weight}, capacity))(t)
	return s
}

func TestShelf(t *testing.T) {
	for _, n := range []int{0, 7, 8, 40} {
		weights := []int{3, 1, 4, 0, 5, 9, 2}
		for len(weights) < n {
			weights = append(weights, 6*len(weights)%17)
		}
		weights = weights[:n]
		for k, c := range []struct {
			q        assortment.Quota
			capacity int
		}{
			{assortment.Quota{Size: 3}, 8},
			{assortment.Quota{Size: 40}, 9},
			{assortment.Quota{Size: 3}, 0},
			{assortment.Quota{Size: 3}, 100},
			{assortment.Quota{Size: 0}, 8},
			{assortment.Quota{Size: 40, Limits: []assortment.Limit{{Group: groupsOf(n, 2), Most: 1}}}, 9},
			{assortment.Quota{Size: 4, Limits: []assortment.Limit{{Group: groupsOf(n, 2), Most: 2}}, Exclude: []int{1, 4}}, 8},
			{assortment.Quota{Size: 3, Limits: []assortment.Limit{{Group: make([]int32, n), Most: 0}}}, 8},
		} {
			if n > 0 || c.q.Exclude == nil {
				t.Run(fmt.Sprintf("%d items, family %d", n, k), func(t *testing.T) { assortmenttest.TestConstraint(t, onShelf(t, c.q, weights, c.capacity), n) })
			}
		}
	}
}

// drawShelf draws a quota, weights and a capacity of n items, and the same family as a knapsack.
func drawShelf(t *rapid.T, n int) (q assortment.Quota, weights []int, capacity int, same *assortment.Knapsack) {
	q = assortment.Quota{Size: rapid.IntRange(0, n+1).Draw(t, "size")}
	rules := assortment.Rules{Items: n, Max: q.Size}
	weights = rapid.SliceOfN(rapid.IntRange(0, 6), n, n).Draw(t, "weights")
	unit := rapid.SampledFrom([]int{1, 3}).Draw(t, "unit")
	for i := range weights {
		weights[i] *= unit
		if rapid.IntRange(0, 9).Draw(t, "excluded") == 0 {
			q.Exclude = append(q.Exclude, i)
		}
	}
	rules.Exclude = q.Exclude
	if rapid.Bool().Draw(t, "grouped") {
		l := assortment.Limit{Group: rapid.SliceOfN(rapid.Int32Range(-1, 3), n, n).Draw(t, "groups"), Most: rapid.IntRange(0, 3).Draw(t, "most")}
		q.Limits = []assortment.Limit{l}
		rules.Groups = make([]assortment.Group, 4)
		for i, g := range l.Group {
			if g >= 0 {
				rules.Groups[g].Items, rules.Groups[g].Max = append(rules.Groups[g].Items, i), l.Most
			}
		}
	}
	capacity = rapid.IntRange(0, 20).Draw(t, "capacity")
	counts, err := assortment.NewLaminar(rules)
	if err == nil {
		same, err = assortment.NewKnapsack(counts, weights, capacity)
	}
	fatal.If(t, err)
	return q, weights, capacity, same
}

// A shelf has the sets of a knapsack with the same rules, also when it is limited or lacks items.
func TestShelfIsAKnapsack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 7).Draw(t, "N")
		q, weights, capacity, same := drawShelf(t, n)
		s := onShelf(t, q, weights, capacity)
		c := vitrine.Constraint(s)
		if maximum := rapid.IntRange(0, 8).Draw(t, "limit"); maximum < n {
			var err [2]error
			var other vitrine.Constraint
			c, err[0] = s.Limit(maximum)
			other, err[1] = same.Limit(maximum)
			if err != [2]error{} {
				t.Fatal(err)
			}
			same = other.(*assortment.Knapsack)
		}
		sets := slices.DeleteFunc(subsets(n), func(s vitrine.Assortment) bool { return !same.Contains(s) })
		for _, s := range subsets(n) {
			if c.Contains(s) != same.Contains(s) {
				t.Fatalf("contains %v: %v", s, c.Contains(s))
			}
		}
		judgeOptimum(t, c, sets, n)
		if s.Table() > 0 && c == vitrine.Constraint(s) && q.Size > 0 {
			judgeHidden(t, c, sets, n)
		}
	})
}

// Many items of many weights: the best set is that of the knapsack of all items.
func TestShelfOfManyItems(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 8))
		n := 1 + rng.IntN([]int{50, 3000, 20_000}[seed%3])
		q := assortment.Quota{Size: 1 + rng.IntN(12)}
		rules := assortment.Rules{Items: n, Max: q.Size}
		if seed%2 == 0 {
			q.Limits = []assortment.Limit{{Group: make([]int32, n), Most: 1 + rng.IntN(2)}}
			rules.Groups = make([]assortment.Group, 1+rng.IntN(30))
		}
		u, r, weights := make([]float64, n), make([]float64, n), make([]int, n)
		for i := range n {
			u[i], r[i], weights[i] = rng.NormFloat64()-3, math.Exp(rng.NormFloat64()), rng.IntN(1+rng.IntN(60))
			for _, l := range q.Limits {
				g := rng.IntN(len(rules.Groups))
				l.Group[i] = int32(g)
				rules.Groups[g].Items, rules.Groups[g].Max = append(rules.Groups[g].Items, i), l.Most
			}
			if rng.IntN(20) == 0 {
				q.Exclude = append(q.Exclude, i)
			}
		}
		rules.Exclude = q.Exclude
		if seed%5 == 0 {
			r = nil
		}
		c, same := onShelf(t, q, weights, 100), knapsack(t, laminar(t, rules), weights, 100)
		s, value := assortment.Maximize(nil, c, u, r)
		_, want := assortment.Maximize(nil, same, u, r)
		if !same.Contains(s) || math.Abs(value-want) > 1e-12*want {
			t.Fatalf("seed %d: %v earns %v, the best set %v", seed, s, value, want)
		}
	}
}

// The best set of a few items earns what the best set of all does, or is not called the best.
func TestFewItemsOfAShelfSuffice(t *testing.T) {
	found, missed := [2]int{}, 0
	var f assortment.Few
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 5))
		n := 1 + rng.IntN(400)
		q := assortment.Quota{Size: 1 + rng.IntN(6)}
		if seed%2 == 0 {
			q.Limits = []assortment.Limit{{Group: groupsOf(n, 1+rng.IntN(9)), Most: rng.IntN(3)}}
		}
		weights, u, r := make([]int, n), make([]float64, n), make([]float64, n)
		tail := []float64{0, 0.1, 1, 3}[rng.IntN(4)]
		for i := range n {
			weights[i] = rng.IntN(12)
			u[i], r[i] = 2*rng.NormFloat64()-2+0.2*float64(weights[i])*float64(seed%3), math.Exp(tail*rng.NormFloat64())
			if rng.IntN(20) == 0 {
				q.Exclude = append(q.Exclude, i)
			}
		}
		if tail == 0 {
			r = nil
		}
		s := onShelf(t, q, weights, rng.IntN(20))
		size := max(2, n/16)
		screen := s.Screen(size)
		var largest []int
		for i := range n {
			if screen.Allows([]int{i}) {
				largest = append(largest, i)
			}
		}
		slices.SortStableFunc(largest, func(i, j int) int { return cmp.Compare(u[j], u[i]) })
		largest = largest[:min(size, len(largest))]
		slices.Sort(largest)
		if len(largest) == 0 {
			continue
		}
		_, want := assortment.Maximize(nil, s, u, r)
		got, ok := f.MaximizeShelf(s, r, largest, size, func(items []int) (some []float64) {
			for _, i := range items {
				some = append(some, u[i])
			}
			return some
		})
		if !ok {
			missed++
			continue
		}
		found[min(len(r), 1)]++
		if have := vitrine.ExpectedRevenue(got, u, r); !slices.IsSorted(got) || !s.Contains(got) || !(have >= want*(1-1e-9)) {
			t.Fatalf("seed %d, N = %d, %+v: %v earns %v, the best set %v", seed, n, q, got, have, want)
		}
	}
	if found[0] < 100 || found[1] < 500 || missed < 100 {
		t.Errorf("found %v times, missed %d times", found, missed)
	}
}

func TestShelvesThatAreRefused(t *testing.T) {
	for want, c := range map[string]struct {
		q        assortment.Quota
		kind     []int32
		weight   []int
		capacity int
	}{
		"capacity = -1: must not be negative":         {assortment.Quota{Size: 1}, []int32{0}, []int{1}, -1},
		"weight = -2: must not be negative":           {assortment.Quota{Size: 1}, []int32{0, 1}, []int{1, -2}, 5},
		"2 numbers of weights for 1 items":            {assortment.Quota{Size: 1}, []int32{0, 0}, []int{1}, 5},
		"at most -1 of a group: must not be negative": {assortment.Quota{Size: 1, Limits: []assortment.Limit{{Group: []int32{0}, Most: -1}}}, []int32{0}, []int{1}, 5},
	} {
		items := len(c.kind)
		if want[0] == '2' {
			items--
		}
		if _, err := assortment.NewShelf(items, c.q, assortment.Weights{Kind: c.kind, Of: c.weight}, c.capacity); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	const n = 100_000
	kind, weight := make([]int32, n), make([]int, n)
	for i := range n {
		kind[i], weight[i] = int32(i), 1_000_003+i
	}
	s, err := assortment.NewShelf(n, assortment.Quota{Size: 100}, assortment.Weights{Kind: kind, Of: weight}, 50_000_000)
	fatal.If(t, err)
	if bits := s.Table(); bits < 1<<32 {
		t.Errorf("a table of %v bits", bits)
	}
}

// The largest capacity leaves room for an item that every set includes.
func TestShelfOfTheLargestCapacity(t *testing.T) {
	s := onShelf(t, assortment.Quota{Size: 2, Include: []int{0}}, []int{3, 5}, math.MaxInt)
	if got := s.MaxGain(nil, []float64{1, 1}); !slices.Equal(got, vitrine.Assortment{0, 1}) {
		t.Errorf("the best set is %v", got)
	}
}

// The table of weights whose sum is no int is too large, as that of others.
func TestShelfOfLargeWeights(t *testing.T) {
	const large = math.MaxInt / 2
	q := assortment.Quota{Size: 3, Limits: []assortment.Limit{{Group: make([]int32, 4), Most: 3}}}
	if s := onShelf(t, q, []int{large, large, large, large - 1}, math.MaxInt-1); s.Table() < 1<<32 {
		t.Errorf("a table of %v bits", s.Table())
	}
	c := onShelf(t, q, []int{large, large, large, 0}, math.MaxInt-1)
	if s := c.MaxGain(nil, []float64{1, 2, 3, 4}); !slices.Equal(s, vitrine.Assortment{1, 2, 3}) {
		t.Errorf("%v is the best set", s)
	}
}
