package assortment_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
	"vitrine/internal/expect"
)

// limited checks Limit against its definition: the family's sets of at most the given number of items, or an error if
// no such set exists.
func limited(t interface {
	Fatalf(format string, args ...any)
}, c assortment.Limiter, n, maximum int) vitrine.Constraint {
	all, limit := assortmenttest.Sets(c, n), max(maximum, 0)
	want := slices.DeleteFunc(slices.Clone(all), func(s vitrine.Assortment) bool { return len(s) > limit })
	l, err := c.Limit(maximum)
	if (err != nil) != (len(want) == 0) {
		t.Fatalf("at most %d of %d sets: error %v, and %d are left", maximum, len(all), err, len(want))
	}
	if err != nil {
		return nil
	}
	if got := assortmenttest.Sets(l, n); !slices.EqualFunc(got, want, func(a, b vitrine.Assortment) bool {
		return slices.Equal(a, b)
	}) {
		t.Fatalf("at most %d: the sets %v, want %v", maximum, got, want)
	}
	if _, exact := assortment.SamplerOf(c); exact &&
		len(want) == len(all) && maximum >= 0 && l != vitrine.Constraint(c) {
		t.Fatalf("at most %d leaves no set out, and makes another family", maximum)
	}
	return l
}

func TestLimit(t *testing.T) {
	const n = 6
	size := []int{3, 1, 4, 0, 5, 2}
	rules := func(minimum int) assortment.Rules {
		return assortment.Rules{Items: n, Min: minimum, Max: noLimit,
			Include: []int{5}, Groups: []assortment.Group{group("a", 1, 2, 0, 1, 2)}}
	}
	for name, c := range map[string]assortment.Limiter{
		"AtMost":               assortment.AtMost(4),
		"Quota":                quota(t, rules(0)),
		"Quota, at least":      quota(t, rules(3)),
		"capacity":             quota(t, weighed(rules(0), size, 9)),
		"capacity, at least":   quota(t, weighed(rules(3), size, 9)),
		"Slots":                transversal(t, n, slots(nil, []int{0, 1}, []int{2, 3, 4}, nil), 0),
		"Slots, all different": transversal(t, n, slots([]int{0}, []int{1}, []int{2}, []int{3}), 0),
		"Slots, at least":      transversal(t, n, slots(nil, []int{0, 1}, []int{2, 3, 4}), 2),
		"slots for one kind":   transversal(t, n, slots(nil, nil, nil, nil, nil), 1),
	} {
		t.Run(name, func(t *testing.T) {
			for maximum := -1; maximum <= n+1; maximum++ {
				if l := limited(t, c, n, maximum); l != nil && maximum > 0 {
					assortmenttest.TestConstraint(t, l, n)
				}
			}
		})
	}
	for want, c := range map[string]assortment.Limiter{
		"size: at most 1, but 2 items are demanded":    quota(t, rules(0)),
		"at most 1, but at least 2 items are demanded": transversal(t, n, slots(nil, nil), 2),
	} {
		expect.Part(c.Limit(1))(t, want)
	}
}

func TestLimitOfAnyRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 6).Draw(t, "N")
		c, err := assortment.NewQuota(drawRules(t, n))
		if err != nil {
			return
		}
		limited(t, c, n, rapid.IntRange(0, n).Draw(t, "most"))
	})
}

// Families copy their arguments, so callers may change their slices.
func TestFamiliesKeepNoSlices(t *testing.T) {
	const n = 6
	revenue := []float64{1, 1, 1, 1, 1, 1}
	// number returns the number of sets in a family, and in a family derived from it.
	number := func(c vitrine.Constraint) [2]int {
		floored, err := assortment.Floor(c, revenue, 1) // all items reach this floor
		if err != nil {
			return [2]int{-1, -1}
		}
		return [2]int{len(assortmenttest.Sets(c, n)), len(assortmenttest.Sets(floored, n))}
	}
	for changed := range 6 {
		rules := assortment.Rules{
			Items: n, Max: 4, Include: []int{5}, Exclude: []int{0},
			Groups: []assortment.Group{group("a", 0, 1, 1, 2, 3), group("b", 0, 1, 2, 3)},
		}
		size := []int{3, 1, 4, 0, 5, 2}
		l := quota(t, rules)
		s := quota(t, weighed(rules, size, 7))
		before := [2][2]int{number(l), number(s)}
		if before[0][0] != before[0][1] || before[1][0] != before[1][1] || before[1][0] >= before[0][0] {
			t.Fatalf("the test's families have %v sets", before)
		}
		switch changed {
		case 0:
			rules.Include[0] = 4
		case 1:
			rules.Exclude[0] = 1
		case 2:
			rules.Groups[0].Items[0] = 4
		case 3:
			rules.Groups[0].Max = 0
		case 4:
			size[1] = 100
		case 5:
			size[4] = 0
		}
		if after := [2][2]int{number(l), number(s)}; after != before {
			t.Errorf("change %d of the caller's slices: %v sets become %v", changed, before, after)
		}
	}
}
