package env_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine/env"
	"vitrine/env/envtest"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/panics"
	"vitrine/utility"
)

// direction recovers w of a linear truth from its utilities at the axes.
func direction(truth env.Truth) []float64 {
	d := truth.NumFeatures()
	axes := mat.NewDense(d, d, nil)
	for j := range d {
		axes.Set(j, j, 1)
	}
	return utilities(truth, axes)
}

// With an even number of features w* keeps its length and turns by the pace in each round. After a whole turn it is
// back where it started.
func TestRotationTurnsEveryDirection(t *testing.T) {
	const pace = 2 * math.Pi / 12
	for _, d := range []int{2, 4, 6} {
		r := env.NewRotation(env.NewFamily(utility.NewLinear(d, false), -1, 1, newRand(3)), pace, newRand(4))
		w := direction(r)
		for round := range 13 {
			turned := direction(r.At(round))
			if got, want := floats.Norm(turned, 2), floats.Norm(w, 2); math.Abs(got-want) > 1e-13 {
				t.Errorf("d = %d, round %d: ‖w‖ = %v, want %v", d, round, got, want)
			}
			cos := floats.Dot(turned, w) / floats.Dot(w, w)
			if want := math.Cos(float64(round) * pace); math.Abs(cos-want) > 1e-13 {
				t.Errorf("d = %d, round %d: the cosine of the angle is %v, want %v", d, round, cos, want)
			}
			before := direction(r.At(round + 1))
			if cos := floats.Dot(turned, before) / floats.Dot(w, w); math.Abs(cos-math.Cos(pace)) > 1e-13 {
				t.Errorf("d = %d, round %d: the next is not a pace away", d, round)
			}
		}
	}
}

// With three features one axis stays fixed: the turned truth agrees with the original on it, and w* never turns by more
// than the angle.
func TestRotationKeepsTheOddAxis(t *testing.T) {
	r := env.NewRotation(env.NewFamily(utility.NewLinear(3, false), -1, 1, newRand(3)), 0.1, newRand(4))
	w := direction(r)
	one, two, other := direction(r.At(10)), direction(r.At(20)), direction(r.At(7))
	// w_t − w lies in the plane, so the differences are coplanar.
	m := mat.NewDense(3, 3, nil)
	for i, v := range [][]float64{one, two, other} {
		floats.SubTo(m.RawRowView(i), v, w)
	}
	if det := mat.Det(m); math.Abs(det) > 1e-13 {
		t.Errorf("w moves outside a plane: det = %v", det)
	}
	if cos := floats.Dot(one, w) / floats.Dot(w, w); cos < math.Cos(1) {
		t.Errorf("after 1 radian the angle is %v", math.Acos(cos))
	}
}

// f_t(R_t x) = f(x) for any f: the truth of a round is the first truth, seen from turned axes.
func TestRotationIsOfTheFeatures(t *testing.T) {
	cosine := env.NewCosine(4, 0, newRand(3))
	line := env.NewFamily(utility.NewLinear(4, false), 0, 0, newRand(3))
	copy(line.Params(), cosine.Params())
	x := mat.NewDense(30, 4, nil)
	env.Gaussian{}.Draw(x, newRand(5))
	turned := utilities(env.NewRotation(cosine, 0.2, newRand(4)).At(3), x)
	along := utilities(env.NewRotation(line, 0.2, newRand(4)).At(3), x) // (R_tᵀx)ᵀw*
	for i, v := range along {
		if want := math.Cos(2*math.Pi*v) - v/2; math.Abs(turned[i]-want) > 1e-12 {
			t.Errorf("item %d: %v, want %v", i, turned[i], want)
		}
	}
}

// Contexts shift at the given rounds and use the draws of the Gaussian world: a shopper sees the same items in both
// worlds, scaled and moved after the shift.
func TestShiftsHappenAtTheirRounds(t *testing.T) {
	still := &env.World{Items: 5, Contexts: env.Gaussian{}, Truth: realizable(1), Revenues: env.One{}}
	shifted := *still
	shifted.Contexts = env.NewShifts([]int{4, 6}, []env.Normal{{Mean: 2, Deviation: 3}, {Mean: -1, Deviation: 0.5}})
	gaussian, moved := env.Shoppers{World: still, Seed: 9}, env.Shoppers{World: &shifted, Seed: 9}
	var p, q env.Shopper
	for round, want := range map[int]env.Normal{
		1: {Mean: 0, Deviation: 1}, 3: {Mean: 0, Deviation: 1},
		4: {Mean: 2, Deviation: 3}, 5: {Mean: 2, Deviation: 3},
		6: {Mean: -1, Deviation: 0.5}, 100: {Mean: -1, Deviation: 0.5},
	} {
		fatal.If(t, errors.Join(gaussian.Meet(&p, round), moved.Meet(&q, round)))
		x := mat.DenseCopyOf(p.Context.Features)
		x.Apply(func(_, _ int, v float64) float64 { return want.Mean + want.Deviation*v }, x)
		if !mat.EqualApprox(x, q.Context.Features, 1e-15) ||
			!slices.Equal(utilities(shifted.Truth, q.Context.Features), q.Utilities) {
			t.Errorf("round %d: features %v, want %v", round, mat.Formatted(q.Context.Features), mat.Formatted(x))
		}
	}
	for name, make := range map[string]func(){
		"a law too few": func() { env.NewShifts([]int{4, 6}, []env.Normal{{Mean: 0, Deviation: 1}}) },
		"no order":      func() { env.NewShifts([]int{6, 4}, []env.Normal{{}, {}}) },
	} {
		if panics.Value(make) == nil {
			t.Errorf("%s: no panic", name)
		}
	}
}

// A world moves as its truth does. A world with a fixed truth is the same in every round.
func TestAtIsTheWorldOfARound(t *testing.T) {
	still := &env.World{Items: 5, Contexts: env.Gaussian{}, Truth: realizable(1), Revenues: env.One{}}
	if env.At(still, 7) != env.Environment(still) {
		t.Error("a world that stays is another in round 7")
	}
	moving := *still
	moving.Truth = envtest.Step{Truth: realizable(1), After: realizable(2), From: 7}
	x := moving.Context(newRand(3))
	u := make([]float64, 5)
	for round, want := range map[int]env.Truth{6: realizable(1), 7: realizable(2)} {
		env.At(&moving, round).Utilities(u, x)
		expect.Equal(t, slices.Clone(u), utilities(want, x.Features), "round", round)
	}
}

func TestTruthsNeedFeatures(t *testing.T) {
	for name, make := range map[string]func(){
		"a product of two":  func() { env.NewProduct(2, newRand(1)) },
		"kinks of one":      func() { env.NewAbs(1, newRand(1)) },
		"segments of one":   func() { env.NewSegments(1, true, newRand(1)) },
		"none relevant":     func() { env.NewSparse(3, 0, newRand(1)) },
		"too many relevant": func() { env.NewSparse(3, 4, newRand(1)) },
		"a rotation of one": func() { env.NewRotation(env.NewRadial(1, newRand(1)), 1, newRand(1)) },
	} {
		if panics.Value(make) == nil {
			t.Errorf("%s: no panic", name)
		}
	}
}
