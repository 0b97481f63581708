package assortment_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
)

func crossing(t testing.TB, brand, category, brandMax, categoryMax []int, maximum int) *assortment.Crossing {
	t.Helper()
	c, err := assortment.NewCrossing(brand, category, brandMax, categoryMax, maximum)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCrossing(t *testing.T) {
	for name, c := range map[string]*assortment.Crossing{
		"two of each brand, one of each category": crossing(t, []int{0, 0, 0, 1, 1, 1, 2, 2}, []int{0, 1, 2, 0, 1, 2, 0, 1}, []int{2, 2, 2}, []int{1, 1, 1}, 8),
		"one of each, and two in all":             crossing(t, []int{0, 1, 0, 1, 2, 2, 0, 1}, []int{0, 0, 1, 1, 0, 1, 1, 0}, []int{1, 1, 1}, []int{2, 1}, 2),
		"many in a cell":                          crossing(t, []int{0, 0, 0, 0, 0, 1, 1, 1}, []int{0, 0, 0, 1, 1, 1, 0, 0}, []int{3, 2}, []int{3, 1}, 4),
		"a brand that is not shown":               crossing(t, []int{0, 0, 0, 1, 1, 1, 1, 1}, []int{0, 1, 2, 3, 4, 0, 1, 2}, []int{0, 4}, []int{1, 1, 1, 1, 1}, 5),
		"no bound but the size":                   crossing(t, make([]int, 8), make([]int, 8), []int{8}, []int{8}, 3),
	} {
		t.Run(name, func(t *testing.T) { assortmenttest.TestConstraint(t, c, 8) })
	}
	t.Run("forty items", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		brand, category := make([]int, 40), make([]int, 40)
		for i := range brand {
			brand[i], category[i] = rng.IntN(6), rng.IntN(5)
		}
		assortmenttest.TestConstraint(t, crossing(t, brand, category, []int{2, 1, 3, 2, 1, 2}, []int{3, 2, 2, 1, 3}, 9), 40)
	})
	t.Run("no items", func(t *testing.T) { assortmenttest.TestConstraint(t, crossing(t, nil, nil, nil, nil, 3), 0) })
}

// A path goes back and forth: of a chain of items whose neighbours share a brand or a category, the
// best set is every other one, and one more item changes all of them.
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
	for _, c := range []struct {
		brand, category, brandMax, categoryMax []int
		want                                   string
	}{
		{[]int{0}, nil, []int{1}, nil, "1 items have a brand, and 0 a category"},
		{[]int{0, 2}, []int{0, 0}, []int{1, 1}, []int{1}, "item 1 is of brand 2: there are 2"},
		{[]int{0, 1}, []int{0, -1}, []int{1, 1}, []int{1}, "item 1 is of category -1: there are 1"},
		{[]int{0}, []int{0}, []int{-1}, []int{1}, "brand 0 shows at most -1 items: want a number that is not negative"},
		{[]int{0}, []int{0}, []int{1}, []int{1, -2}, "category 1 shows at most -2 items: want a number that is not negative"},
	} {
		if _, err := assortment.NewCrossing(c.brand, c.category, c.brandMax, c.categoryMax, 3); fmt.Sprint(err) != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
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
	defer func() {
		if recover() == nil {
			t.Error("gains of another number of items")
		}
	}()
	c.MaxGain(nil, []float64{1})
}
