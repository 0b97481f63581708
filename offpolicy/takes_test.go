package offpolicy_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/offpolicy"
)

// baskets draws a log of visits with 1.5 takes, if any, and returns how much the judged pages earn.
func baskets(rounds int, rng *rand.Rand) (log []offpolicy.Round, pages []vitrine.Assortment, truth float64) {
	s := shop{5, 2}
	log, pages, truth = s.log(rounds, 0.5, rng)
	for t := range log {
		r := &log[t]
		for r.Choice != vitrine.Outside && rng.Float64() < 1./3 {
			p := s.probabilities(r.Context, r.Shown)
			c := vitrine.Choice(1)
			if rng.Float64() < p[2]/(p[1]+p[2]) {
				c = 2
			}
			r.More = append(r.More, c)
		}
	}
	return log, pages, 1.5 * truth
}

// With several takes a visit, every method finds the truth, and its standard error is the spread over repeated logs. No
// page's earnings are bounded, so there is no interval for any time.
func TestEvaluateBaskets(t *testing.T) {
	const logs = 40
	off := map[string][]float64{}
	errors := map[string]float64{}
	rng := rand.New(rand.NewPCG(38, 7))
	for range logs {
		rounds, pages, truth := baskets(400, rng)
		l := newLog(t, rounds, offpolicy.Options{Resamples: 20})
		if mean, se := l.Takes(); math.Abs(mean-1.5) > 4*se || se < 0.03 || se > 0.08 {
			t.Errorf("%v ± %v takes a visit, want 1.5", mean, se)
		}
		r := evaluate(t, l, pages)
		if words := strings.Join(r.Support.Words(), " "); !strings.Contains(words, "no interval holds at any time") {
			t.Error(words)
		}
		for _, e := range r.Estimates {
			if e.None == "" {
				off[e.Method] = append(off[e.Method], e.Value-truth)
				errors[e.Method] += e.StandardError / logs
			}
			if !math.IsNaN(e.Anytime.Low) {
				t.Errorf("%s has the interval %v for any time", e.Method, e.Anytime)
			}
		}
	}
	for _, method := range []string{"direct", "dr-pi", "pi"} {
		mean, sd := stat.MeanStdDev(off[method], nil)
		if len(off[method]) < logs {
			t.Errorf("%s: %d estimates of %d logs", method, len(off[method]), logs)
		}
		if math.Abs(mean) > 4*sd/math.Sqrt(logs) {
			t.Errorf("%s is off by %.4f ± %.4f", method, mean, sd/math.Sqrt(logs))
		}
		if ratio := errors[method] / sd; ratio < 0.7 || ratio > 1.4 {
			t.Errorf("%s: the standard error is %.2f times the spread", method, ratio)
		}
	}
}

// The number of takes enters the direct method's standard error: with the choices as they are, it is larger if numbers
// vary.
func TestDirectKnowsTheErrorOfTheNumber(t *testing.T) {
	rounds, pages, _ := shop{5, 2}.log(300, 0.5, rand.New(rand.NewPCG(38, 8)))
	number := func(more func(t int) int) *offpolicy.Estimate {
		log := make([]offpolicy.Round, len(rounds))
		for t, r := range rounds {
			log[t] = r
			for k := 0; r.Choice != vitrine.Outside && k < more(t); k++ {
				log[t].More = append(log[t].More, r.Choice)
			}
		}
		return evaluate(t, newLog(t, log, offpolicy.Options{Resamples: 1}), pages).Estimate("direct")
	}
	even, uneven := number(func(int) int { return 1 }), number(func(t int) int { return 2 * (t % 2) })
	if math.Abs(even.Value/uneven.Value-1) > 0.1 || uneven.StandardError < 1.05*even.StandardError {
		t.Errorf("two takes a visit are worth %v ± %v, one or three %v ± %v",
			even.Value, even.StandardError, uneven.Value, uneven.StandardError)
	}
}

// A page earns the revenues of all its takes, or the earnings of its items, and the items weight each by its own
// probability.
func TestRevenueOfBaskets(t *testing.T) {
	rounds, _, _ := shop{5, 2}.log(2, 1, rand.New(rand.NewPCG(38, 9)))
	r := rounds[0]
	r.Shown, r.Choice, r.More = vitrine.Assortment{1, 3}, 2, []vitrine.Choice{1, 2}
	rounds[1].Choice, rounds[1].More = vitrine.Outside, nil
	third := r.Context.Revenue[3]
	for _, c := range []struct {
		earned      []float64
		page, third float64
	}{{nil, 2*third + r.Context.Revenue[1], 2 * third}, {[]float64{100, 0.5}, 100.5, 0.5}} {
		if r.Earned = c.earned; math.Abs(r.Revenue()-c.page) > 1e-12 {
			t.Errorf("ρ = %v, want %v", r.Revenue(), c.page)
		}
		rounds[0] = r
		l := newLog(t, rounds, offpolicy.Options{Folds: 2, Resamples: 1})
		report := fatal.Or(l.Evaluate("pages", []vitrine.Assortment{{0, 3}, {0, 3}}))(t)
		want := c.third / r.SamplingLaw.Inclusion(3) / 2
		if got := report.Estimate("items").Value; math.Abs(got-want) > 1e-12 {
			t.Errorf("items: %v, want %v", got, want)
		}
	}
	rounds[0].More = []vitrine.Choice{3}
	expect.Refused(offpolicy.NewLog(t.Context(), rounds, offpolicy.Options{Folds: 2}))(t,
		"a take of no item is accepted")
}
