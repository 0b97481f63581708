package assortment_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
	"vitrine/internal/fatal"
)

func knapsack(t testing.TB, counts *assortment.Laminar, weight []int, capacity int) *assortment.Knapsack {
	t.Helper()
	s := fatal.Or(assortment.NewKnapsack(counts, weight, capacity))(t)
	return s
}

func TestKnapsack(t *testing.T) {
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
		{"included without room for more", assortment.Rules{Min: 1, Max: 3, Include: []int{5}, Exclude: []int{3, 7}}, 9},
		{"nothing", assortment.Rules{}, 9},
		{"groups side by side", assortment.Rules{Max: noLimit, Groups: []assortment.Group{group("a", 0, 1, 0, 1, 3), group("b", 1, 2, 4, 6, 7)}}, 8},
		{"groups within groups", assortment.Rules{Min: 2, Max: 4, Groups: []assortment.Group{
			group("department", 1, 3, 0, 1, 2, 3, 4), group("category", 0, 1, 0, 1), group("other", 1, 2, 2, 3), group("far", 0, 1, 6, 7),
		}}, 9},
		{"included and excluded in groups", assortment.Rules{Max: 4, Include: []int{2}, Exclude: []int{6}, Groups: []assortment.Group{group("a", 1, 2, 0, 1, 2), group("b", 1, 1, 6, 4, 5)}}, 12},
	} {
		t.Run(f.name, func(t *testing.T) {
			f.rules.Items = len(weight)
			assortmenttest.TestConstraint(t, knapsack(t, laminar(t, f.rules), weight, f.capacity), len(weight))
		})
	}
	t.Run("40 items", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(4, 4))
		weight := make([]int, 40)
		for i := range weight {
			weight[i] = 6 * rng.IntN(8)
		}
		assortmenttest.TestConstraint(t, knapsack(t, laminar(t, assortment.Rules{Items: 40, Min: 2, Max: 7}), weight, 100), 40)
	})
	t.Run("no items", func(t *testing.T) {
		assortmenttest.TestConstraint(t, knapsack(t, laminar(t, assortment.Rules{Max: 3}), nil, 5), 0)
	})
}

func TestKnapsackIsItsRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 7).Draw(t, "N")
		r := drawRules(t, n)
		weight := rapid.SliceOfN(rapid.IntRange(0, 6), n, n).Draw(t, "weights")
		unit := rapid.SampledFrom([]int{1, 3}).Draw(t, "unit")
		for i := range weight {
			weight[i] *= unit
		}
		lightest := 0 // of the sets that obey the other rules
		for k, s := range slices.DeleteFunc(subsets(n), func(s vitrine.Assortment) bool { return !obeys(r, s) }) {
			total := 0
			for _, i := range s {
				total += weight[i]
			}
			if k == 0 || total < lightest {
				lightest = total
			}
		}
		capacity := rapid.IntRange(max(0, lightest-1), lightest+12).Draw(t, "capacity")
		obeys := func(s vitrine.Assortment) bool {
			total := 0
			for _, i := range s {
				total += weight[i]
			}
			return total <= capacity && obeys(r, s)
		}
		sets := slices.DeleteFunc(subsets(n), func(s vitrine.Assortment) bool { return !obeys(s) })
		var c *assortment.Knapsack
		counts, err := assortment.NewLaminar(r)
		if err == nil {
			c, err = assortment.NewKnapsack(counts, weight, capacity)
		}
		if err != nil {
			if len(sets) > 0 {
				t.Fatalf("refused though %v obeys: %v", sets[0], err)
			}
			return
		}
		if len(sets) == 0 {
			t.Fatal("accepted though no set obeys")
		}
		for _, s := range subsets(n) {
			if c.Contains(s) != obeys(s) {
				t.Fatalf("contains %v: %v", s, c.Contains(s))
			}
		}
		judgeOptimum(t, c, sets, n)
		judgeHidden(t, c, sets, n)
	})
}

