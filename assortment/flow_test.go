package assortment_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
	"vitrine/internal/fatal"
	"vitrine/internal/panics"
)

func crossing(t testing.TB, brand, category, brandMax, categoryMax []int, maximum int) *assortment.Quota {
	t.Helper()
	r := assortment.Rules{Items: len(brand), Max: max(maximum, 0)}
	for side, of := range [][]int{brand, category} {
		most := [][]int{brandMax, categoryMax}[side]
		groups := make([]assortment.Group, len(most))
		for k, h := range most {
			groups[k] = assortment.Group{Name: fmt.Sprintf("%s %d", []string{"brand", "category"}[side], k), Max: h}
		}
		for i, k := range of {
			groups[k].Items = append(groups[k].Items, i)
		}
		r.Groups = append(r.Groups, groups...)
	}
	return fatal.Or(assortment.NewQuota(r))(t)
}

func TestCrossing(t *testing.T) {
	for name, c := range map[string]*assortment.Quota{
		"two of each brand, one of each category": crossing(t, []int{0, 0, 0, 1, 1, 1, 2, 2},
			[]int{0, 1, 2, 0, 1, 2, 0, 1}, []int{2, 2, 2}, []int{1, 1, 1}, 8),
		"one of each, and two in all": crossing(t, []int{0, 1, 0, 1, 2, 2, 0, 1},
			[]int{0, 0, 1, 1, 0, 1, 1, 0}, []int{1, 1, 1}, []int{2, 1}, 2),
		"many in a cell": crossing(t, []int{0, 0, 0, 0, 0, 1, 1, 1},
			[]int{0, 0, 0, 1, 1, 1, 0, 0}, []int{3, 2}, []int{3, 1}, 4),
		"a brand that is not shown": crossing(t, []int{0, 0, 0, 1, 1, 1, 1, 1},
			[]int{0, 1, 2, 3, 4, 0, 1, 2}, []int{0, 4}, []int{1, 1, 1, 1, 1}, 5),
		"no bound but the size": crossing(t, make([]int, 8), make([]int, 8), []int{8}, []int{8}, 3),
	} {
		t.Run(name, func(t *testing.T) { assortmenttest.TestConstraint(t, c, 8) })
	}
	t.Run("forty items", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		brand, category := make([]int, 40), make([]int, 40)
		for i := range brand {
			brand[i], category[i] = rng.IntN(6), rng.IntN(5)
		}
		assortmenttest.TestConstraint(
			t, crossing(t, brand, category, []int{2, 1, 3, 2, 1, 2}, []int{3, 2, 2, 1, 3}, 9), 40,
		)
	})
	t.Run("no items", func(t *testing.T) { assortmenttest.TestConstraint(t, crossing(t, nil, nil, nil, nil, 3), 0) })
}

// Augmenting paths go back and forth: in a chain of items, where neighbours share a brand or a category, the best set
// is every other item, and one more item changes all of them.
func TestCrossingChain(t *testing.T) {
	const n = 60
	brand, category := make([]int, 2*n+1), make([]int, 2*n+1)
	ones := make([]int, n+1)
	gain := make([]float64, 2*n+1)
	for i := range brand {
		brand[i], category[i] = i/2, (i+1)/2
		gain[i] = 1
		if i%2 == 1 {
			gain[i] = 1.5 // taken first
		}
	}
	for k := range ones {
		ones[k] = 1
	}
	c := crossing(t, brand, category, ones, ones, 2*n+1)
	if got := c.MaxGain(nil, gain); len(got) != n {
		t.Errorf("%d items, want the %d odd ones", len(got), n)
	}
	for i := range gain {
		if i%2 == 1 {
			gain[i] = 1 + 0.5/n
		}
	}
	// n(1 + 1/2n) = n + ½ is less than the n + 1 of the even ones.
	if got := c.MaxGain(nil, gain); len(got) != n+1 {
		t.Errorf("%d items, want the %d even ones", len(got), n+1)
	}
}

func TestCrossingErrors(t *testing.T) {
	c := crossing(t, []int{0, 1}, []int{0, 0}, []int{1, 1}, []int{2}, 2)
	if c.Contains([]int{2}) {
		t.Error("an item that there is not")
	}
	if l, err := c.Limit(1); err != nil || l.Contains([]int{0, 1}) || !l.Contains([]int{1}) {
		t.Errorf("limited: %v, %v", l, err)
	}
	if l, err := c.Limit(5); err != nil || l != c {
		t.Errorf("not limited: %v, %v", l, err)
	}
	if panics.Value(func() { c.MaxGain(nil, []float64{1}) }) == nil {
		t.Error("gains of another number of items")
	}
}

