package assortment_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/panics"
)

func quota(t fatal.TB, r assortment.Rules) *assortment.Quota {
	return fatal.Or(assortment.NewQuota(r))(t)
}

// weighed returns r with weights and a capacity.
func weighed(r assortment.Rules, weights []int, capacity int) assortment.Rules {
	r.Items, r.Weights = len(weights), assortment.WeightsOf(weights, capacity)
	return r
}

func group(name string, minimum, maximum int, items ...int) assortment.Group {
	return assortment.Group{Name: name, Items: items, Min: minimum, Max: maximum}
}

const noLimit = assortment.NoLimit

// Every family covers 8 items.
var families = []struct {
	name  string
	rules assortment.Rules
}{
	{"no rule", assortment.Rules{Max: noLimit}},
	{"size", assortment.Rules{Min: 2, Max: 4}},
	{"exact size", assortment.Rules{Min: 3, Max: 3}},
	{"every item", assortment.Rules{Min: 8, Max: noLimit}},
	{"nothing", assortment.Rules{}},
	{"at most of groups", assortment.Rules{
		Max: noLimit, Groups: []assortment.Group{group("a", 0, 1, 0, 3, 5), group("b", 0, 2, 1, 2, 7, 6)},
	}},
	{"at least of groups", assortment.Rules{
		Max: noLimit, Groups: []assortment.Group{group("a", 2, noLimit, 0, 3, 5), group("b", 1, 2, 1, 2)},
	}},
	{"groups and size", assortment.Rules{
		Min: 2, Max: 3, Groups: []assortment.Group{group("a", 1, 2, 7, 3, 5), group("b", 0, 1, 1, 2, 4)},
	}},
	{"nested groups", assortment.Rules{Min: 1, Max: 4, Groups: []assortment.Group{
		group("department", 2, 3, 0, 1, 2, 3, 4), group("category", 0, 1, 0, 1),
		group("other", 1, 2, 2, 3), group("far", 0, 1, 6, 7),
	}}},
	{"a chain", assortment.Rules{Max: noLimit, Groups: []assortment.Group{
		group("1", 0, 1, 5), group("3", 1, 2, 5, 1, 0), group("3 again", 1, 3, 0, 1, 5),
		group("5", 2, 3, 5, 1, 0, 2, 3), group("empty", 0, 0),
	}}},
	{"included", assortment.Rules{Max: 4, Include: []int{2, 6}}},
	{"excluded", assortment.Rules{Max: 2, Exclude: []int{0, 1, 7}}},
	{"all excluded", assortment.Rules{Max: 3, Exclude: []int{0, 1, 2, 3, 4, 5, 6, 7}}},
	{"all included", assortment.Rules{Max: noLimit, Include: []int{0, 1, 2, 3, 4, 5, 6, 7}}},
	{"included and no place left", assortment.Rules{Min: 2, Max: 2, Include: []int{2, 6}}},
	{"included in full groups", assortment.Rules{Max: noLimit, Include: []int{2, 6}, Exclude: []int{0},
		Groups: []assortment.Group{group("a", 1, 1, 2, 3, 4), group("b", 1, 3, 0, 6, 7)}}},
	{"everything", assortment.Rules{Min: 3, Max: 5, Include: []int{1}, Exclude: []int{4}, Groups: []assortment.Group{
		group("department", 2, 3, 0, 1, 2, 3, 4), group("category", 1, 1, 3, 4, 2), group("far", 0, 1, 6, 7),
	}}},
}

func TestQuota(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			f.rules.Items = 8
			assortmenttest.TestConstraint(t, quota(t, f.rules), 8)
		})
	}
	for _, n := range []int{0, 1, 3, 7, 40} {
		t.Run(fmt.Sprintf("at most 3 of %d", n), func(t *testing.T) {
			assortmenttest.TestConstraint(t, quota(t, assortment.Rules{Items: n, Max: 3}), n)
		})
	}
}

