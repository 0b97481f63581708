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
)

// groupsOf assigns n items to groups. Every third item stays outside.
func groupsOf(n, groups int) []int32 {
	of := make([]int32, n)
	for i := range of {
		if of[i] = int32(i * 7 % groups); i%3 == 2 {
			of[i] = -1
		}
	}
	return of
}

// halved merges the given groups in pairs.
func halved(groups []int32) []int32 {
	of := make([]int32, len(groups))
	for i, g := range groups {
		if of[i] = g / 2; g < 0 {
			of[i] = -1
		}
	}
	return of
}

func TestNumberedGroups(t *testing.T) {
	for _, n := range []int{0, 3, 8, 40} {
		for _, q := range []assortment.Rules{
			{Max: 3},
			{Max: 3, Exclude: []int{0, 2}},
			{Max: 4, Limits: []assortment.Limit{{Group: groupsOf(n, 2), Max: 1}}},
			{Max: 3, Limits: []assortment.Limit{{Group: groupsOf(n, 3), Max: 2}}},
			{Max: 2, Limits: []assortment.Limit{{Group: groupsOf(n, 2), Max: 0}}},
			{Max: 5, Limits: []assortment.Limit{{Group: make([]int32, n), Max: 2}}},
			{Max: 3, Include: []int{1}, Exclude: []int{2}},
			{Max: 4, Include: []int{0, 2}, Limits: []assortment.Limit{{Group: groupsOf(n, 2), Max: 1}}},
			{Max: 4, Limits: []assortment.Limit{
				{Group: halved(groupsOf(n, 4)), Max: 3}, {Group: groupsOf(n, 4), Max: 2},
			}},
			{Max: 5, Include: []int{1}, Limits: []assortment.Limit{
				{Group: groupsOf(n, 4), Max: 1}, {Group: halved(groupsOf(n, 4)), Max: 2},
			}},
			{Max: 0, Limits: []assortment.Limit{{Group: groupsOf(n, 2), Max: 1}}},
		} {
			if (q.Exclude != nil || q.Include != nil) && n < 3 {
				continue
			}
			t.Run(fmt.Sprintf("%d items, size %d, %d limits, with %v, without %v",
				n, q.Max, len(q.Limits), q.Include, q.Exclude), func(t *testing.T) {
				q.Items = n
				assortmenttest.TestConstraint(t, quota(t, q), n)
			})
		}
	}
}

// Numbered groups and the same groups as a tree give the same best sets, also among many items and for families that
// are limited or lack items.
func TestNumberedGroupsAreListedGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := 1 + rng.IntN([]int{20, 400, 12000}[rng.IntN(3)])
		q, rules := nestedRules(rng, n)
		u, r := make([]float64, n), make([]float64, n)
		for i := range n {
			u[i], r[i] = math.Round(8*rng.NormFloat64())/4-2, math.Exp(rng.NormFloat64())
		}
		p, err := assortment.NewQuota(q)
		tree, err1 := assortment.NewQuota(rules)
		if err != nil || err1 != nil {
			if (err == nil) != (err1 == nil) {
				t.Fatalf("%+v: %v, but %v", q, err, err1)
			}
			return
		}
		family, same := vitrine.Constraint(p), vitrine.Constraint(tree)
		if rng.IntN(2) == 0 {
			k := rng.IntN(q.Max + 1)
			family, err = p.Limit(k)
			same, err1 = tree.Limit(k)
			if err != nil || err1 != nil {
				if (err == nil) != (err1 == nil) {
					t.Fatalf("%+v, at most %d: %v, but %v", q, k, err, err1)
				}
				return
			}
		}
		if rng.IntN(2) == 0 {
			family, err = assortment.Floor(family, r, 0.5)
			same, err1 = assortment.Floor(same, r, 0.5)
			if err != nil || err1 != nil {
				if (err == nil) != (err1 == nil) {
					t.Fatalf("%+v, with a floor: %v, but %v", q, err, err1)
				}
				return
			}
		}
		hidden, want := assortment.NeverShown(family, n), assortment.NeverShown(same, n)
		for i := range n {
			if (hidden != nil && hidden[i]) != (want != nil && want[i]) {
				t.Fatalf("%+v: item %d is in no set: %v", q, i, hidden != nil && hidden[i])
			}
		}
		expect.List(fatal.T(t), family.MaxGain(nil, u), same.MaxGain(nil, u), q,
			"the largest gains of the same family")
		got, _ := assortment.Maximize(nil, family, u, nil)
		if want, _ := assortment.Maximize(nil, same, u, nil); !slices.Equal(got, want) {
			t.Fatalf("%+v: the best set is %v, want %v", q, got, want)
		}
		best, revenue := assortment.Maximize(nil, family, u, r)
		if _, want := assortment.Maximize(nil, same, u, r); math.Abs(revenue-want) > 1e-12*want ||
			!same.Contains(best) || !family.Contains(best) {
			t.Fatalf("%+v: %v earns %v, the best set %v", q, best, revenue, want)
		}
	})
}

