package offpolicy_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/offpolicy"
)

// A revenue far from the others is named where it decides an estimate, and few sales of usual revenues are not.
func TestTail(t *testing.T) {
	said := map[string]int{}
	for k := range 40 {
		for name, revenue := range map[string]func(*rand.Rand, int) float64{
			"one":       func(*rand.Rand, int) float64 { return 1 },
			"paid":      func(*rand.Rand, int) float64 { return 1 },
			"reported":  func(*rand.Rand, int) float64 { return 1 }, // sales have values of their own
			"lognormal": func(rng *rand.Rand, _ int) float64 { return math.Exp(rng.NormFloat64() / 2) },
			"pareto":    func(rng *rand.Rand, _ int) float64 { return math.Pow(rng.Float64(), -1/1.1) - 1 },
			"huge": func(_ *rand.Rand, t int) float64 {
				if t == 7 {
					return 1e9
				}
				return 1
			},
		} {
			for _, clustered := range []bool{false, true} {
				rng := rand.New(rand.NewPCG(uint64(k), 12))
				var rounds []offpolicy.Round
				var pages []vitrine.Assortment
				for t := range 300 {
					x := &vitrine.Context{Features: mat.NewDense(5, 1, nil), Revenue: make([]float64, 5)}
					for i := range 5 {
						x.Features.Set(i, 0, rng.NormFloat64())
						x.Revenue[i] = revenue(rng, t)
					}
					two := rng.Perm(5)
					r := offpolicy.Round{Context: x, Shown: vitrine.Assortment{min(two[0], two[1]), max(two[0],
						two[1])},
						SamplingLaw: offpolicy.EpsilonPages(1, 5, 2, nil), Decision: "d" + string(rune('A'+t))}
					if rng.Float64() < 0.02 || name == "reported" && rng.Float64() < 0.05 || name == "pareto" && rng.Float64() < 0.5 {
						r.Choice = 1
					}
					if name == "reported" && (r.Choice > 0 || t == 0) {
						r.Earned = []float64{50, 0}
					}
					if name == "paid" && t == 7 { // more than its price, on the policy's page
						r.Shown, r.Choice, r.Earned = vitrine.Assortment{0, 1}, 1, []float64{1e9, 0}
					}
					if clustered {
						r.Shopper = string(rune('A' + t%100))
					}
					rounds, pages = append(rounds, r), append(pages, vitrine.Assortment{0, 1})
				}
				rounds[0].Choice = 1
				r := evaluate(t, newLog(t, rounds, offpolicy.Options{Resamples: 10}), pages)
				if words := strings.Join(r.Support.Words(), "\n"); strings.Contains(words, "A revenue is far") {
					said[name]++
					if s := `decision "dH" makes up `; (name == "huge" || name == "paid") && (!strings.Contains(words, s) || strings.Contains(words, "00%") && !strings.Contains(words, " 100%") ||
						strings.Contains(words, "the shopper of "+s) != clustered) {
						t.Errorf("clustered %v: %s", clustered, words)
					}
				}
			}
		}
	}
	if said["one"]+said["reported"] > 0 || said["lognormal"] > 0 || said["pareto"] < 40 || said["huge"]+said["paid"] < 160 {
		t.Errorf("of 80 logs of each kind, revenues far from the others are named in %v", said)
	}
}