// drawRules draws rules for n items: a tree of groups, made by cutting intervals of a permutation, and bounds, many of
// them infeasible.
func drawRules(t *rapid.T, n int) assortment.Rules {
	r := assortment.Rules{Items: n, Max: noLimit}
	items := rapid.Permutation(numbers(n)).Draw(t, "items")
	bounds := func(size int) (minimum, maximum int) {
		minimum, maximum = rapid.IntRange(0, max(0, size-1)).Draw(t, "least"), rapid.IntRange(0, size).Draw(t, "most")
		return min(minimum, maximum), max(maximum, rapid.IntRange(0, 2).Draw(t, "at least"))
	}
	var cut func(items []int, depth int)
	cut = func(items []int, depth int) {
		if len(items) == 0 || depth > 3 {
			return
		}
		if depth > 0 && rapid.Bool().Draw(t, "bounded") {
			minimum, maximum := bounds(len(items))
			r.Groups = append(r.Groups, group(fmt.Sprint("group ", items), minimum, maximum, items...))
		}
		at := rapid.IntRange(0, len(items)).Draw(t, "cut")
		cut(items[:at], depth+1)
		cut(items[at:], depth+1)
	}
	cut(items, 0)
	r.Min, r.Max = bounds(n)
	for i := range n {
		switch rapid.IntRange(0, 9).Draw(t, "state") {
		case 0:
			r.Include = append(r.Include, i)
		case 1:
			r.Exclude = append(r.Exclude, i)
		}
	}
	return r
}

func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// obeys implements the definition of the family.
func obeys(r assortment.Rules, s vitrine.Assortment) bool {
	in := func(items []int) (n int) {
		for _, i := range items {
			if slices.Contains(s, i) {
				n++
			}
		}
		return n
	}
	for _, g := range r.Groups {
		if n := in(g.Items); n < g.Min || n > g.Max {
			return false
		}
	}
	for _, l := range r.Limits {
		shown := map[int32]int{}
		for _, i := range s {
			if shown[l.Group[i]]++; l.Group[i] >= 0 && shown[l.Group[i]] > l.Max {
				return false
			}
		}
	}
	if w := r.Weights; w != nil {
		total := 0
		for _, i := range s {
			total += w.Of[w.Kind[i]]
		}
		if total > w.Capacity {
			return false
		}
	}
	return len(s) >= r.Min && len(s) <= r.Max && in(r.Include) == len(r.Include) && in(r.Exclude) == 0
}

// subsets returns all sets of n items.
func subsets(n int) []vitrine.Assortment { return assortmenttest.Sets(assortment.AtMost(n), n) }

// NewQuota succeeds exactly if some set obeys the rules. The family then contains exactly these sets, its best set is
// the best of them, and its draws are uniform. The same holds for families that are limited or lack items.
func TestQuotaIsItsRules(t *testing.T) {
	for name, draw := range map[string]func(t *rapid.T, n int) assortment.Rules{
		"groups": drawRules, "numbered": drawLimits, "crossing": drawCrossing,
	} {
		for _, weighted := range []bool{false, true} {
			if weighted && name == "crossing" {
				continue
			}
			for _, plain := range []int{2048, 0} {
				t.Run(fmt.Sprintf("%s, weighted: %v, plain from %d", name, weighted, plain), func(t *testing.T) {
					defer assortment.SetPlainItems(plain)()
					rapid.Check(t, func(t *rapid.T) {
						n := rapid.IntRange(0, 7).Draw(t, "N")
						r := draw(t, n)
						if weighted {
							weigh(t, &r)
						}
						q := judgeFamily(t, r)
						if q == nil {
							return
						}
						maximum, floor := rapid.IntRange(0, n+1).Draw(t, "limit"),
							rapid.Float64Range(0, 2).Draw(t, "floor")
						revenue := rapid.SliceOfN(rapid.Float64Range(0, 9), n, n).Draw(t, "revenue")
						smaller, err := q.Limit(maximum)
						r.Max = min(r.Max, maximum)
						judgeSets(t, r, smaller, err)
						if err != nil {
							return
						}
						smaller, err = assortment.Floor(smaller, revenue, floor)
						r.Exclude = slices.Clone(r.Exclude)
						for i, v := range revenue {
							if v < floor {
								r.Exclude = append(r.Exclude, i)
							}
						}
						judgeSets(t, r, smaller, err)
					})
				})
			}
		}
	}
}

// judgeFamily compares the family of the rules with exhaustive search. It returns nil if no set obeys them.
func judgeFamily(t *rapid.T, r assortment.Rules) *assortment.Quota {
	q, err := assortment.NewQuota(r)
	sets := judgeSets(t, r, q, err)
	if len(sets) == 0 {
		return nil
	}
	judgeOptimum(t, q, sets, r.Items)
	judgeHidden(t, q, sets, r.Items)
	l, ok := assortment.SamplerOf(q)
	if !ok {
		return q
	}
	nonempty := len(sets)
	if len(sets[0]) == 0 {
		nonempty--
	}
	if p := l.Propensity(r.Items); math.Abs(p*float64(max(nonempty, 1))-1) > 1e-12 {
		t.Fatalf("propensity %v of %d nonempty sets", p, nonempty)
	}
	if s := l.Sample(nil, r.Items, rand.New(rand.NewPCG(1, 1))); nonempty > 0 && (len(s) == 0 || !obeys(r, s)) {
		t.Fatalf("drew %v", s)
	}
	return q
}

