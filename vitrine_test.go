package vitrine_test

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

var nan, inf = math.NaN(), math.Inf(1)

// complaint returns err's message, or "" if err is nil.
func complaint(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNumItems(t *testing.T) {
	expect.Equal(t, new(vitrine.Context).NumItems(), 0, "a context without features has n items")
	expect.Equal(t, (&vitrine.Context{Features: mat.NewDense(4, 2, nil)}).NumItems(), 4, "items")
}

// Every case contains items with two features.
func TestContextCheck(t *testing.T) {
	items := func(features ...float64) *mat.Dense { return mat.NewDense(len(features)/2, 2, features) }
	for _, c := range []struct {
		name    string
		context vitrine.Context
		want    string
	}{
		{"OK", vitrine.Context{Features: items(1, -2, 0, 1e4), Revenue: []float64{0, 3}}, ""},
		{"revenue 1 for every item", vitrine.Context{Features: items(1, 2)}, ""},
		{"no items", vitrine.Context{}, ""},
		{"too few features", vitrine.Context{Features: mat.NewDense(5, 1, nil)},
			"context has 1 features an item, want 2"},
		{"too many features", vitrine.Context{Features: mat.NewDense(5, 3, nil)},
			"context has 3 features an item, want 2"},
		{"feature too large", vitrine.Context{Features: items(1, 2, -2e15, 3)},
			"feature 0 of item 1 is -2e+15: features must be finite and at most 1e+15 in size: scale them"},
		{"feature NaN", vitrine.Context{Features: items(1, 2, 3, nan)},
			"feature 1 of item 1 is NaN: features must be finite and at most 1e+15 in size: scale them"},
		{"feature +Inf", vitrine.Context{Features: items(1, 2, inf, nan)},
			"feature 0 of item 1 is +Inf: features must be finite and at most 1e+15 in size: scale them"},
		{"feature -Inf", vitrine.Context{Features: items(1, -inf, 3, 4)},
			"feature 1 of item 0 is -Inf: features must be finite and at most 1e+15 in size: scale them"},
		{"revenues for fewer items", vitrine.Context{Features: items(1, 2, 3, 4), Revenue: []float64{1}},
			"context has 1 revenues for 2 items"},
		{"revenues that are not nil", vitrine.Context{Features: items(1, 2), Revenue: []float64{}},
			"context has 0 revenues for 1 items"},
		{"revenues for no items", vitrine.Context{Revenue: []float64{1}}, "context has 1 revenues for 0 items"},
		{"revenue NaN", vitrine.Context{Features: items(1, 2), Revenue: []float64{nan}},
			"revenue of item 0 is NaN: revenues must be finite, not negative and at most 1e+100"},
		{"revenue +Inf", vitrine.Context{Features: items(1, 2, 3, 4), Revenue: []float64{1, inf}},
			"revenue of item 1 is +Inf: revenues must be finite, not negative and at most 1e+100"},
		{"revenue below 0", vitrine.Context{Features: items(1, 2), Revenue: []float64{-0.5}},
			"revenue of item 0 is -0.5: revenues must be finite, not negative and at most 1e+100"},
		{"a family of as many items", vitrine.Context{Features: items(1, 2, 3, 4), Feasible: familyOf(2)}, ""},
		{"a family of any number of items", vitrine.Context{
			Features: items(1, 2, 3, 4), Feasible: struct{ vitrine.Constraint }{},
		}, ""},
		{"a family of fewer items", vitrine.Context{Features: items(1, 2, 3, 4), Feasible: familyOf(1)},
			"context has 2 items, its feasible family has 1"},
		{"a family of more items", vitrine.Context{Feasible: familyOf(3)},
			"context has 0 items, its feasible family has 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Equal(t, complaint(c.context.Check(2)), c.want, "Check says")
		})
	}
}

// sized is a feasible family over a fixed number of items.
type sized struct {
	vitrine.Constraint
	items int
}

func (f sized) Items() int { return f.items }

func familyOf(items int) vitrine.Constraint { return sized{items: items} }

// If the features are a view into a wider matrix, Check must look only at the context's own entries.
func TestContextCheckOfAView(t *testing.T) {
	whole := mat.NewDense(4, 5, nil)
	whole.Apply(func(_, _ int, _ float64) float64 { return nan }, whole)
	view := whole.Slice(1, 3, 2, 4).(*mat.Dense)
	view.Zero()
	x := vitrine.Context{Features: view}
	expect.Error(t, x.Check(2), nil)
	view.Set(1, 0, nan)
	expect.Equal(t, complaint(x.Check(2)),
		"feature 0 of item 1 is NaN: features must be finite and at most 1e+15 in size: scale them", "Check says")
}

func TestOfferChecksThePropensity(t *testing.T) {
	for _, p := range []float64{-0.1, 1.1, 7, math.NaN(), math.Inf(1)} {
		expect.Part(vitrine.Offer{Propensity: p}.Check(0))(t, "must be from 0 to 1", p)
	}
	for _, p := range []float64{0, 1e-300, 1, math.Nextafter(1, 2)} { // a sum of probabilities may be rounded
		expect.Error(t, vitrine.Offer{Propensity: p}.Check(0), nil)
	}
}

// Every case draws from four items.
func TestAssortmentCheck(t *testing.T) {
	for _, c := range []struct {
		name       string
		assortment vitrine.Assortment
		want       string
	}{
		{"OK", vitrine.Assortment{0, 2, 3}, ""},
		{"empty", vitrine.Assortment{}, ""},
		{"nil", nil, ""},
		{"below the first", vitrine.Assortment{-1, 2}, "assortment has item -1 at position 0, outside [0, 4)"},
		{"above the last", vitrine.Assortment{0, 2, 4}, "assortment has item 4 at position 2, outside [0, 4)"},
		{"twice", vitrine.Assortment{1, 1}, "assortment has item 1 after item 1: items must be strictly increasing"},
		{"out of order", vitrine.Assortment{0, 3, 2},
			"assortment has item 2 after item 3: items must be strictly increasing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Equal(t, complaint(c.assortment.Check(4)), c.want, "Check says")
		})
	}
	expect.Equal(t, complaint(vitrine.Assortment{0}.Check(0)), "assortment has item 0 at position 0, outside [0, 0)",
		"of no items Check says")
}

