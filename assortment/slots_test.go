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

func slots(exclude ...[]int) []assortment.Slot {
	list := make([]assortment.Slot, len(exclude))
	for j := range list {
		list[j] = assortment.Slot{Name: fmt.Sprintf("slot %d", j), Exclude: exclude[j]}
	}
	return list
}

func transversal(t testing.TB, items int, s []assortment.Slot, minimum int) *assortment.Slots {
	t.Helper()
	return fatal.Or(assortment.NewSlots(items, s, minimum))(t)
}

func TestSlots(t *testing.T) {
	for _, c := range []struct {
		name    string
		items   int
		slots   []assortment.Slot
		minimum int
	}{
		{"no slot", 7, nil, 0},
		{"one slot", 7, slots(nil), 0},
		{"one slot that is filled", 7, slots([]int{2, 5}), 1},
		{"alike", 7, slots(nil, nil, nil), 0},
		{"alike and filled", 7, slots(nil, nil, nil), 3},
		{"one of two", 7, slots([]int{0, 1}, []int{2, 3}), 1},
		{"exclusive", 7, slots([]int{0, 1, 2, 3}, []int{2, 3, 4}, []int{0, 6}), 0},
		{"exclusive and filled", 7, slots([]int{0, 1, 2, 3}, []int{2, 3, 4}, []int{0, 6}), 3},
		{"one item for a slot", 7, slots([]int{0, 1, 2, 3, 4, 5}, nil, nil), 3},
		{"a chain", 7, slots([]int{2, 3, 4, 5, 6}, []int{3, 4, 5, 6, 0}, []int{4, 5, 6, 0, 1}), 3},
		{"a slot that takes none", 7, slots([]int{0, 1, 2, 3, 4, 5, 6}, []int{6}), 0},
		{"an item that no slot takes", 7, slots([]int{6}, []int{6, 0}), 2},
		{"more slots than items", 2, slots(nil, []int{0}, nil), 0},
		{"many items", 40, slots([]int{1, 2, 3}, []int{5, 39}, nil, []int{0}), 4},
		{"nothing", 0, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			assortmenttest.TestConstraint(t, transversal(t, c.items, c.slots, c.minimum), c.items)
		})
	}
}

// placed reports whether items can be placed, by trying all ways.
func placed(s []assortment.Slot, items []int, taken int) bool {
	if len(items) == 0 {
		return true
	}
	for j := range s {
		if taken>>j&1 == 0 && !slices.Contains(s[j].Exclude, items[0]) && placed(s, items[1:], taken|1<<j) {
			return true
		}
	}
	return false
}

// drawSlots draws slots for n items that exclude some of them.
func drawSlots(t *rapid.T, n int) []assortment.Slot {
	list := make([][]int, rapid.IntRange(0, 4).Draw(t, "slots"))
	for j := range list {
		for i := range n {
			if rapid.IntRange(0, 2).Draw(t, "excluded") == 0 {
				list[j] = append(list[j], i)
			}
		}
	}
	return slots(list...)
}

// The family matches its definition, checked by trying every way to place every set. If the slots cannot be filled,
// NewSlots fails. The optimum is the best of all sets.
func TestSlotsIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 6).Draw(t, "items")
		s := drawSlots(t, n)
		minimum := rapid.IntRange(0, len(s)).Draw(t, "least")
		var legal []vitrine.Assortment
		for _, set := range subsets(n) {
			if len(set) >= minimum && placed(s, set, 0) {
				legal = append(legal, set)
			}
		}
		f, err := assortment.NewSlots(n, s, minimum)
		if (err == nil) != (len(legal) > 0) {
			t.Fatalf("%v, and there are %d sets", err, len(legal))
		}
		if err != nil {
			return
		}
		u, r := make([]float64, n), make([]float64, n)
		for i := range n {
			u[i], r[i] = rapid.Float64Range(-3, 3).Draw(t, "u"), rapid.Float64Range(0, 2).Draw(t, "r")
		}
		if _, revenue := assortment.Maximize(nil, f, u, r); math.Abs(revenue-assortmenttest.Best(legal, u, r)) > 1e-12 {
			t.Fatalf("earns %v, the best is %v", revenue, assortmenttest.Best(legal, u, r))
		}
		for _, set := range subsets(n) {
			expect.Equal(fatal.T(t), f.Contains(set), len(set) >= minimum && placed(s, set, 0), "contains", set)
		}
		judgeHidden(t, f, legal, n)
		if want := len(legal); want > 0 && f.Uniform() {
			if f.Contains(nil) {
				want--
			}
			if have := 1 / f.Propensity(n); want > 0 && math.Abs(have-float64(want)) > 1e-9*float64(want) {
				t.Fatalf("counts %v sets, there are %d", have, want)
			}
		}
	})
}