// judgeSets compares a family with the sets that obey the rules, and returns these sets.
func judgeSets(t *rapid.T, r assortment.Rules, c vitrine.Constraint, err error) []vitrine.Assortment {
	sets := slices.DeleteFunc(subsets(r.Items), func(s vitrine.Assortment) bool { return !obeys(r, s) })
	switch {
	case err != nil && len(sets) > 0:
		t.Fatalf("%+v: refused though %v obeys: %v", r, sets[0], err)
	case err == nil && len(sets) == 0:
		t.Fatalf("%+v: accepted though no set obeys", r)
	case err != nil:
		return nil
	}
	for _, s := range subsets(r.Items) {
		expect.Equal(fatal.T(t), c.Contains(s), obeys(r, s), r, "contains", s)
	}
	return sets
}

// drawLimits draws rules with numbered, nested groups.
func drawLimits(t *rapid.T, n int) assortment.Rules {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	r, _ := nestedRules(rng, max(n, 1))
	if n == 0 {
		r.Limits, r.Include, r.Exclude = nil, nil, nil
	}
	r.Items = n
	if rng.IntN(3) == 0 {
		r.Min = rng.IntN(n + 1)
	}
	return r
}

// drawCrossing draws rules with two hierarchies, pinned and excluded items and a minimum size.
func drawCrossing(t *rapid.T, n int) assortment.Rules {
	pick := func(name string) []int {
		if n == 0 {
			return nil
		}
		return rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 2).Draw(t, name)
	}
	r := assortment.Rules{Items: n, Max: rapid.IntRange(0, n).Draw(t, "K"), Exclude: pick("exclude")}
	r.Include = slices.Compact(slices.Sorted(slices.Values(pick("include"))))
	r.Groups = append(nestedGroups(t, n, "brand"), nestedGroups(t, n, "category")...)
	for k := range r.Groups {
		if g := &r.Groups[k]; rapid.IntRange(0, 3).Draw(t, "demands") == 0 {
			g.Min = rapid.IntRange(0, min(g.Max, 2)).Draw(t, "least of a group")
		}
	}
	switch rapid.IntRange(0, 2).Draw(t, "fill") {
	case 1:
		r.Min = rapid.IntRange(0, r.Max).Draw(t, "least")
	case 2: // as many as the other rules allow, which keeps items out
		for _, s := range subsets(n) {
			if obeys(r, s) {
				r.Min = max(r.Min, len(s))
			}
		}
	}
	return r
}

// weigh adds weights and a tight capacity to the rules.
func weigh(t *rapid.T, r *assortment.Rules) {
	weights := rapid.SliceOfN(rapid.IntRange(0, 6), r.Items, r.Items).Draw(t, "weights")
	unit := rapid.SampledFrom([]int{1, 3}).Draw(t, "unit")
	for i := range weights {
		weights[i] *= unit
	}
	lightest := -1 // weight of the lightest set that obeys the other rules
	for _, s := range subsets(r.Items) {
		total := 0
		for _, i := range s {
			total += weights[i]
		}
		if obeys(*r, s) && (lightest < 0 || total < lightest) {
			lightest = total
		}
	}
	r.Weights = assortment.WeightsOf(
		weights, rapid.IntRange(max(0, lightest-1), max(0, lightest)+12).Draw(t, "capacity"),
	)
}

// judgeOptimum compares the optimum with the best of the sets.
func judgeOptimum(t *rapid.T, c vitrine.Constraint, sets []vitrine.Assortment, n int) {
	widths := []float64{1, 15, 200, 700}
	if !c.Contains(nil) {
		widths = widths[:3] // see Maximize
	}
	width := rapid.SampledFrom(widths).Draw(t, "width")
	u := rapid.SliceOfN(rapid.Float64Range(-width, width), n, n).Draw(t, "u")
	r := rapid.SliceOfN(rapid.OneOf(rapid.Just(0.0), rapid.Just(1.0), rapid.Float64Range(0, 10)), n, n).Draw(t, "r")
	s, value := assortment.Maximize(nil, c, u, r)
	if best := assortmenttest.Best(sets, u, r); value < best*(1-1e-13) {
		t.Fatalf("%v earns %v, the best set %v", s, value, best)
	}
}

