package offpolicy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/offpolicy"
)

// Limits of a log are described in words rather than numbers.
func TestSupportInWords(t *testing.T) {
	s := shop{6, 2}
	for name, c := range map[string]struct {
		share  float64
		change func(rounds []offpolicy.Round)
		words  []string
		none   []string // methods without a number
	}{
		"enough": {0.5, nil, []string{"how every page was drawn", "could have been shown", "worth", "is expected"},
			[]string{"snips", "dr-sets"}},
		"no exploration": {0, nil, []string{"% of rounds; in the others the model is trusted",
			"never showed these items of its pages: "}, []string{"pi", "items", "snips", "dr-sets"}},
		"no propensities": {0.5, func(rounds []offpolicy.Round) {
			for t := range rounds {
				rounds[t].SamplingLaw = nil
			}
		}, []string{"does not say how pages were drawn"}, []string{"dr-pi", "pi", "items", "snips", "dr-sets"}},
		"only propensities": {1, func(rounds []offpolicy.Round) {
			for t := range rounds {
				rounds[t].Propensity, rounds[t].SamplingLaw = 1/15.0, nil
			}
		}, []string{"has the propensities of 100.0% of pages but not how"}, []string{"dr-pi", "pi", "items"}},
		"a wrong law": {1, func(rounds []offpolicy.Round) {
			for t := range rounds {
				rounds[t].SamplingLaw = offpolicy.EpsilonPages(0.2, 6, 2, vitrine.Assortment{0, 1})
			}
		}, []string{"the pages were not drawn as the log says"},
			[]string{"dr-pi", "pi", "items", "snips", "dr-sets"}},
		"some laws": {0.5, func(rounds []offpolicy.Round) {
			for t := range rounds[:300] {
				rounds[t].SamplingLaw = nil
			}
		}, []string{"in 75.0% of rounds", "in the others the model is trusted"},
			[]string{"pi", "items", "snips", "dr-sets"}},
	} {
		t.Run(name, func(t *testing.T) {
			rounds, pages, _ := s.log(1200, c.share, rand.New(rand.NewPCG(5, 6)))
			if name == "enough" {
				rounds, pages = rounds[:300], pages[:300]
			}
			if c.change != nil {
				c.change(rounds)
			}
			r := evaluate(t, newLog(t, rounds, offpolicy.Options{Resamples: 20}), pages)
			words := strings.Join(r.Support.Words(), "\n")
			for _, want := range c.words {
				if !strings.Contains(words, want) {
					t.Errorf("no %q in\n%s", want, words)
				}
			}
			for _, e := range r.Estimates {
				want := slices.Contains(c.none, e.Method)
				if (e.None != "") != want || e.None != "" && !math.IsNaN(e.Value) {
					t.Errorf("%s has %v, %q", e.Method, e.Value, e.None)
				}
			}
		})
	}
}

// One page with a tiny propensity outweighs all others, however tiny: page weights give no number, in any unit.
func TestTinyPropensity(t *testing.T) {
	for _, tiny := range []float64{1e-20, 1e-150, 1e-160, 1e-300, 5e-324} {
		rounds, pages, _ := shop{6, 2}.log(1200, 1, rand.New(rand.NewPCG(5, 6)))
		for k := range rounds {
			rounds[k].Propensity, rounds[k].SamplingLaw = 1/15.0, nil
		}
		rounds[7].Shown, rounds[7].Propensity = pages[7], tiny
		rounds[7].Choice = min(rounds[7].Choice, 1)
		r := evaluate(t, newLog(t, rounds, offpolicy.Options{Resamples: 20}), pages)
		for _, method := range []string{"snips", "dr-sets"} {
			if e := r.Estimate(method); !strings.Contains(e.None, "no support: the log has 1 effective rounds") {
				t.Errorf("%v: %s is %v, %q", tiny, method, e.Value, e.None)
			}
		}
		if tiny < 1e-300 {
			continue
		}
		// With laws of items, too.
		rounds, pages, _ = shop{6, 2}.log(1200, 1, rand.New(rand.NewPCG(5, 6)))
		for k := range rounds {
			rounds[k].Shown, pages[k] = vitrine.Assortment{k % 2, 3 + k/2%2}, vitrine.Assortment{2, 3}
			rounds[k].SamplingLaw = offpolicy.Independent([]int{0, 0, 0, 1, 1, 1}, []float64{0.5, 0.5, tiny, 0.5,
				0.5, tiny})
		}
		rounds[8].Shown = vitrine.Assortment{2, 3}
		r = evaluate(t, newLog(t, rounds, offpolicy.Options{Resamples: 20}), pages)
		if strings.Contains(strings.Join(r.Support.Words(), " "), "NaN") || strings.Contains(r.AlarmWords(), "NaN") {
			t.Errorf("%v: %q %q", tiny, r.Support.Words(), r.AlarmWords())
		}
	}
}

