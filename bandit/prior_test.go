package bandit

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit/bandittest"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// knownLine is a prior of three features; the second is unknown.
func knownLine(t *testing.T) *linearPrior {
	t.Helper()
	p := fatal.Or(newLinearPrior([]float64{2, 0, -1, 0.5}, []float64{
		0.04, 0, 0.01, 0.005,
		0, 0, 0, 0,
		0.01, 0, 0.09, 0,
		0.005, 0, 0, 0.02,
	}, 3))(t)
	return p
}

// The known part of an item's utility keeps its mean and variance under any standardisation. An unknown slope keeps the
// prior of standardised features.
func TestAPriorIsOfFeaturesAsTheyCome(t *testing.T) {
	p := knownLine(t)
	for _, z := range []standardisation{
		{shift: []float64{0, 0, 0}, scale: []float64{1, 1, 1}},
		{shift: []float64{30, -2, 0.1}, scale: []float64{5, 0.01, 2}},
	} {
		at := fatal.Or(p.at(z))(t)
		x := []float64{29, z.shift[1] + 3*z.scale[1], 1.5}
		row := make([]float64, 4)
		for j, v := range x {
			row[j] = (v - z.shift[j]) / z.scale[j]
		}
		row[3] = 1
		mean := 0.0
		for j, v := range row {
			mean += v * at.Mode[j]
		}
		wantNear(t, "the mean", mean, 2*29-1.5+0.5, 1e-9)
		variance := 0.04*29*29 + 0.09*1.5*1.5 + 0.02 + 2*(0.01*29*1.5+0.005*29) + 0.25*3*3
		wantNear(t, "the variance", at.Variance(row), variance, 1e-7)
		expect.Equal(t, at.LogEvidence, 0, "no rounds have the log evidence")
	}
}

func autoKnowing(t testing.TB, places bool) *BMA {
	t.Helper()
	mean, c := []float64{1, -0.5, 0, -1}, mat.NewDiagDense(4, []float64{0.01, 0.01, 0.01, 0.01})
	o := AutoOptions{PositionEffects: places, PriorMean: mean, PriorCovariance: mat.DenseCopyOf(c).RawMatrix().Data}
	return must(NewAuto(paperProblem(), o, newRand())).(*BMA)
}

func TestAPriorKeepsTheContract(t *testing.T) {
	bandittest.TestLearner(t, paperFeatures, paperSize, 60, func() vitrine.Learner { return autoKnowing(t, false) })
}

// The first page is the known one's, also if features are far from 0, and all families that contain the linear one know
// it.
func TestThePriorDecidesTheFirstPage(t *testing.T) {
	for _, places := range []bool{false, true} {
		l := autoKnowing(t, places)
		good := 0
		for s := range 50 {
			x := paperContext(s)
			n := x.NumItems()
			u := make([]float64, n)
			for i := range u {
				x.Features.Set(i, 0, 40+20*x.Features.At(i, 0)) // utilities far apart
				u[i] = x.Features.At(i, 0)
			}
			best, _ := assortment.Maximize(nil, assortment.AtMost(paperSize), u, nil)
			x.Revenue = nil
			if slices.Equal(l.Policy().Offer(x, newRand()).Assortment, best) {
				good++
			}
		}
		if good < 40 {
			t.Errorf("with places %v the first page is the best one %d times of 50", places, good)
		}
		for _, e := range l.experts {
			if e.anchor == nil || math.Abs(e.posterior.Mode[0]-1) > 1e-9 {
				t.Errorf("%v begins at %v", e, e.posterior.Mode)
			}
		}
	}
}

// After some rounds the linear expert's posterior equals a fit with the prior's penalty to the unscaled features.
func TestAPriorIsAPenalty(t *testing.T) {
	l := autoKnowing(t, false)
	play(t, l, func(x []float64) float64 { return 2*x[1] - 1 }, 0, 40)
	l.wait()
	line, want := l.base, make([]float64, 4)
	sum := func(w []float64) float64 { // the penalised loss of slopes and an intercept of features as they came
		u, total := make([]float64, 0), 0.0
		for s := range l.history.Rounds() {
			r := l.history.Round(s)
			if r.Rows() == 0 {
				continue
			}
			u = u[:0]
			x := r.Features()
			for i := range r.Rows() {
				v := w[3]
				for j := range 3 {
					v += w[j] * x.At(i, j)
				}
				u = append(u, v)
			}
			p := make([]float64, len(u)+1)
			vitrine.Probabilities(p, u)
			total -= math.Log(p[r.Choice(0)])
		}
		for j, m := range []float64{1, -0.5, 0, -1} {
			total += (w[j] - m) * (w[j] - m) / 0.02
		}
		return total
	}
	// The mode in terms of the features as they came.
	for j := range 3 {
		want[j] = line.posterior.Mode[j] / l.z.scale[j]
		want[3] -= want[j] * l.z.shift[j]
	}
	want[3] += line.posterior.Mode[3]
	at := sum(want)
	for j := range want {
		for _, h := range []float64{-0.05, 0.05} {
			moved := slices.Clone(want)
			moved[j] += h
			if sum(moved) < at-0.02 {
				t.Errorf("the penalised loss is %v at the mode, and %v beside it", at, sum(moved))
			}
		}
	}
}

func TestBadPriorsAreNamed(t *testing.T) {
	eye := func(n int) []float64 {
		return mat.DenseCopyOf(mat.NewDiagDense(n, slices.Repeat([]float64{1}, n))).RawMatrix().Data
	}
	for want, o := range map[string]AutoOptions{
		"prior_mean: has 3 numbers, must have one for each of 3 features and the intercept": {
			PriorMean: make([]float64, 3), PriorCovariance: eye(4)},
		"prior_mean: has 0 numbers":                         {PriorCovariance: eye(4)},
		"prior_covariance: has 0 numbers, must have the 16": {PriorMean: make([]float64, 4)},
		"prior_mean: number 1 is NaN, must be finite": {
			PriorMean: []float64{0, math.NaN(), 0, 0}, PriorCovariance: eye(4)},
		"prior_covariance: row 0 has +Inf, must be finite": {
			PriorMean: make([]float64, 4), PriorCovariance: slices.Repeat([]float64{math.Inf(1)}, 16)},
		"prior_covariance: row 0 has 1 in column 1, and row 1 has 2": {
			PriorMean: make([]float64, 4), PriorCovariance: []float64{4, 1, 0, 0, 2, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}},
		"prior_covariance: is not the covariance of 4 parameters: must": {
			PriorMean: make([]float64, 4), PriorCovariance: []float64{1, 2, 0, 0, 2, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}},
	} {
		expect.Part(NewAuto(paperProblem(), o, newRand()))(t, want)
	}
	wide := Problem{NumFeatures: 40, MaxShown: 3, Rounds: 100, Constraint: assortment.AtMost(3), Numeric: []int{0}}
	expect.Part(NewAuto(wide, AutoOptions{PriorMean: make([]float64, 41), PriorCovariance: eye(41)},
		newRand()))(t, "at most 30 columns, or 128 if all are numbers, and these have 40", "a wide learner")
}