// A bound already implied by the size crosses no group.
func TestBoundsThatTheSizeImplies(t *testing.T) {
	quota(t, assortment.Rules{
		Items: 5, Max: 2, Groups: []assortment.Group{group("a", 0, 1, 0, 1, 2), group("b", 0, 2, 2, 3, 4)},
	})
}

// judgeHidden checks the hidden items against the sets.
func judgeHidden(t *rapid.T, c vitrine.Constraint, sets []vitrine.Assortment, n int) {
	hidden := assortment.NeverShown(c, n)
	for i := range n {
		shown := slices.ContainsFunc(sets, func(s vitrine.Assortment) bool { return slices.Contains(s, i) })
		if said := hidden != nil && hidden[i]; said == shown {
			t.Fatalf("item %d: hidden %v, in a set %v", i, said, shown)
		}
	}
}

func TestRulesThatNoSetObeys(t *testing.T) {
	ids := []string{"ant", "bee", "cat", "dog", "elk"}
	name := func(i int) string { return fmt.Sprintf("item %q", ids[i]) }
	shoes, hats := group("group shoes", 0, 2, 0, 1, 2), group("group hats", 0, 1, 3, 4)
	with := func(g assortment.Group, minimum, maximum int) assortment.Group {
		g.Min, g.Max = minimum, maximum
		return g
	}
	groups := func(g ...assortment.Group) []assortment.Group { return g }
	for want, r := range map[string]assortment.Rules{
		`size: at least 4 and at most 3: the bounds exclude each other`:     {Min: 4, Max: 3},
		`size: at least -1: must not be negative`:                           {Min: -1, Max: 3},
		`size: at most -1: must not be negative`:                            {Max: -1},
		`size: at least 6, but no more than 5 can be shown: it has 5 items`: {Min: 6, Max: 9},
		`size: at least 5, but no more than 3 can be shown: it has 5 items, at most 2 of group shoes, at most 1 ` +
			`of group hats`: {Min: 5, Max: 9, Groups: groups(shoes, hats)},
		`size: at most 2, but 3 items are demanded: item "dog" is included, at least 2 of group shoes`: {
			Max: 2, Include: []int{3}, Groups: groups(with(shoes, 2, 3)),
		},
		`group shoes: at most 1, but 2 items are demanded: item "ant" is included, item "cat" is included`: {
			Max: 5, Include: []int{2, 0}, Groups: groups(with(shoes, 0, 1)),
		},
		`group shoes: at least 2, but no more than 1 can be shown: it has 3 items, 2 of them excluded`: {
			Max: 5, Exclude: []int{0, 1}, Groups: groups(with(shoes, 2, 3)),
		},
		`item "bee" is both included and excluded`: {Max: 5, Include: []int{1}, Exclude: []int{0, 1}},
		`item 5 is outside [0, 5)`:                 {Max: 5, Include: []int{5}},
		`group shoes: item -1 is outside [0, 5)`:   {Max: 5, Groups: groups(group("group shoes", 0, 1, -1))},
		`group shoes has item "cat" twice`:         {Max: 5, Groups: groups(group("group shoes", 0, 1, 2, 3, 2))},
		`a capacity cannot be combined with groups that cross: group sale and group hats share items, but neither ` +
			`contains the other`: {Max: 5, Weights: assortment.WeightsOf(numbers(5), 3),
			Groups: groups(shoes, hats, group("group sale", 0, 1, 2, 3))},
		`size: at most 0, but 1 item is demanded: at least 1 of group shoes`: {
			Max: 0, Groups: groups(with(shoes, 1, 3)),
		},
		`size: at most 1, but 2 items are demanded: 2 in group shoes`: {
			Max: 1, Groups: groups(with(shoes, 1, 3), group("group ant", 1, 1, 0), group("group bee", 1, 1, 1)),
		},
		`size: at most 4, but 5 items are demanded: item "ant" is included, item "bee" is included, item "cat" is ` +
			`included, item "dog" is included, item "elk" is included`: {Max: 4, Include: numbers(5)},
	} {
		r.Items, r.Name = 5, name
		expect.Prefix(assortment.NewQuota(r))(t, want)
	}
	expect.Message(assortment.NewQuota(assortment.Rules{Items: -1}))(t, "items = -1: must not be negative")
	expect.Message(assortment.NewQuota(assortment.Rules{Items: 9, Max: 2, Include: numbers(8)}))(t,
		"size: at most 2, but 8 items are demanded: item 0 is included, item 1 is included, item 2 is included, "+
			"item 3 is included, item 4 is included, and 3 more")
}