// nestedGroups draws groups of n items, any two of them nested or disjoint.
func nestedGroups(t *rapid.T, n int, name string) (groups []assortment.Group) {
	var divide func(items []int, depth int)
	divide = func(items []int, depth int) {
		if len(items) == 0 || depth == 3 {
			return
		}
		parts := make([][]int, rapid.IntRange(1, 3).Draw(t, "parts"))
		for _, i := range items {
			if k := rapid.IntRange(0, len(parts)).Draw(t, "part"); k < len(parts) {
				parts[k] = append(parts[k], i)
			}
		}
		for _, part := range parts {
			if len(part) > 0 {
				groups = append(groups, assortment.Group{Name: fmt.Sprintf("%s %d", name, len(groups)),
					Items: part, Max: rapid.IntRange(0, 3).Draw(t, "most")})
				divide(part, depth+1)
			}
		}
	}
	divide(numbers(n), rapid.IntRange(1, 2).Draw(t, "depth"))
	return groups
}

// With two hierarchies, pinned and excluded items and a minimum size, the family contains exactly the sets that obey
// the rules, and its best set gains as much as exhaustive search finds. If no set obeys the rules, NewQuota fails.
func TestCrossedRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "N")
		r := drawCrossing(t, n)
		// Use gains of a few bits, so that sums are exact and ties occur.
		gain := rapid.SliceOfN(
			rapid.Map(rapid.IntRange(-8, 16), func(v int) float64 { return float64(v) / 4 }), n, n,
		).Draw(t, "gain")
		best := math.Inf(-1)
		var sets []vitrine.Assortment
		for _, s := range subsets(n) {
			sum := 0.0
			for _, i := range s {
				sum += gain[i]
			}
			if obeys(r, s) {
				sets, best = append(sets, s), max(best, sum)
			}
		}
		c, err := assortment.NewQuota(r)
		if (err == nil) != (len(sets) > 0) {
			t.Fatalf("%+v: %v, and exhaustive search finds %d sets", r, err, len(sets))
		}
		if err != nil {
			return
		}
		s, sum := c.MaxGain(nil, gain), 0.0
		for _, i := range s {
			sum += gain[i]
		}
		if !obeys(r, s) || !c.Contains(s) || sum != best {
			t.Fatalf("%+v with the gains %v: %v gains %v, want %v", r, gain, s, sum, best)
		}
	})
}