// Check accepts exactly the sets: there are as many valid lists as subsets.
func TestAssortmentCheckAcceptsSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 5
		list := rapid.SliceOfN(rapid.IntRange(-1, n), 0, n+1).Draw(t, "list")
		lawful := true
		for k, i := range list {
			lawful = lawful && 0 <= i && i < n && (k == 0 || list[k-1] < i)
		}
		if err := vitrine.Assortment(list).Check(n); (err == nil) != lawful {
			t.Fatalf("Check(%d) of %v: %v", n, list, err)
		}
	})
}

// Every case offers some of three items with one feature.
func TestRoundCheck(t *testing.T) {
	x := &vitrine.Context{Features: mat.NewDense(3, 1, nil)}
	round := func(x *vitrine.Context, choice vitrine.Choice, s ...int) vitrine.Round {
		return vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: s}, Choice: choice}
	}
	basket := func(first vitrine.Choice, more ...vitrine.Choice) vitrine.Round {
		r := round(x, first, 0, 2)
		r.More = more
		return r
	}
	for _, c := range []struct {
		name  string
		round vitrine.Round
		want  string
	}{
		{"nothing taken", round(x, vitrine.Outside, 0, 2), ""},
		{"last item taken", round(x, 2, 0, 2), ""},
		{"nothing offered", round(x, vitrine.Outside), ""},
		{"nothing to offer", round(&vitrine.Context{}, vitrine.Outside), ""},
		{"no context", round(nil, vitrine.Outside), "round has no context"},
		{"bad context", round(&vitrine.Context{Features: mat.NewDense(3, 1, []float64{0, nan, 0})}, vitrine.Outside),
			"feature 0 of item 1 is NaN: features must be finite and at most 1e+15 in size: scale them"},
		{"bad assortment", round(x, vitrine.Outside, 1, 3), "assortment has item 3 at position 1, outside [0, 3)"},
		{"item of no items", round(&vitrine.Context{}, vitrine.Outside, 0),
			"assortment has item 0 at position 0, outside [0, 0)"},
		{"choice below 0", round(x, -1, 0, 2),
			"choice -1 is not a position in an assortment of 2 items (0 is the outside option)"},
		{"choice beyond the assortment", round(x, 3, 0, 2),
			"choice 3 is not a position in an assortment of 2 items (0 is the outside option)"},
		{"choice where nothing was offered", round(x, 1),
			"choice 1 is not a position in an assortment of 0 items (0 is the outside option)"},
		{"a basket", basket(1, 2, 2, 1), ""},
		{"a further take of nothing", basket(1, 2, 0), "further take 0 is not an item of an assortment of 2 items " +
			"(they count from 1)"},
		{"a further take below 0", basket(1, -1), "further take -1 is not an item of an assortment of 2 items " +
			"(they count from 1)"},
		{"a further take not offered", basket(1, 3), "further take 3 is not an item of an assortment of 2 items " +
			"(they count from 1)"},
		{"takes after nothing", basket(vitrine.Outside, 1), "round has 1 further takes after the outside option: " +
			"make one of them the choice"},
		{"as many takes as there may be", basket(1, slices.Repeat([]vitrine.Choice{2}, vitrine.MaxTakes-1)...), ""},
		{"too many takes", basket(1, slices.Repeat([]vitrine.Choice{2}, vitrine.MaxTakes)...),
			"round has 1001 takes, and at most 1000 are accepted: leave out some"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Equal(t, complaint(c.round.Check(1)), c.want, "Check says")
		})
	}
}

// The zero value of a Choice means that the customer bought nothing.
func TestZeroChoiceIsOutside(t *testing.T) {
	var r vitrine.Round
	expect.Equal(t, r.Choice, vitrine.Outside, "the zero choice is")
}

// Learners call Check on every round, so it must not allocate.
func TestCheckDoesNotAllocate(t *testing.T) {
	r := vitrine.Round{
		Context: &vitrine.Context{Features: mat.NewDense(100, 3, nil), Revenue: make([]float64, 100)},
		Offer:   vitrine.Offer{Assortment: vitrine.Assortment{1, 20, 99}},
		Choice:  3,
	}
	if got := testing.AllocsPerRun(100, func() {
		fatal.If(t, r.Check(3))
	}); got > 0 {
		t.Errorf("Check allocates %v times", got)
	}
}

// An order is a permutation of the assortment.
func TestRoundCheckOfOrders(t *testing.T) {
	x := &vitrine.Context{Features: mat.NewDense(4, 1, nil)}
	for _, c := range []struct {
		order []int
		want  string
	}{
		{nil, ""},
		{[]int{3, 0, 2}, ""},
		{[]int{0, 2}, "order has 2 items, the assortment has 3"},
		{[]int{}, "order has 0 items, the assortment has 3"},
		{[]int{0, 1, 2}, "order has item 1 in place 2, which is not in the assortment"},
		{[]int{0, 2, 0}, "order has item 0 twice"},
	} {
		err := vitrine.Round{
			Context: x, Offer: vitrine.Offer{Assortment: vitrine.Assortment{0, 2, 3}, Order: c.order},
		}.Check(1)
		expect.Equal(t, complaint(err), c.want, "order", c.order)
	}
}