// With many items in groups within ten departments, every group keeps its bounds, and the answer does not depend on the
// batch size of the search.
func TestQuotaOfManyItems(t *testing.T) {
	const n = 100_000
	rng := rand.New(rand.NewPCG(3, 3))
	rules := assortment.Rules{Items: n, Min: 60, Max: 70}
	for d := range 10 {
		department := group(fmt.Sprint("department ", d), 3, 9)
		for i := range n / 10 {
			department.Items = append(department.Items, 10*i+d)
		}
		rules.Groups = append(rules.Groups, department)
		for c := range 100 {
			rules.Groups = append(
				rules.Groups, group(fmt.Sprint("category ", d, c), 0, 1, department.Items[c*100:c*100+100]...),
			)
		}
	}
	l := quota(t, rules)
	gain := make([]float64, n)
	for i := range gain {
		gain[i] = rng.NormFloat64() - 3
	}
	s := l.MaxGain(nil, gain)
	if err := s.Check(n); err != nil || !l.Contains(s) {
		t.Fatalf("%d items: %v", len(s), err)
	}
	if p := l.Propensity(n); p != 0 && !(p > 0) {
		t.Errorf("propensity %v", p)
	}
	if s := l.Sample(nil, n, rng); s.Check(n) != nil || !l.Contains(s) {
		t.Errorf("drew %d items", len(s))
	}
}

func TestFamiliesRefuseOtherNumbersOfItems(t *testing.T) {
	l := quota(t, assortment.Rules{Items: 3, Max: 2})
	for name, f := range map[string]func(){
		"MaxGain":    func() { l.MaxGain(nil, []float64{1, 2}) },
		"Sample":     func() { l.Sample(nil, 4, rand.New(rand.NewPCG(1, 1))) },
		"Propensity": func() { l.Propensity(2) },
	} {
		if panics.Value(f) == nil {
			t.Errorf("%s of another number of items does not panic", name)
		}
	}
	if l.Contains(vitrine.Assortment{3}) || l.Contains(vitrine.Assortment{-1}) {
		t.Error("it contains an item that there is not")
	}
}

// An item that no set contains must not push the others out of floating-point range.
func TestHiddenItemsDoNotCauseUnderflow(t *testing.T) {
	u := []float64{700, -650, -690, 690}
	size := []int{1, 1, 1, 9}
	for _, r := range [][]float64{nil, {9, 2, 3, 9}} {
		l := quota(t, assortment.Rules{Items: 4, Max: 1, Exclude: []int{0, 3}})
		if s, value := assortment.Maximize(nil, l, u, r); !slices.Equal(s, vitrine.Assortment{1}) || value <= 0 {
			t.Errorf("S = %v, R = %v, want [1] and a positive value", s, value)
		}
		shelf := quota(t, weighed(assortment.Rules{Max: noLimit, Exclude: []int{0}}, size, 1))
		if s, value := assortment.Maximize(nil, shelf, u, r); !slices.Equal(s, vitrine.Assortment{1}) || value <= 0 {
			t.Errorf("on a shelf S = %v, R = %v, want [1] and a positive value", s, value)
		}
	}
}

// Pinned items leave no choice, so utilities may lie any distance apart.
func TestIncludedItemsOfAnyUtility(t *testing.T) {
	for _, rules := range []assortment.Rules{
		{Max: 4, Include: []int{2, 6}},
		{Max: noLimit, Include: []int{1},
			Groups: []assortment.Group{group("a", 0, 1, 0, 1, 4), group("b", 0, 1, 3, 5, 6)}},
	} {
		rules.Items = 7
		l := quota(t, rules)
		for _, c := range []vitrine.Constraint{l, quota(t, weighed(rules, []int{1, 2, 3, 4, 5, 6, 7}, 17))} {
			sets := assortmenttest.Sets(c, 7)
			assortmenttest.Instances(7, 20, func(name string, u, r []float64) {
				s, value := assortment.Maximize(nil, c, u, r)
				if best := assortmenttest.Best(sets, u, r); value < best*(1-1e-13) {
					t.Errorf("%s: %v earns %v, the best set %v", name, s, value, best)
				}
			})
		}
	}
}