// Draws are judged of seven items at most.
func TestKnapsackDraws(t *testing.T) {
	weight := []int{3, 1, 4, 0, 5, 2, 2}
	for k, rules := range []assortment.Rules{
		{Max: 3},
		{Min: 2, Max: 4, Include: []int{1}, Groups: []assortment.Group{group("a", 1, 2, 0, 1, 2, 3), group("b", 0, 1, 0, 2), group("c", 0, 1, 4, 5)}},
	} {
		t.Run(fmt.Sprint("family ", k), func(t *testing.T) {
			rules.Items = len(weight)
			assortmenttest.TestConstraint(t, knapsack(t, laminar(t, rules), weight, 8), len(weight))
		})
	}
}

func TestKnapsacksThatAreRefused(t *testing.T) {
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
		`capacity = 8: the lightest set that the other rules allow weighs more: item "a" weighs 4, item "d" weighs 7`:                    {assortment.Rules{Max: 5, Include: []int{0, 3}}, weight, 8},
		`capacity = 8: the lightest set that the other rules allow weighs more: item "a" weighs 4, item "b" weighs 3, item "c" weighs 2`: {assortment.Rules{Min: 3, Max: 5}, weight, 8},
		`capacity = 8: the lightest set that the other rules allow weighs more: item "c" weighs 2, item "d" weighs 7`:                    {assortment.Rules{Min: 2, Max: 5, Include: []int{3}}, weight, 8},
		`capacity = 9: the lightest set that the other rules allow weighs more: item "c" weighs 2, item "d" weighs 7, item "e" weighs 7`: {assortment.Rules{Max: 5, Include: []int{3}, Groups: []assortment.Group{group("group d and e", 2, 2, 3, 4), group("group shoes", 1, 2, 1, 2)}}, weight, 9},
	} {
		if _, err := assortment.NewKnapsack(laminar(t, five(c.rules)), c.weight, c.capacity); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v\n want %s", err, want)
		}
	}
}

// Tables that would not fit in memory are refused, but not where the space
// bounds nothing, or where units or the number of items make them small.
func TestLargeTablesAreRefused(t *testing.T) {
	const n = 1500
	rng := rand.New(rand.NewPCG(6, 6))
	weight := make([]int, n)
	total := 0
	for i := range weight {
		weight[i] = 1_000_003 + rng.IntN(100_000)
		total += weight[i]
	}
	all := laminar(t, assortment.Rules{Items: n, Max: noLimit})
	_, err := assortment.NewKnapsack(all, weight, total/20)
	want := "capacity = " + fmt.Sprint(total/20) + ": too large for the exact program: its table would have "
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), " MB, more than 537: measure weights in larger units") {
		t.Errorf("error %v, want %s", err, want)
	}
	numbered := laminar(t, assortment.Rules{Items: n, Min: 3, Max: noLimit})
	if _, err := assortment.NewKnapsack(numbered, weight, total/20); err == nil || !strings.HasSuffix(err.Error(), ", or bound fewer numbers of items, which multiply it by up to 4") {
		t.Errorf("error %v, want what multiplies the table", err)
	}
	knapsack(t, all, weight, total)
	knapsack(t, laminar(t, assortment.Rules{Items: n, Max: 5}), weight, total/20)
	for i := range weight {
		weight[i] = weight[i] / 100_000 * 100_000
	}
	knapsack(t, all, weight, total/20)
}

// One unit of space more or less changes nothing but what fits; a large shelf
// of many items is compared with its neighbours.
func TestKnapsackOfManyItems(t *testing.T) {
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
	for _, rules := range []assortment.Rules{{Max: noLimit}, {Max: 20}, {Min: 3, Max: noLimit}, {Max: noLimit, Groups: brands}} {
		rules.Items = n
		c := knapsack(t, laminar(t, rules), weight, capacity)
		s, value := assortment.Maximize(nil, c, u, r)
		if !c.Contains(s) || value <= 0 {
			t.Fatalf("%+v: %v earns %v", rules, s, value)
		}
	}
}

func BenchmarkKnapsack(b *testing.B) {
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
		"free": {Max: noLimit}, "at most 20": {Max: 20}, "at least 5": {Min: 5, Max: noLimit}, "1 of a brand": {Max: noLimit, Groups: brands},
	} {
		rules.Items = n
		c := knapsack(b, laminar(b, rules), weight, 1000)
		b.Run("C=1000,"+name, func(b *testing.B) {
			dst := make(vitrine.Assortment, 0, n)
			b.ReportAllocs()
			for b.Loop() {
				assortment.Maximize(dst, c, u, r)
			}
		})
	}
}
