package theory_test

import (
	"math"
	"testing"

	"vitrine/internal/panics"
	"vitrine/paper/theory"
)

// Values on a power law give its exponent with a negligible interval, for any constants.
func TestSlopeOfAPowerLaw(t *testing.T) {
	x := []float64{250, 500, 1000, 16_000}
	for _, exponent := range []float64{-1, 0, 0.5, 1} {
		y := make([][]float64, len(x))
		for i, v := range x {
			for _, c := range []float64{0.5, 3, 40} {
				y[i] = append(y[i], c*math.Pow(v, exponent))
			}
		}
		s := theory.FitSlope(x, y, newRand(1))
		for _, got := range []float64{s.Estimate, s.Low, s.High} {
			if math.Abs(got-exponent) > 1e-12 {
				t.Errorf("slope %+v, want %v", s, exponent)
			}
		}
	}
}

// With independent noise for each seed, intervals contain the exponent about nineteen times out of twenty: here at
// least 170 of 200, where 190 ± 3 are expected.
func TestSlopeIntervalsCover(t *testing.T) {
	const exponent, trials = 0.5, 200
	x := []float64{100, 400, 1600, 6400}
	covered := 0
	for trial := range uint64(trials) {
		rng := newRand(trial)
		y := make([][]float64, len(x))
		for i, v := range x {
			for range 40 {
				y[i] = append(y[i], math.Pow(v, exponent)*rng.ExpFloat64())
			}
		}
		if s := theory.FitSlope(x, y, rng); s.Low <= exponent && exponent <= s.High {
			covered++
		}
	}
	if covered < 170 {
		t.Errorf("%d of %d intervals have the exponent in them", covered, trials)
	}
}

func TestSlopeNeedsPoints(t *testing.T) {
	if panics.Value(func() { theory.FitSlope([]float64{1}, [][]float64{{1}}, newRand(1)) }) == nil {
		t.Error("a slope of one point")
	}
}
