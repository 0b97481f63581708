package assortment_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// above implements the definition: the sets of a family without items below the minimum revenue.
func above(c vitrine.Constraint, revenue []float64, minimum float64) []vitrine.Assortment {
	return slices.DeleteFunc(assortmenttest.Sets(c, len(revenue)), func(s vitrine.Assortment) bool {
		return slices.ContainsFunc(s, func(i int) bool { return !(revenue[i] >= minimum) })
	})
}

func TestFloor(t *testing.T) {
	revenue := []float64{3, 1, 2, 0.5, 2.5, 2.5, 0, 7}
	size := []int{3, 1, 4, 0, 5, 9, 2, 0}
	all := assortment.Rules{Items: 8, Max: noLimit}
	for name, c := range map[string]vitrine.Constraint{
		"at most": assortment.AtMost(2),
		"none":    assortment.AtMost(-1),
		"groups": quota(
			t, assortment.Rules{Items: 8, Min: 2, Max: 3, Groups: []assortment.Group{group("a", 1, 2, 0, 1, 2)}},
		),
		"space":    quota(t, weighed(all, size, 8)),
		"of space": quota(t, weighed(assortment.Rules{Min: 2, Max: 3, Include: []int{4}}, size, 9)),
	} {
		t.Run(name, func(t *testing.T) {
			narrowed := fatal.Or(assortment.Floor(c, revenue, 2))(t)
			got, want := assortmenttest.Sets(narrowed, 8), above(c, revenue, 2)
			if !slices.EqualFunc(got, want, func(a, b vitrine.Assortment) bool { return slices.Equal(a, b) }) {
				t.Fatalf("sets %v, want %v", got, want)
			}
			assortmenttest.TestConstraint(t, narrowed, 8)
			if one := fatal.Or(assortment.Floor(c, nil, 1))(t); !reflect.DeepEqual(assortmenttest.Sets(one, 8),
				assortmenttest.Sets(c, 8)) {
				t.Error("a revenue of 1 is below the floor 1")
			}
		})
	}
}

func TestFloorsThatAreRefused(t *testing.T) {
	revenue := []float64{1, 2, 3}
	l := quota(t, assortment.Rules{Items: 3, Max: 2, Include: []int{0}})
	two := quota(t, assortment.Rules{Items: 3, Min: 2, Max: 2})
	for want, c := range map[string]struct {
		family  vitrine.Constraint
		r       []float64
		minimum float64
	}{
		"without the items of revenue below 2: item 0 is both included and excluded": {l, revenue, 2},
		"without the items of revenue below 3: size: at least 2, but no more than 1 can be shown: it has 3 items, 2 " +
			"of them excluded": {two, revenue, 3},
		"without the items of revenue below NaN: size: at least 2, but no more than 0 can be shown": {
			two, revenue, math.NaN(),
		},
		"without the items of revenue below 2: size: at least 2, but no more than 0 can be shown": {two, nil, 2},
		"2 revenues for a family of 3 items":                                                      {two, revenue[:2], 1},
		"a floor on the revenue needs rules of package assortment, not assortment_test.exactly": {
			exactly(2), revenue, 1,
		},
	} {
		expect.Prefix(assortment.Floor(c.family, c.r, c.minimum))(t, want)
	}
	expect.Equal(t, fatal.Or(assortment.Floor(assortment.AtMost(2), nil, 2))(t), vitrine.Constraint(assortment.AtMost(0)))
}

// With 200 items under all rules at once, no feasible swap, addition or removal improves the set. This tests optimality
// without enumeration.
func TestNoPerturbationImprovesUnderRules(t *testing.T) {
	const n = 200
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.SliceOfN(rapid.Float64Range(-15, 15), n, n).Draw(t, "u")
		r := rapid.SliceOfN(rapid.Float64Range(0, 10), n, n).Draw(t, "r")
		rules := assortment.Rules{
			Items: n, Min: rapid.IntRange(0, 5).Draw(t, "min"), Max: rapid.IntRange(8, 30).Draw(t, "max"),
		}
		rules.Include = []int{rapid.IntRange(0, 99).Draw(t, "include")}
		rules.Exclude = []int{rapid.IntRange(100, n-1).Draw(t, "exclude")}
		var c vitrine.Constraint
		var err error
		if rapid.Bool().Draw(t, "shelf") {
			if rapid.Bool().Draw(t, "groups") {
				rules.Max = noLimit
				for at := 0; at+20 <= n; at += 20 {
					rules.Groups = append(rules.Groups,
						group("department", rapid.IntRange(0, 1).Draw(t, "department"), 3, numbers(n)[at:at+20]...))
				}
			}
			size := rapid.SliceOfN(rapid.IntRange(0, 20), n, n).Draw(t, "sizes")
			c, err = assortment.NewQuota(weighed(rules, size, rapid.IntRange(120, 200).Draw(t, "space")))
		} else {
			for at := 0; at+20 <= n; at += 20 {
				rules.Groups = append(rules.Groups,
					group("department", rapid.IntRange(0, 1).Draw(t, "department"), 5, numbers(n)[at:at+20]...),
					group("category", 0, rapid.IntRange(1, 3).Draw(t, "category"), numbers(n)[at+3:at+12]...))
			}
			rules.Max = max(rules.Max, 11)
			c, err = assortment.NewQuota(rules)
		}
		fatal.If(t, err)
		s, value := assortment.Maximize(nil, c, u, r)
		if !c.Contains(s) {
			t.Fatalf("%v is not in the family", s)
		}
		for _, other := range assortmenttest.Neighbours(c, s, n) {
			if v := vitrine.ExpectedRevenue(other, u, r); v > value*(1+1e-12) {
				t.Fatalf("%v earns %v, %v earns %v", s, value, other, v)
			}
		}
	})
}

// The number of iterations equals the number of oracle calls.
func TestIterationsAreCounted(t *testing.T) {
	u, r := []float64{0, math.Ln2, 1, -1}, []float64{3, 1, 2, 2.5}
	asked := &questions{Constraint: assortment.AtMost(2)}
	for _, revenue := range [][]float64{nil, r, {0, 0, 0, 0}} {
		asked.number = 0
		s, value, iterations := assortment.MaximizeIterations(nil, asked, u, revenue)
		want, wantValue := assortment.Maximize(nil, assortment.AtMost(2), u, revenue)
		if iterations != asked.number || iterations < 1 || !slices.Equal(s, want) || value != wantValue {
			t.Errorf("revenues %v: %v earns %v in %d iterations of %d", revenue, s, value, iterations, asked.number)
		}
	}
}

// questions counts the oracle calls of a family.
type questions struct {
	vitrine.Constraint
	number int
}

func (q *questions) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	q.number++
	return q.Constraint.MaxGain(dst, gain)
}
