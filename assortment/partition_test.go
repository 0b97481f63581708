package assortment_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
)

// groupsOf returns groups of n items: every third item has none.
func groupsOf(n, groups int) []int32 {
	of := make([]int32, n)
	for i := range of {
		if of[i] = int32(i * 7 % groups); i%3 == 2 {
			of[i] = -1
		}
	}
	return of
}

func TestPartition(t *testing.T) {
	for _, n := range []int{0, 3, 8, 40} {
		for _, q := range []assortment.Quota{
			{Size: 3},
			{Size: 3, Exclude: []int{0, 2}},
			{Size: 4, Group: groupsOf(n, 2), Most: 1},
			{Size: 3, Group: groupsOf(n, 3), Most: 2},
			{Size: 2, Group: groupsOf(n, 2), Most: 0},
			{Size: 5, Group: make([]int32, n), Most: 2},
			{Size: 0, Group: groupsOf(n, 2), Most: 1},
		} {
			if q.Exclude != nil && n < 3 {
				continue
			}
			t.Run(fmt.Sprintf("%d items, size %d, most %d, without %v", n, q.Size, q.Most, q.Exclude), func(t *testing.T) {
				p, err := assortment.NewPartition(n, q)
				if err != nil {
					t.Fatal(err)
				}
				assortmenttest.TestConstraint(t, p, n)
			})
		}
	}
}

// A partition and the same rules as a tree have the same best sets, also among many items and when it is limited or
// lacks some of its items.
func TestPartitionIsLaminar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := 1 + rng.IntN([]int{20, 400, 12000}[rng.IntN(3)])
		q := assortment.Quota{Size: 1 + rng.IntN(12), Group: make([]int32, n), Most: rng.IntN(4)}
		rules := assortment.Rules{Items: n, Max: q.Size, Groups: make([]assortment.Group, 1+rng.IntN(2*n))}
		for g := range rules.Groups {
			rules.Groups[g].Max = q.Most
		}
		u, r := make([]float64, n), make([]float64, n)
		for i := range n {
			g := rng.IntN(len(rules.Groups)+1) - 1
			if q.Group[i] = int32(g); g >= 0 {
				rules.Groups[g].Items = append(rules.Groups[g].Items, i)
			}
			if rng.IntN(20) == 0 {
				q.Exclude = append(q.Exclude, i)
			}
			u[i], r[i] = math.Round(8*rng.NormFloat64())/4-2, math.Exp(rng.NormFloat64())
		}
		rules.Exclude = q.Exclude
		p, err := assortment.NewPartition(n, q)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := assortment.NewLaminar(rules)
		if err != nil {
			t.Fatal(err)
		}
		family, same := vitrine.Constraint(p), vitrine.Constraint(tree)
		if rng.IntN(2) == 0 {
			k := rng.IntN(q.Size + 1)
			family, err = p.Limit(k)
			if err != nil {
				t.Fatal(err)
			}
			same, _ = tree.Limit(k)
		}
		if rng.IntN(2) == 0 {
			if family, err = assortment.Floor(family, r, 0.5); err != nil {
				t.Fatal(err)
			}
			same, _ = assortment.Floor(same, r, 0.5)
		}
		if got, want := family.MaxGain(nil, u), same.MaxGain(nil, u); !slices.Equal(got, want) {
			t.Fatalf("%+v: the largest gains are those of %v, want %v", q, got, want)
		}
		got, _ := assortment.Maximize(nil, family, u, nil)
		if want, _ := assortment.Maximize(nil, same, u, nil); !slices.Equal(got, want) {
			t.Fatalf("%+v: the best set is %v, want %v", q, got, want)
		}
		best, revenue := assortment.Maximize(nil, family, u, r)
		if _, want := assortment.Maximize(nil, same, u, r); math.Abs(revenue-want) > 1e-12*want || !same.Contains(best) || !family.Contains(best) {
			t.Fatalf("%+v: %v earns %v, the best set %v", q, best, revenue, want)
		}
	})
}

// No item of a group may be shown. There are enough items for the search to begin with a few of them, and items with large
// revenues join these.
func TestPartitionHidesAmongMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 0))
	n := 12000
	q := assortment.Quota{Size: 3, Group: make([]int32, n)}
	u, r := make([]float64, n), make([]float64, n)
	var hidden []int
	for i := range n {
		q.Group[i] = int32(i%2) - 1
		if i%2 == 1 {
			hidden = append(hidden, i)
		}
		u[i], r[i] = rng.NormFloat64()-6, math.Exp(3*rng.NormFloat64())
	}
	p, err := assortment.NewPartition(n, q)
	if err != nil {
		t.Fatal(err)
	}
	all, err := assortment.NewLaminar(assortment.Rules{Items: n, Max: 3, Exclude: hidden})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := assortment.Maximize(nil, p, u, r)
	if want, _ := assortment.Maximize(nil, all, u, r); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestNewPartitionRefuses(t *testing.T) {
	for want, q := range map[string]assortment.Quota{
		"2 numbers of groups for 3 items": {Size: 1, Group: make([]int32, 2)},
		"at most -1 of a group":           {Size: 1, Most: -1},
		"must increase":                   {Size: 1, Exclude: []int{2, 1}},
		"item 3 is outside [0, 3)":        {Size: 1, Exclude: []int{3}},
	} {
		if _, err := assortment.NewPartition(3, q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", q, err, want)
		}
	}
}
