package theory_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine/env"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/paper/theory"
	"vitrine/utility"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 3)) }

func normal(n int, rng *rand.Rand) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

func network(s theory.Symmetries) utility.Model {
	return utility.NewMLP(s.Features, []int{s.Hidden}, s.Activation)
}

// permutations calls f with each ordering of n elements.
func permutations(n int, f func(order []int)) {
	order := make([]int, 0, n)
	used := make([]bool, n)
	var extend func()
	extend = func() {
		if len(order) == n {
			f(order)
			return
		}
		for j := range n {
			if !used[j] {
				used[j] = true
				order = append(order, j)
				extend()
				order = order[:len(order)-1]
				used[j] = false
			}
		}
	}
	extend()
}

// Every image is the same function.
func TestImagesAreEquivalent(t *testing.T) {
	for _, a := range []utility.Activation{utility.Sigmoid, utility.Tanh} {
		s := theory.Symmetries{Features: 2, Hidden: 3, Activation: a}
		m := network(s)
		w := normal(s.NumParams(), newRand(1))
		x := mat.NewDense(20, 2, nil)
		env.Gaussian{}.Draw(x, newRand(2))
		want, got := make([]float64, 20), make([]float64, 20)
		m.Utilities(want, w, x)
		images := 0
		permutations(3, func(order []int) {
			for flips := range uint(8) {
				m.Utilities(got, s.Image(w, order, flips), x)
				if d := floats.Distance(got, want, math.Inf(1)); d > 1e-14 {
					t.Fatalf("%v: order %v, signs %03b: utilities differ by %v", a, order, flips, d)
				}
				images++
			}
		})
		expect.Equal(t, images, 48, "images")
	}
}

// The nearest image agrees with an exhaustive search over all 2^m m!.
func TestNearestAgainstExhaustiveSearch(t *testing.T) {
	for _, a := range []utility.Activation{utility.Sigmoid, utility.Tanh} {
		for hidden := 1; hidden <= 5; hidden++ {
			s := theory.Symmetries{Features: 2, Hidden: hidden, Activation: a}
			for seed := range uint64(12) {
				rng := newRand(seed)
				w, star := normal(s.NumParams(), rng), normal(s.NumParams(), rng)
				minimum := math.Inf(1)
				permutations(hidden, func(order []int) {
					for flips := range uint(1) << hidden {
						minimum = min(minimum, floats.Distance(w, s.Image(star, order, flips), 2))
					}
				})
				nearest, distance, err := s.Nearest(w, star)
				fatal.If(t, err)
				if math.Abs(distance-minimum) > 1e-12 || math.Abs(floats.Distance(w, nearest, 2)-minimum) > 1e-12 {
					t.Errorf("%v, %d units, seed %d: distance %v, of the image %v, want %v",
						a, hidden, seed, distance, floats.Distance(w, nearest, 2), minimum)
				}
			}
		}
	}
}

// Nearest finds any image of w* from an estimate near it.
func TestNearestFindsTheImage(t *testing.T) {
	s := theory.Symmetries{Features: 3, Hidden: 5, Activation: utility.Sigmoid}
	rng := newRand(4)
	star := normal(s.NumParams(), rng)
	image := s.Image(star, rng.Perm(5), uint(rng.IntN(1<<5)))
	w := append([]float64(nil), image...)
	floats.AddScaled(w, 1e-3, normal(len(w), rng))
	nearest, distance, err := s.Nearest(w, star)
	fatal.If(t, err)
	if !floats.EqualApprox(nearest, image, 1e-14) || math.Abs(distance-floats.Distance(w, image, 2)) > 1e-14 {
		t.Errorf("distance %v, want %v", distance, floats.Distance(w, image, 2))
	}
}

func TestSymmetriesThatAreNotKnown(t *testing.T) {
	for want, s := range map[string]theory.Symmetries{
		"symmetries of activation relu": {Features: 2, Hidden: 3, Activation: utility.ReLU},
		"hidden layer of 0 units":       {Features: 2, Hidden: 0, Activation: utility.Tanh},
		"hidden layer of 6 units":       {Features: 2, Hidden: 6, Activation: utility.Tanh},
		"2 and 2 parameters, want 13":   {Features: 2, Hidden: 3, Activation: utility.Tanh},
	} {
		expect.Part(s.Nearest(make([]float64, 2), make([]float64, 2)))(t, want)
	}
}
