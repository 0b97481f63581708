package bandit_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/utility"
)

// The utilities of BMA-MNL give the mean probabilities of the posterior, here of one parameter, as does an integral
// over a grid. The items ±1 are standardised already, so they are not scaled.
func TestMeanProbabilities(t *testing.T) {
	model := utility.NewLinear(1, false)
	p := bandit.Problem{NumFeatures: 1, Items: 2, MaxShown: 2, Rounds: 100, Constraint: assortment.AtMost(2)}
	l := fatal.Or(bandit.NewBMA(p, []bandit.Expert{{Model: model}}, bandit.DefaultBMAOptions(),
		stream.New(1, 0, stream.Learner)))(t)
	x := &vitrine.Context{Features: mat.NewDense(2, 1, []float64{-1, 1})}
	prior := make([]float64, 1)
	utility.Precisions(model, prior)
	choices := []vitrine.Choice{2, 2, 0, 2, 1, 2, 2, 2, 0, 2, 2, 2}
	for n := range len(choices) + 1 {
		want, total := make([]float64, 3), 0.0
		probabilities := make([]float64, 3)
		for theta := -12.0; theta <= 12; theta += 0.01 {
			vitrine.Probabilities(probabilities, []float64{-theta, theta})
			log := -prior[0] * theta * theta / 2
			for _, c := range choices[:n] {
				log += math.Log(probabilities[c])
			}
			weight := math.Exp(log)
			total += weight
			for k, v := range probabilities {
				want[k] += weight * v
			}
		}
		u, have := make([]float64, 2), make([]float64, 3)
		l.Policy().(interface {
			Utilities([]float64, *vitrine.Context)
		}).Utilities(u, x)
		vitrine.Probabilities(have, u)
		for k := range want {
			if math.Abs(have[k]-want[k]/total) > 0.04 {
				t.Errorf("after %d rounds the probabilities are %.3f, item %d has %.3f by the integral", n, have, k,
					want[k]/total)
			}
		}
		if n < len(choices) {
			fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: vitrine.Assortment{0, 1}},
				Choice: choices[n]}))
		}
	}
}
