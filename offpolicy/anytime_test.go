package offpolicy_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/offpolicy"
)

var anytimeLogs = flag.Int("logs", 16, "logs of each world of TestAnytimeCoverage")

// Checked after every round, the intervals are ever wrong in at most a tenth of logs, as their level promises. The
// truth is the mean over the requests so far. This holds even if the logging policy learns, weights are heavy, and the
// model is wrong.
func TestAnytimeCoverage(t *testing.T) {
	s := shop{5, 2}
	worlds := map[string]struct {
		methods []string
		log     func(rng *rand.Rand) (rounds []offpolicy.Round, pages []vitrine.Assortment)
	}{
		"pages in half of rounds": {[]string{"dr-pi"}, func(rng *rand.Rand) ([]offpolicy.Round, []vitrine.Assortment) {
			rounds, pages, _ := s.log(600, 0.5, rng)
			return rounds, pages
		}},
		"pages in a tenth of rounds": {[]string{"dr-pi"},
			func(rng *rand.Rand) ([]offpolicy.Round, []vitrine.Assortment) {
				rounds, pages, _ := s.log(600, 0.1, rng)
				return rounds, pages
			}},
		"uniform": {[]string{"dr-pi", "snips", "dr-sets"},
			func(rng *rand.Rand) ([]offpolicy.Round, []vitrine.Assortment) {
				rounds, pages, _ := s.log(800, 1, rng)
				for t, r := range rounds {
					pages[t] = largest(mat.Col(nil, 1, r.Context.Features), s.size)
				}
				return rounds, pages
			}},
		"heavy propensities": {[]string{"snips"}, func(rng *rand.Rand) ([]offpolicy.Round, []vitrine.Assortment) {
			return shop{5, 1}.heavyLog(1000, rng)
		}},
	}
	for name, world := range worlds {
		missed, counted := map[string]int{}, map[string]int{}
		width := map[string]float64{}
		for seed := range uint64(*anytimeLogs) {
			rounds, pages := world.log(rand.New(rand.NewPCG(seed, 21)))
			o := offpolicy.Options{Level: 0.9, Folds: 2, Resamples: 2}
			if seed%2 == 1 && len(world.methods) > 1 {
				o.Ridge = 1e6 // a model that cannot learn
			}
			r := evaluate(t, newLog(t, rounds, o), pages)
			for _, method := range world.methods {
				e := r.Estimate(method)
				if e.None != "" {
					continue
				}
				counted[method]++
				looks := e.Looks(0.9)
				if last := looks[len(looks)-1]; last != e.Anytime {
					t.Fatalf("%s: %v, and the last look is %v", method, e.Anytime, last)
				}
				width[method] += (e.Anytime.High - e.Anytime.Low) / (e.Normal.High - e.Normal.Low)
				sum := 0.0
				for n, look := range looks {
					sum += s.value(rounds[n].Context, pages[n])
					if truth := sum / float64(n+1); look.Low > truth || look.High < truth {
						missed[method]++
						break
					}
				}
			}
		}
		for _, method := range world.methods {
			n := float64(counted[method])
			t.Logf("%s, %s: wrong at some time in %d of %.0f logs, %.1f times as wide as normal",
				name, method, missed[method], n, width[method]/n)
			if n < float64(*anytimeLogs)/2 || float64(missed[method]) > 0.1*n+3*math.Sqrt(0.09*n) {
				t.Errorf("%s, %s: wrong at some time in %d of %.0f logs", name, method, missed[method], n)
			}
		}
	}
}

// A paired difference's interval contains the truth, and is narrower than the two intervals together. It is missing for
// a policy that learned from later rounds, and if an outcome earned more than its item's revenue.
func TestAnytimeDifference(t *testing.T) {
	s := shop{5, 2}
	rounds, pages, _ := s.log(2000, 1, rand.New(rand.NewPCG(4, 21)))
	own := make([]vitrine.Assortment, len(pages))
	truth := 0.0
	for t := range own {
		own[t] = s.first()
		truth += (s.value(rounds[t].Context, pages[t]) - s.value(rounds[t].Context, own[t])) / float64(len(own))
	}
	l := newLog(t, rounds, offpolicy.Options{Resamples: 2})
	a, b := evaluate(t, l, pages), evaluate(t, l, own)
	list := fatal.Or(a.Difference(b))(t)
	d, x, y := list[1].Anytime, a.Estimate("dr-pi").Anytime, b.Estimate("dr-pi").Anytime
	if !(d.Low < truth && truth < d.High) || d.High-d.Low > x.High-x.Low+y.High-y.Low || d.Low <= 0 {
		t.Errorf("the difference is in %v, want %v inside and to tell the better policy; the values are in %v and %v",
			d, truth, x, y)
	}
	b.Learned()
	if list, _ = a.Difference(b); !math.IsNaN(list[1].Anytime.Low) || !math.IsNaN(b.Estimate("pi").Anytime.High) {
		t.Error("a policy that learned from later rounds has an interval at any time")
	}
	for t := range rounds {
		if rounds[t].Choice != vitrine.Outside {
			rounds[t].Earned = make([]float64, len(rounds[t].Shown))
			rounds[t].Earned[0] = rounds[t].Revenue() + 5
			break
		}
	}
	if e := evaluate(t, l, pages).Estimate("dr-pi"); !math.IsNaN(e.Anytime.Low) {
		t.Errorf("%v with a revenue that has no bound", e.Anytime)
	}
	// Without revenues the upper end is 0, not −0.
	for t := range rounds {
		clear(rounds[t].Context.Revenue)
		rounds[t].Earned = nil
	}
	if high := evaluate(t, l, pages).Estimate("dr-pi").Anytime.High; high != 0 || math.Signbit(high) {
		t.Errorf("the upper end without revenues is %v", high)
	}
}

// heavyLog shows an item with probability proportional to exp(2x) for its first feature x. The judged policy shows the
// item with the smallest second feature.
func (s shop) heavyLog(n int, rng *rand.Rand) (rounds []offpolicy.Round, pages []vitrine.Assortment) {
	u, p := make([]float64, s.n), make([]float64, s.n+1)
	for range n {
		x := s.context(rng)
		least := 0
		for i := range u {
			u[i] = 2*x.Features.At(i, 0) + 50 // makes the outside option negligible
			if x.Features.At(i, 1) < x.Features.At(least, 1) {
				least = i
			}
		}
		vitrine.Probabilities(p, u)
		page := vitrine.Assortment{draw(p, rng) - 1}
		rounds = append(rounds, offpolicy.Round{Context: x, Shown: page, Propensity: p[page[0]+1],
			Choice: vitrine.Choice(draw(s.probabilities(x, page), rng))})
		pages = append(pages, vitrine.Assortment{least})
	}
	return rounds, pages
}

// draw returns k with probability p[k].
func draw(p []float64, rng *rand.Rand) int {
	left := rng.Float64()
	for k, v := range p {
		if left -= v; left < 0 {
			return k
		}
	}
	return 1
}
