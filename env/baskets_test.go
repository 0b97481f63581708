package env_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/env"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/panics"
	"vitrine/utility"
)

// crowd returns the visits of a world of 6 items.
func crowd(b env.Baskets) *env.Shoppers {
	truth := env.NewFamily(utility.NewLinear(2, false), -1, 1, rand.New(rand.NewPCG(3, 8)))
	return &env.Shoppers{World: &env.World{Items: 6, Contexts: env.Gaussian{}, Truth: truth,
		Revenues: env.UniformRevenue{Low: 0.2, High: 1}, Takers: b}, Seed: 5}
}

// The mean revenue and the number of takes of many visits are what the baskets say, in standard errors.
func TestBasketsEarnWhatTheySay(t *testing.T) {
	for name, b := range map[string]env.Baskets{
		"one":         env.Independent{Number: 1},
		"independent": env.Independent{Number: 1.3},
		"three":       env.Independent{Number: 3},
		"complements": env.Complements{Strength: 3, Reluctance: 1},
	} {
		s := crowd(b)
		var p env.Shopper
		page := vitrine.Assortment{0, 2, 3, 5}
		const visits = 20_000
		var off, square, takes, takes2, some float64
		for round := 1; round <= visits; round++ {
			fatal.If(t, s.Meet(&p, round))
			first, more := s.Visit(&p, round, page, nil, nil)
			earned := 0.0
			if first != vitrine.Outside {
				for _, c := range append([]vitrine.Choice{first}, more...) {
					earned += p.Context.Revenue[page[c-1]]
				}
				m := float64(1 + len(more))
				some, takes, takes2 = some+1, takes+m, takes2+m*m
			} else if more != nil {
				t.Fatalf("%s: further takes after none", name)
			}
			single := vitrine.ExpectedRevenue(page, p.Utilities, p.Context.Revenue)
			earned -= b.Revenue(p.Context, page, p.Shown(page, nil, nil), single)
			off, square = off+earned, square+earned*earned
		}
		if z := off / math.Sqrt(square); math.Abs(z) > 4 {
			t.Errorf("%s: visits earn %v more than expected, %v standard errors", name, off/visits, z)
		}
		if mean := takes / some; b.Mean() > 0 &&
			math.Abs(mean-b.Mean()) > 4*math.Sqrt((takes2/some-mean*mean)/some)+1e-12 {
			t.Errorf("%s: %v takes a visit with any, want %v", name, mean, b.Mean())
		}
	}
}

// A shopper whom no call of Meet has made visits no page.
func TestVisitBeforeMeet(t *testing.T) {
	s := crowd(env.Independent{Number: 1})
	for _, p := range []env.Shopper{{}, {Utilities: []float64{1, 2}, Exponentials: []float64{1, 1}}} {
		expect.Equal(t, panics.Value(func() { s.Visit(&p, 1, vitrine.Assortment{0}, nil, nil) }),
			any("env: Visit of a shopper before Meet"))
	}
}

// With one taker a visit is a choice, and different pages meet the same further takers: takes of items that both pages
// show agree more often than by chance.
func TestVisitsArePaired(t *testing.T) {
	one, several := crowd(env.Independent{Number: 1}), crowd(env.Independent{Number: 3})
	var p env.Shopper
	order, effects := []int{4, 0, 2}, []float64{0, -1}
	for round := 1; round <= 300; round++ {
		fatal.If(t, one.Meet(&p, round))
		page := vitrine.Assortment{0, 2, 4}
		if first, more := one.Visit(&p, round, page, nil, nil); first != p.Choose(page) || more != nil {
			t.Fatalf("round %d: takes %d, %v", round, first, more)
		}
		first, _ := one.Visit(&p, round, page, order, effects)
		expect.Equal(fatal.T(t), first, p.ChooseDisplayed(page, order, effects), "round", round, "takes n on a display")
		fatal.If(t, several.Meet(&p, round))
		narrow, wide := vitrine.Assortment{0, 2, 4}, vitrine.Assortment{0, 1, 2, 3, 4, 5}
		a, more := several.Visit(&p, round, narrow, nil, nil)
		b, others := several.Visit(&p, round, wide, nil, nil)
		if a == vitrine.Outside || b == vitrine.Outside {
			continue
		}
		if len(more) != len(others) {
			t.Fatalf("round %d: %d further takes of one page, %d of another", round, len(more), len(others))
		}
		for k, c := range others {
			if item := wide[c-1]; slices.Contains(narrow, item) && narrow[more[k]-1] != item {
				t.Fatalf("round %d: a taker prefers item %d, but not among fewer items", round, item)
			}
		}
	}
}

// The revenue of complements is that of all pairs, and items of both sides sell more of them.
func TestComplementsByHand(t *testing.T) {
	x := &vitrine.Context{Features: mat.NewDense(2, 1, []float64{1, -1}), Revenue: []float64{2, 3}}
	u := []float64{0.5, -0.2}
	b := env.Complements{Strength: 2, Reluctance: 1}
	e := math.Exp
	sum := 1 + e(0.5) + e(-0.2)
	single := (2*e(0.5) + 3*e(-0.2)) / sum
	want := single + e(0.5)/sum*3*e(0.8)/(1+e(0.8)) + e(-0.2)/sum*2*e(1.5)/(1+e(1.5))
	if got := b.Revenue(x, vitrine.Assortment{0, 1}, u, single); math.Abs(got-want) > 1e-14 {
		t.Errorf("R = %v, want %v", got, want)
	}
	x.Features.Set(1, 0, 1)
	if same := b.Revenue(x, vitrine.Assortment{0, 1}, u, single); !(same < want && same > single) {
		t.Errorf("items of the same side earn %v, of different sides %v", same, want)
	}
}