// A log that happens to lack the rare pages with large weights contains similar weights. They are judged by the law,
// and give no number.
func TestAlikeWeightsAreNoSupport(t *testing.T) {
	s := shop{9, 2}
	rounds, pages, _ := s.log(400, 0.05, rand.New(rand.NewPCG(1, 6)))
	for t := range rounds { // every page is the policy's own, and so is every second target
		rounds[t].Shown = s.first()
		rounds[t].Choice = min(rounds[t].Choice, 2)
		if t%2 == 0 {
			pages[t] = s.first()
		}
	}
	r := evaluate(t, newLog(t, rounds, offpolicy.Options{Resamples: 10}), pages)
	if r.Support.Shown < 200 || r.Support.SetESS > 5 {
		t.Errorf("shown in %d rounds, worth %v", r.Support.Shown, r.Support.SetESS)
	}
	if e := r.Estimate("snips"); e.None == "" {
		t.Errorf("snips is %v", e.Value)
	}
	if e := r.Estimate("dr-pi"); e.ESS > 20 || !strings.Contains(r.AlarmWords(), "too small") {
		t.Errorf("the item weights are worth %v rounds; %s", e.ESS, r.AlarmWords())
	}
	// A policy that learned lacks intervals at any time, so the words do not recommend them.
	if r.Learned(); !strings.Contains(strings.Join(r.Support.Words(), " "),
		": too few for normal and bootstrap intervals.") {
		t.Errorf("%q", r.Support.Words())
	}
}

// With few sales on the policy's pages, weighted methods give no normal or bootstrap interval, and the model gets no
// verdict. From [offpolicy.MinSales] on, the intervals contain the truth in most logs. Clicks do not depend on anything.
func TestFewSales(t *testing.T) {
	const logs, items = 20, 10
	for _, rate := range []float64{0.005, 0.06, 0.1} {
		given, missed, refuted := 0, 0, 0
		for seed := range uint64(logs) {
			rng := rand.New(rand.NewPCG(seed, 3))
			var rounds []offpolicy.Round
			for range 1000 {
				x := &vitrine.Context{Features: mat.NewDense(items, 1, nil)}
				for i := range items {
					x.Features.Set(i, 0, rng.NormFloat64())
				}
				r := offpolicy.Round{Context: x, Shown: vitrine.Assortment{rng.IntN(items)},
					SamplingLaw: offpolicy.EpsilonPages(1, items, 1, nil)}
				if rng.Float64() < rate {
					r.Choice = 1
				}
				rounds = append(rounds, r)
			}
			rounds[0].Choice = 1
			l := newLog(t, rounds, offpolicy.Options{Folds: 2, Resamples: 100})
			r := evaluate(t, l, slices.Repeat([]vitrine.Assortment{{0}}, len(rounds)))
			other := evaluate(t, l, slices.Repeat([]vitrine.Assortment{{1}}, len(rounds)))
			difference := fatal.Or(r.Difference(other))(t)
			matched := 0.0
			for _, r := range rounds {
				if r.Shown[0] == 0 && r.Choice > 0 {
					matched++
				}
			}
			words := strings.Join(r.Support.Words(), " ")
			for _, e := range r.Estimates[1:] {
				known := !math.IsNaN(e.StandardError) && !math.IsNaN(e.Normal.Low) && !math.IsNaN(e.Bootstrap.Low)
				if math.Abs(e.Sales-matched) > 1e-9 || known != (matched >= offpolicy.MinSales) || math.IsNaN(e.Value) ||
					math.IsNaN(e.Anytime.Low) || known == strings.Contains(words,
					fmt.Sprintf(" count %.0f sales: too few", matched)) {
					t.Errorf("rate %v, seed %d: with %v sales: %+v, %s", rate, seed, matched, e, words)
				}
			}
			if d := difference[1]; math.IsNaN(d.StandardError) != (d.Sales < offpolicy.MinSales) ||
				d.Sales != min(r.Support.Sales, other.Support.Sales) {
				t.Errorf("rate %v, seed %d: the difference is %+v", rate, seed, d)
			}
			if matched < offpolicy.MinSales {
				if !math.IsNaN(r.Alarm) || !strings.Contains(r.AlarmWords(),
					"too small to check the model: the weights of dr-pi count") {
					t.Errorf("rate %v, seed %d: with %v sales: %s", rate, seed, matched, r.AlarmWords())
				}
				continue
			}
			given++
			if e := r.Estimate("dr-pi"); e.Normal.Low > rate || e.Normal.High < rate {
				missed++
			}
			if math.Abs(r.Alarm) > 2 {
				refuted++
			}
		}
		t.Logf("rate %v: %d of %d logs give intervals, of which %d miss the truth; %d refute the model", rate,
			given, logs, missed, refuted)
		if rate < 0.01 && given > 0 || rate > 0.05 && (given < logs/2 || missed > given/5 || refuted > given/5) {
			t.Errorf("rate %v: %d of %d logs give intervals, %d miss the truth, and %d refute the model", rate,
				given, logs, missed, refuted)
		}
	}
}
