package offpolicy_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"vitrine"
	"vitrine/offpolicy"
	"vitrine/utility"
)

// A model from the wrong family raises the alarm, and one from the right family does not.
func TestAlarm(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	var rounds []offpolicy.Round
	var pages []vitrine.Assortment
	for range 3000 { // the utility is |x|, which a linear one cannot express
		x := &vitrine.Context{Features: mat.NewDense(4, 1, nil)}
		for i := range 4 {
			x.Features.Set(i, 0, 4*rng.Float64()-2)
		}
		r := offpolicy.Round{Context: x, SamplingLaw: offpolicy.EpsilonPages(1, 4, 1, nil),
			Shown: vitrine.Assortment{rng.IntN(4)}}
		best := 0
		for i := range 4 {
			if math.Abs(x.Features.At(i, 0)) > math.Abs(x.Features.At(best, 0)) {
				best = i
			}
		}
		u := 2*math.Abs(x.Features.At(r.Shown[0], 0)) - 2
		if rng.Float64() < 1/(1+math.Exp(-u)) {
			r.Choice = 1
		}
		rounds, pages = append(rounds, r), append(pages, vitrine.Assortment{best})
	}
	wrong := evaluate(t, newLog(t, rounds, offpolicy.Options{}), pages)
	if !(wrong.Alarm > 2) || !strings.Contains(wrong.AlarmWords(), "probably wrong") {
		t.Errorf("the alarm is %v: %s", wrong.Alarm, wrong.AlarmWords())
	}
	right := evaluate(t, newLog(t, rounds, offpolicy.Options{Model: utility.NewQuadratic(1)}), pages)
	if math.Abs(right.Alarm) > 3 || wrong.Alarm < right.Alarm {
		t.Errorf("the alarm of a better family is %v", right.Alarm)
	}
}

// A log that only records propensities of pages checks the model too, by dr-sets.
func TestAlarmOfPagePropensities(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 4))
	var rounds []offpolicy.Round
	var pages []vitrine.Assortment
	for range 3000 { // the utility is |x|, which a linear one cannot express
		x := &vitrine.Context{Features: mat.NewDense(4, 1, nil)}
		best := 0
		for i := range 4 {
			x.Features.Set(i, 0, 4*rng.Float64()-2)
			if math.Abs(x.Features.At(i, 0)) > math.Abs(x.Features.At(best, 0)) {
				best = i
			}
		}
		r := offpolicy.Round{Context: x, Propensity: 0.25, Shown: vitrine.Assortment{rng.IntN(4)}}
		if u := 2*math.Abs(x.Features.At(r.Shown[0], 0)) - 2; rng.Float64() < 1/(1+math.Exp(-u)) {
			r.Choice = 1
		}
		rounds, pages = append(rounds, r), append(pages, vitrine.Assortment{best})
	}
	r := evaluate(t, newLog(t, rounds, offpolicy.Options{}), pages)
	if !(r.Alarm > 2) || r.AlarmMethod != "dr-sets" || !strings.Contains(r.AlarmWords(),
		"probably wrong: dr-sets and direct differ") || !strings.Contains(r.AlarmWords(), "Trust dr-sets") {
		t.Errorf("the alarm is %v by %q: %s", r.Alarm, r.AlarmMethod, r.AlarmWords())
	}
}

// True propensities give weights with mean 1. Halved ones, and ones clipped from below, do not.
func TestMeanWeightsOfPages(t *testing.T) {
	s := shop{5, 2}
	for _, c := range []struct {
		name  string
		logs  int
		of    func(mu float64) float64
		words string
	}{
		{"true", 60, func(mu float64) float64 { return mu }, "and 1 is expected"},
		{"halved", 6, func(mu float64) float64 { return mu / 2 }, "instead of 1: the propensities are not those"},
		{"clipped", 6, func(mu float64) float64 { return max(mu, 0.15) },
			"instead of 1: the propensities are too large"},
	} {
		for seed := range uint64(c.logs) {
			rng := rand.New(rand.NewPCG(seed, 11))
			rounds, pages, _ := s.log(2500, 1, rng)
			for t := range rounds {
				rounds[t].Propensity, rounds[t].SamplingLaw = c.of(rounds[t].SamplingLaw.Propensity(rounds[t].Shown)),
					nil
			}
			r := evaluate(t, newLog(t, rounds, offpolicy.Options{Folds: 2, Resamples: 2}), pages)
			if words := strings.Join(r.Support.Words(), "\n"); !strings.Contains(words, c.words) {
				t.Errorf("%s, seed %d: no %q in\n%s", c.name, seed, c.words, words)
			}
		}
	}
}