// Every item ends up in a slot that accepts it, and each slot shows the first item that leaves a place for the others,
// checked by trying all.
func TestAssign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "items")
		s := drawSlots(t, n)
		f := fatal.Or(assortment.NewSlots(n, s, 0))(t)
		var legal []vitrine.Assortment
		for _, set := range subsets(n) {
			if f.Contains(set) {
				legal = append(legal, set)
			}
		}
		order := rapid.Permutation(rapid.SampledFrom(legal).Draw(t, "set")).Draw(t, "order")
		rest, want := slices.Clone(order), make([]int, len(s))
		for j := range s {
			want[j] = -1
			for at, i := range rest {
				others := slices.Delete(slices.Clone(rest), at, at+1)
				if !slices.Contains(s[j].Exclude, i) && placed(s, others, 1<<(j+1)-1) {
					want[j], rest = i, others
					break
				}
			}
		}
		expect.List(fatal.T(t), f.Assign(nil, order), want, "slots", s, "items", order, "assigned")
	})
}

func TestSlotsErrors(t *testing.T) {
	for _, c := range []struct {
		items   int
		slots   []assortment.Slot
		minimum int
		want    string
	}{
		{2, slots(nil), 2, "at least 2 items, and there are 1 slots"},
		{-1, slots(nil), 0, "items = -1: must not be negative"},
		{3, slots([]int{3}), 0, "slot 0: item 3 is outside [0, 3)"},
		{3, []assortment.Slot{{}, {Exclude: []int{3}}}, 0, "slot 2: item 3 is outside [0, 3)"},
		{3, []assortment.Slot{{}, {Exclude: []int{0, 1, 2}}}, 2, "slot 2 takes none of the 3 items"},
		{3, slots(nil, []int{0, 1, 2}), 2, "slot 1 takes none of the 3 items"},
		{3, slots(nil, []int{0, 1}, []int{1, 0}), 3,
			"slot 1 and slot 2: together they take 1 item, and each needs one"},
		{2, slots(nil, nil, nil), 3, "slot 0, slot 1 and slot 2: together they take 2 items, and each needs one"},
		{1, slots(nil, nil, nil, nil, nil, nil, nil, nil), 8, "and"},
	} {
		expect.Part(assortment.NewSlots(c.items, c.slots, c.minimum))(t, c.want)
	}
}

// If there are too many ways to count, draws still belong to the family, and the propensity is unknown.
func TestSlotsThatIsNotCounted(t *testing.T) {
	const n, k = 64, 8
	exclude := make([][]int, k)
	rng := rand.New(rand.NewPCG(1, 1))
	for j := range exclude {
		for i := range n {
			if rng.IntN(2) == 0 {
				exclude[j] = append(exclude[j], i)
			}
		}
	}
	f := transversal(t, n, slots(exclude...), k)
	if f.Uniform() || f.Propensity(n) != 0 {
		t.Errorf("uniform: %v, propensity %v", f.Uniform(), f.Propensity(n))
	}
	for range 100 {
		if s := f.Sample(nil, n, rng); s.Check(n) != nil || !f.Contains(s) {
			t.Fatalf("drew %v", s)
		}
	}
	// Finding out that a family cannot be counted happens while serving a request, so it must be cheap.
	allocs := testing.AllocsPerRun(1, func() {
		if transversal(t, n, slots(exclude...), k).Uniform() {
			t.Error("it is counted")
		}
	})
	if allocs > 1000 {
		t.Errorf("to find that there are too many ways takes %v allocations", allocs)
	}
	// Eight slots that each exclude one item of their own can be counted.
	maximum := make([][]int, 8)
	for j := range maximum {
		maximum[j] = []int{j}
	}
	if f := transversal(t, 50, slots(maximum...), 8); !f.Uniform() {
		t.Error("eight slots that exclude an item each are not counted")
	}
}