// Groups that cross in three ways are rejected, and the error names one group of each way. Groups without effect do not
// count.
func TestThreeWaysCross(t *testing.T) {
	group := func(name string, most int, items ...int) assortment.Group {
		return assortment.Group{Name: name, Max: most, Items: items}
	}
	r := assortment.Rules{Items: 4, Max: 4, Groups: []assortment.Group{
		group("brand a", 1, 0, 1), group("category x", 1, 1, 2), group("colour red", 1, 0, 2),
	}}
	_, err := assortment.NewQuota(r)
	var crossing *assortment.CrossingError
	if !errors.As(err, &crossing) || len(crossing.Groups) != 3 ||
		!strings.Contains(err.Error(), "drop one of these limits") {
		t.Errorf("three ways: %v", err)
	}
	r.Groups[2].Max = 2
	if _, err := assortment.NewQuota(r); err != nil {
		t.Errorf("the third one bounds nothing: %v", err)
	}
	for want, change := range map[string]func(r *assortment.Rules){
		"brand a: at most 1, but 2 items are demanded: item 0 is included, item 1 is included":    func(r *assortment.Rules) { r.Include = []int{1, 0} },
		"size: at most 1, but 2 items are demanded: item 0 is included, item 2 is included":       func(r *assortment.Rules) { r.Include, r.Max = []int{0, 2}, 1 },
		"item 3 is both included and excluded":                                                    func(r *assortment.Rules) { r.Include, r.Exclude = []int{3}, []int{3} },
		"brand a: at least 1, but the other bounds leave no more than 0":                          func(r *assortment.Rules) { r.Groups[0].Min, r.Groups[1].Min, r.Max = 1, 1, 1; r.Exclude = []int{1} },
		"size: at least 4, but no more than 3 can be shown: it has 4 items, at most 1 of brand a": func(r *assortment.Rules) { r.Min = 4 },
		"brand a has item 1 twice":             func(r *assortment.Rules) { r.Groups[0].Items = []int{1, 1} },
		"item 4 is outside [0, 4)":             func(r *assortment.Rules) { r.Exclude = []int{4} },
		"category x: item 7 is outside [0, 4)": func(r *assortment.Rules) { r.Groups[1].Items = []int{1, 7} },
	} {
		r := assortment.Rules{
			Items: 4, Max: 4, Groups: []assortment.Group{group("brand a", 1, 0, 1), group("category x", 1, 1, 2)},
		}
		change(&r)
		if _, err := assortment.NewQuota(r); fmt.Sprint(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// A search without steps left stops, and its Work reports so.
func TestCrossingWork(t *testing.T) {
	rules := assortment.Rules{Items: 6, Max: 6}
	for k := range 3 {
		rules.Groups = append(rules.Groups, assortment.Group{Name: "brand", Max: 1, Items: []int{2 * k, 2*k + 1}},
			assortment.Group{Name: "category", Max: 1, Items: []int{k, k + 3}})
	}
	gain := []float64{1, 1, 1, 1, 1, 1}
	for _, c := range []struct{ steps, items int }{{1000, 3}, {6, 0}, {0, 0}} {
		work := assortment.NewWork(c.steps)
		rules.Work = work
		family := fatal.Or(assortment.NewQuota(rules))(t)
		if s := family.MaxGain(nil, gain); len(s) != c.items || work.Exceeded() != (c.items < 3) {
			t.Errorf("with %d steps: %v, exceeded: %v", c.steps, s, work.Exceeded())
		}
	}
}

// Among many items the search begins with a few. For any distribution of gains it must find the same set as a search
// among the best two items of each cell, which are few enough to be searched in full.
func TestCrossingBeginsWithFewItems(t *testing.T) {
	const items, brands, categories, size = 20_000, 40, 30, 30
	for seed := range uint64(15) {
		rng := rand.New(rand.NewPCG(seed, 8))
		brand, category, gain := make([]int, items), make([]int, items), make([]float64, items)
		byCell := map[[2]int][]int{}
		for i := range gain {
			brand[i], category[i] = rng.IntN(brands), rng.IntN(categories)
			gain[i] = rng.NormFloat64()
			// most of the best items share few brands or few categories
			if seed%3 == 0 && brand[i] < 3 || seed%3 == 1 && category[i] < 2 {
				gain[i] += 2 + float64(seed%5)/2
			}
			at := [2]int{brand[i], category[i]}
			byCell[at] = append(byCell[at], i)
		}
		var list []int
		for _, cell := range byCell {
			slices.SortFunc(cell, func(a, b int) int { return cmp.Compare(gain[b], gain[a]) })
			list = append(list, cell[:2]...)
		}
		slices.Sort(list)
		pick := func(of []int) (picked []int) {
			for _, i := range list {
				picked = append(picked, of[i])
			}
			return picked
		}
		var few []float64
		for _, i := range list {
			few = append(few, gain[i])
		}
		most := [2][]int{slices.Repeat([]int{2}, brands), slices.Repeat([]int{1 + int(seed%2)}, categories)}
		total := func(s vitrine.Assortment, gain []float64) (sum float64) {
			for _, i := range s {
				sum += gain[i]
			}
			return sum
		}
		all := total(crossing(t, brand, category, most[0], most[1], size).MaxGain(nil, gain), gain)
		best := total(crossing(t, pick(brand), pick(category), most[0], most[1], size).MaxGain(nil, few), few)
		if math.Abs(all-best) > 1e-9 {
			t.Errorf("seed %d: the best set gains %v among %d items, and %v among all", seed, best, len(list), all)
		}
	}
}

var crossingTimes = flag.Bool(
	"crossing.times", false, "print how long Maximize takes among many items with limits by brand and by category",
)

// Among many items a decision takes few steps: one pass over the items, plus a few passes over the cells per item
// shown.
func TestCrossingAmongManyItems(t *testing.T) {
	for _, c := range []struct{ items, brands, categories, size int }{{10_000, 300, 40, 10},
		{10_000, 2000, 300, 20}, {100_000, 2000, 60, 20}, {100_000, 20_000, 500, 20}, {100_000, 5000, 200, 100}} {
		if c.items > 10_000 && !*crossingTimes {
			continue
		}
		rng := rand.New(rand.NewPCG(7, uint64(c.items)))
		brand, category, most := make([]int32, c.items), make([]int32, c.items), [2]int{2, 3}
		u, r := make([]float64, c.items), make([]float64, c.items)
		for i := range u {
			// a few are large
			brand[i], category[i] = int32(float64(c.brands)*math.Pow(rng.Float64(), 2)),
				int32(float64(c.categories)*math.Pow(rng.Float64(), 2))
			u[i], r[i] = rng.NormFloat64()-3+math.Sin(float64(brand[i]))+math.Sin(float64(category[i])),
				math.Exp(rng.NormFloat64())
		}
		rules := assortment.Rules{Items: c.items, Max: c.size}
		rules.Limits = []assortment.Limit{{Group: brand, Max: most[0]}, {Group: category, Max: most[1]}}
		begin := time.Now()
		const allowed = 1 << 30
		work := assortment.NewWork(allowed)
		rules.Work = work
		family := fatal.Or(assortment.NewQuota(rules))(t)
		built := time.Since(begin)
		s, revenue, calls := assortment.MaximizeIterations(nil, family, u, r)
		if !family.Contains(s) || len(s) == 0 || work.Exceeded() {
			t.Errorf("%+v: %d items, exceeded: %v", c, len(s), work.Exceeded())
		}
		if *crossingTimes {
			begin = time.Now()
			assortment.Maximize(s, family, u, r)
			t.Logf("%+v: %v to build, %v for %d calls, revenue %v", c, built, time.Since(begin), calls, revenue)
		}
	}
}