// nestedRules draws a quota over n items, with up to three limits on nested groups, and the same rules as a tree.
func nestedRules(rng *rand.Rand, n int) (numbered, listed assortment.Rules) {
	q, rules := assortment.Rules{Items: n}, assortment.Rules{}
	q.Max = 1 + rng.IntN(12)
	groups, inner := 1+rng.IntN(2*n), 1
	of := make([]int32, n)
	for i := range of {
		of[i] = int32(rng.IntN(groups+1) - 1)
	}
	for range rng.IntN(4) {
		l := assortment.Limit{Group: make([]int32, n), Max: rng.IntN(4) + inner/4}
		at := map[int32]int{}
		for i, g := range of {
			if l.Group[i] = g / int32(inner); g < 0 || g%5 == 0 { // some inner groups lie outside all outer ones
				l.Group[i] = -1
				continue
			}
			k, ok := at[l.Group[i]]
			if !ok {
				k = len(rules.Groups)
				at[l.Group[i]] = k
				rules.Groups = append(rules.Groups, assortment.Group{Max: l.Max})
			}
			rules.Groups[k].Items = append(rules.Groups[k].Items, i)
		}
		q.Limits = append(q.Limits, l)
		inner *= 1 + rng.IntN(5)
	}
	rng.Shuffle(len(q.Limits), func(i, j int) { q.Limits[i], q.Limits[j] = q.Limits[j], q.Limits[i] })
	for i := range n {
		switch {
		case rng.IntN(20) == 0:
			q.Exclude = append(q.Exclude, i)
		case rng.IntN(2*n) < 3:
			q.Include = append(q.Include, i)
		}
	}
	rules.Items, rules.Max, rules.Include, rules.Exclude = n, q.Max, q.Include, q.Exclude
	return q, rules
}

// Items of one group may not be shown. There are enough items for the search to begin with a few, which items with
// large revenues then join.
func TestManyItemsAreHidden(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 0))
	n := 12000
	group := make([]int32, n)
	u, r := make([]float64, n), make([]float64, n)
	var hidden []int
	for i := range n {
		group[i] = int32(i%2) - 1
		if i%2 == 1 {
			hidden = append(hidden, i)
		}
		u[i], r[i] = rng.NormFloat64()-6, math.Exp(3*rng.NormFloat64())
	}
	p := quota(t, assortment.Rules{Items: n, Max: 3, Limits: []assortment.Limit{{Group: group}}})
	all := quota(t, assortment.Rules{Items: n, Max: 3, Exclude: hidden})
	got, _ := assortment.Maximize(nil, p, u, r)
	if want, _ := assortment.Maximize(nil, all, u, r); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestGroupsWithoutNamesAreNumbered(t *testing.T) {
	expect.Message(assortment.NewQuota(assortment.Rules{Items: 3, Max: 2, Groups: []assortment.Group{
		{Items: []int{0}, Max: 1}, {Items: []int{1}, Min: 2, Max: 1},
	}}))(t, "group 2: at least 2 and at most 1: the bounds exclude each other")
}

func TestNumberedGroupsThatAreRefused(t *testing.T) {
	for want, r := range map[string]assortment.Rules{
		"2 numbers of groups for 3 items": {Max: 1, Limits: []assortment.Limit{{Group: make([]int32, 2)}}},
		"group 0: at most -1: must not be negative": {
			Max: 1, Limits: []assortment.Limit{{Group: make([]int32, 3), Max: -1}},
		},
		"item 3 is outside [0, 3)":                  {Max: 1, Exclude: []int{3}},
		"item -1 is outside [0, 3)":                 {Max: 1, Include: []int{-1}},
		"item 2 is both":                            {Max: 1, Include: []int{2}, Exclude: []int{1, 2}},
		"size: at most 1, but 2 items are demanded": {Max: 1, Include: []int{0, 1}},
		"group 7: at most 1, but 2 items are demanded: item 0": {
			Max: 3, Include: []int{0, 2}, Limits: []assortment.Limit{{Group: []int32{7, 0, 7}, Max: 1}},
		},
		"b 5: at most 1, but 2 items are demanded: item 1 is include": {
			Max: 3, Include: []int{2, 1}, Limits: []assortment.Limit{
				{Group: []int32{4, 5, 5}, Max: 1, Name: func(g int32) string { return fmt.Sprint("b ", g) }},
			},
		},
	} {
		r.Items = 3
		expect.Prefix(assortment.NewQuota(r))(t, want, r)
	}
}
