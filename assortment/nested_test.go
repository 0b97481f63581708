package assortment_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// By exhaustive search, no set earns more, and the revenue follows the definition of the nested logit.
func TestMaximizeNested(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 9 {
		assortmenttest.Instances(n, 6, func(name string, u, r []float64) {
			nests := assortment.Nests{Of: make([]int, n), Dissimilarity: []float64{1 - rng.Float64(), 0.5, 1}}
			for i := range nests.Of {
				nests.Of[i] = rng.IntN(4) - 1
			}
			s, revenue, err := assortment.MaximizeNested(nil, nests, u, r)
			fatal.If(t, err, name)
			fatal.If(t, s.Check(n), name, s)
			expect.Equal(fatal.T(t), nests.Revenue(s, u, r), revenue, name, s, "earns")
			for set := range 1 << n {
				var other vitrine.Assortment
				for i := range n {
					if set>>i&1 == 1 {
						other = append(other, i)
					}
				}
				if v := nests.Revenue(other, u, r); v > revenue*(1+1e-12) {
					t.Fatalf("%s: u %v, r %v, nests %v: %v earns %v, but %v earns %v",
						name, u, r, nests, s, revenue, other, v)
				}
			}
		})
	}
}

// By hand: u = (log 4, log 1, 0) with λ = ½. The first two form a nest; the squares of their exponentials are 16 and 1.
func TestNestsRevenue(t *testing.T) {
	n := assortment.Nests{Of: []int{0, 0, -1}, Dissimilarity: []float64{0.5}}
	u, r := []float64{math.Log(4), 0, 0}, []float64{1, 3, 2}
	inside := math.Sqrt(17)
	want := (inside*(16*1+1*3)/17 + 2) / (1 + inside + 1)
	if got := n.Revenue([]int{0, 1, 2}, u, r); math.Abs(got-want) > 1e-15 {
		t.Errorf("revenue %v, want %v", got, want)
	}
	expect.Equal(t, n.Revenue(nil, u, r), 0, "the empty set earns")
}

// An expensive item that hardly sells leaves the mean revenue of its nest as it is.
func TestMaximizeNestedOfUnequalRevenues(t *testing.T) {
	n := assortment.Nests{Of: []int{0, 0}, Dissimilarity: []float64{1}}
	s, revenue, err := assortment.MaximizeNested(nil, n, []float64{-100, 0}, []float64{1e40, 1})
	if err != nil || fmt.Sprint(s) != "[0 1]" || math.Abs(revenue-0.5) > 0.01 {
		t.Errorf("%v earns %v, %v", s, revenue, err)
	}
}

// With λ = 1 the model is MNL, and Maximize finds the same optimum.
func TestMaximizeNestedIsMNL(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		n := 30
		u, r, of := make([]float64, n), make([]float64, n), make([]int, n)
		for i := range u {
			u[i], r[i], of[i] = rng.NormFloat64()-2, rng.Float64(), rng.IntN(3)
		}
		want, maximum := assortment.Maximize(nil, assortment.AtMost(n), u, r)
		got, revenue, err := assortment.MaximizeNested(nil,
			assortment.Nests{Of: of, Dissimilarity: []float64{1, 1, 1}}, u, r)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || math.Abs(revenue-maximum) > 1e-14 {
			t.Fatalf("%v earns %v, want %v, %v; %v", got, revenue, want, maximum, err)
		}
	}
}

func TestMaximizeNestedErrors(t *testing.T) {
	for _, c := range []struct {
		nests assortment.Nests
		u, r  []float64
		want  string
	}{
		{assortment.Nests{Of: []int{0}}, []float64{1, 2}, nil, "1 items have a nest, 2 a utility and 0 a revenue"},
		{assortment.Nests{Of: []int{1}, Dissimilarity: []float64{1}},
			[]float64{1}, nil, "item 0 is in nest 1: there are 1"},
		{assortment.Nests{Of: []int{0}, Dissimilarity: []float64{1.2}}, []float64{1}, nil,
			"the dissimilarity of nest 0 is 1.2: want a number in (0, 1], beyond which the optimum is NP-hard"},
		{assortment.Nests{Of: []int{-1}}, []float64{math.NaN()}, nil, "item 0 has utility NaN"},
		{assortment.Nests{Of: []int{-1}}, []float64{1}, []float64{-1},
			"item 0 has revenue -1: want a finite number, at least 0"},
		{assortment.Nests{Of: []int{0, 0}, Dissimilarity: []float64{0.5}}, []float64{1, 1e308}, nil,
			"item 1 has utility 1e+308: with dissimilarity 0.5, want at most 8.99e+307 in magnitude"},
		{assortment.Nests{Of: []int{0}, Dissimilarity: []float64{1e-300}}, []float64{-1e10}, nil,
			"item 0 has utility -1e+10: with dissimilarity 1e-300, want at most 1.8e+08 in magnitude"},
	} {
		if _, _, err := assortment.MaximizeNested(nil, c.nests, c.u, c.r); fmt.Sprint(err) != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}