func FuzzQuota(f *testing.F) {
	f.Add([]byte{1, 3, 2, 0, 1, 2, 4, 5, 255, 0, 1, 6, 7})
	f.Fuzz(func(t *testing.T, bytes []byte) {
		next := func() int {
			if len(bytes) == 0 {
				return 0
			}
			v := int(int8(bytes[0]))
			bytes = bytes[1:]
			return v
		}
		n := next() & 7
		r := assortment.Rules{Items: n, Min: next(), Max: next()}
		for len(bytes) > 0 {
			g := group(fmt.Sprint("group ", len(r.Groups)), next(), next())
			for size := next() & 7; size > 0; size-- {
				g.Items = append(g.Items, next())
			}
			switch next() & 3 {
			case 0:
				r.Include = append(r.Include, g.Items...)
			case 1:
				r.Exclude = append(r.Exclude, g.Items...)
			default:
				r.Groups = append(r.Groups, g)
			}
		}
		l, err := assortment.NewQuota(r)
		if err != nil {
			return
		}
		s := l.MaxGain(nil, make([]float64, n))
		if err := s.Check(n); err != nil || !l.Contains(s) || !obeys(r, s) {
			t.Errorf("%+v: %v: %v", r, s, err)
		}
	})
}

func BenchmarkQuota(b *testing.B) {
	const n = 1_000_000
	rng := rand.New(rand.NewPCG(2, 2))
	u, r := make([]float64, n), make([]float64, n)
	groups := make([]assortment.Group, 1000)
	for g := range groups {
		groups[g] = group(fmt.Sprint("group ", g), 0, 1)
	}
	for i := range u {
		u[i], r[i] = rng.NormFloat64(), rng.Float64()
		g := &groups[rng.IntN(len(groups))]
		g.Items = append(g.Items, i)
	}
	for name, rules := range map[string]assortment.Rules{
		"size":   {Max: 10},
		"free":   {Max: noLimit},
		"demand": {Min: 20, Max: 30},
		"groups": {Max: 30, Groups: groups},
	} {
		rules.Items = n
		l := quota(b, rules)
		b.Run(name, func(b *testing.B) {
			dst := make(vitrine.Assortment, 0, n)
			b.ReportAllocs()
			for b.Loop() {
				assortment.Maximize(dst, l, u, r)
			}
		})
	}
}

// Lower bounds out of reach are lowered one after the other, each to the most items that the sets obeying those before
// it show of its group. The family obeys the lowered bounds.
func TestReachable(t *testing.T) {
	for name, draw := range map[string]func(t *rapid.T, n int) assortment.Rules{"nested": drawRules,
		"crossing": drawCrossing} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			n := rapid.IntRange(1, 7).Draw(t, "N")
			r := draw(t, n)
			for k := range r.Groups {
				r.Groups[k].Max = max(r.Groups[k].Max, r.Groups[k].Min)
			}
			want := r
			want.Min, want.Groups = 0, slices.Clone(r.Groups)
			for k := range want.Groups {
				want.Groups[k].Min = 0
			}
			sets := slices.DeleteFunc(subsets(n), func(s vitrine.Assortment) bool { return !obeys(want, s) })
			q, reached, err := assortment.NewReachable(r)
			if (err == nil) != (len(sets) > 0) {
				t.Fatalf("%+v: %v, and %d sets obey the upper bounds", r, err, len(sets))
			}
			if err != nil {
				return
			}
			lower := func(items []int, minimum int) int {
				shown := func(s vitrine.Assortment) (n int) {
					for _, i := range s {
						if slices.Contains(items, i) {
							n++
						}
					}
					return n
				}
				most := 0
				for _, s := range sets {
					most = max(most, shown(s))
				}
				minimum = min(minimum, most)
				sets = slices.DeleteFunc(sets, func(s vitrine.Assortment) bool { return shown(s) < minimum })
				return minimum
			}
			for k, g := range r.Groups {
				want.Groups[k].Min = lower(g.Items, g.Min)
			}
			want.Min = lower(numbers(n), r.Min)
			if reached.Min != want.Min || !slices.EqualFunc(reached.Groups, want.Groups,
				func(a, b assortment.Group) bool { return a.Min == b.Min }) {
				t.Fatalf("%+v: reached %+v, want %+v", r, reached, want)
			}
			judgeSets(t, want, q, nil)
			judgeOptimum(t, q, sets, n)
		}))
	}
}