// With correct laws, short logs that explore rarely raise no alarm, although by chance many contain no drawn page: each
// check may err on at most 0.1% of logs.
func TestRightLawsRaiseNoAlarm(t *testing.T) {
	s := shop{8, 3}
	for seed := range uint64(200) {
		rounds, pages, _ := s.log(100, 0.03, rand.New(rand.NewPCG(seed, 13)))
		l := newLog(t, rounds, offpolicy.Options{Folds: 2, Resamples: 2})
		if b := l.Balance(); b.Wrong() {
			t.Errorf("seed %d: %+v", seed, b)
		}
		if r := evaluate(t, l, pages); r.Support.Weights.Wrong() || r.Support.SetWeights.Wrong() {
			t.Errorf("seed %d: %+v", seed, r.Support)
		}
	}
}

// Bernstein's inequality holds for sums of coins with exact probabilities. For many coins it is within a fifth of the
// normal quantile.
func TestDeviation(t *testing.T) {
	for _, n := range []int{3, 30, 1000} {
		for _, p := range []float64{0.01, 0.3} {
			most := offpolicy.Deviation(float64(n)*p*(1-p), 1-p, 0.001)
			outside := 0.0
			for k := range n + 1 {
				if math.Abs(float64(k)-float64(n)*p) > most {
					outside += distuv.Binomial{N: float64(n), P: p}.Prob(float64(k))
				}
			}
			if outside > 0.001 {
				t.Errorf("n = %d, p = %v: beyond ±%v with probability %v", n, p, most, outside)
			}
		}
	}
	if got, want := offpolicy.Deviation(1e8, 1, 0.001)/1e4, distuv.UnitNormal.Quantile(1-0.0005); got < want ||
		got > 1.2*want {
		t.Errorf("%v standard deviations, and %v by the normal law", got, want)
	}
}

// Pages drawn by a law other than the log's show items with other features. Pages drawn by the log's law are within the
// limit.
func TestBalance(t *testing.T) {
	s := shop{8, 3}
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 12))
		rounds, _, _ := s.log(1000, 0.5, rng)
		if b := newLog(t, rounds, offpolicy.Options{Resamples: 2}).Balance(); b.Wrong() || b.Rounds != 1000 ||
			b.Limit < 4.5 || b.Limit > 5.5 {
			t.Errorf("seed %d: pages drawn by the law: %+v", seed, b)
		}
		for t := range rounds { // shown by the first feature, whatever the law says
			r := &rounds[t]
			r.SamplingLaw = offpolicy.EpsilonPages(1, s.n, s.size, nil)
			if rng.Float64() < 0.5 {
				u := make([]float64, s.n)
				for i := range u {
					u[i] = r.Context.Features.At(i, 0)
				}
				r.Shown, r.Choice = largest(u, s.size), 0
			}
		}
		if b := newLog(t, rounds, offpolicy.Options{Resamples: 2}).Balance(); !b.Wrong() || b.Feature != 0 || b.Z < 10 {
			t.Errorf("seed %d: pages drawn by another law: %+v", seed, b)
		}
	}
	// By hand: two rounds of one page {0} out of two items with x = (3, 1), drawn uniformly: D = 1/2·3 − 1/2·1 = 1, and
	// the count is even.
	var rounds []offpolicy.Round
	for range 2 {
		rounds = append(rounds, offpolicy.Round{Context: &vitrine.Context{Features: mat.NewDense(2, 1,
			[]float64{3, 1})}, Shown: vitrine.Assortment{0}, SamplingLaw: offpolicy.EpsilonPages(1, 2, 1, nil)})
	}
	if b := newLog(t, rounds, offpolicy.Options{Folds: 2, Resamples: 2}).Balance(); b.Feature != 0 ||
		math.Abs(b.Z-math.Sqrt2) > 1e-12 {
		t.Errorf("by hand: %+v, want √2 in feature 0", b)
	}
}
