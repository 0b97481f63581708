package bandit

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/fatal"
)

// Oh and Iyengar (2019), Theorem 2: M = ⌈1 − log K / log(1 − 1/(4√(eπ)))⌉. For
// K = 5 that is ⌈1 + 1.6094/0.0894⌉ = 19.
func TestTSSampleCount(t *testing.T) {
	for size, want := range map[int]int{1: 1, 5: 19, 10: 27, 15: 32} {
		if got := OptimisticSamples(size); got != want {
			t.Errorf("M(%d) = %d, want %d", size, got, want)
		}
	}
	l := fatal.Or(NewTS(paperProblem(), DefaultTSOptions()))(t)
	if got := l.Policy().(*sampling).samples; got != OptimisticSamples(paperSize) {
		t.Errorf("the policy draws %d samples, want M(K) = %d", got, OptimisticSamples(paperSize))
	}
}

// Under K = 1 item i is offered as often as its sampled utility is the largest:
// with one sample of N(θ̂, α²V⁻¹) and the two items x and −x, item 0 wins with
// probability Φ(xᵀθ̂ / (α‖x‖_{V⁻¹})).
func TestTSSamplesTheGaussian(t *testing.T) {
	const alpha, draws = 0.8, 20_000
	p := paperProblem()
	p.Constraint, p.MaxShown = assortment.AtMost(1), 1
	l := fatal.Or(NewTS(p, TSOptions{LinearOptions: LinearOptions{Constants: "tuned", Radius: alpha, Lambda: 1},
		Samples: 1}))(t)
	observeAll(t, l, linearHistory(t, 30))
	x := mat.NewDense(2, paperFeatures, []float64{0.2, -1, 0.5, -0.2, 1, -0.5})
	norm := make([]float64, 2)
	l.v.Inverse().Norms(norm, x)
	mean := mat.Dot(x.RowView(0), mat.NewVecDense(paperFeatures, l.est.Params()))
	want := 0.5 * math.Erfc(-mean/(alpha*norm[0])/math.Sqrt2)

	rng, wins := newRand(), 0
	for range draws {
		if l.Policy().Offer(&vitrine.Context{Features: x}, rng).Assortment[0] == 0 {
			wins++
		}
	}
	se := math.Sqrt(want * (1 - want) / draws)
	if got := float64(wins) / draws; math.Abs(got-want) > 4*se {
		t.Errorf("item 0 wins with frequency %.4f, want %.4f ± %.4f", got, want, se)
	}
}

// Optimistic sampling takes the largest utility of each item, so with many
// samples every item's index exceeds its mean.
func TestTSTakesTheLargestSample(t *testing.T) {
	l := fatal.Or(NewTS(paperProblem(), TSOptions{LinearOptions: LinearOptions{Constants: "tuned", Radius: 5,
		Lambda: 1}, Samples: 200}))(t)
	observeAll(t, l, linearHistory(t, 30))
	x := paperContext(7)
	z := l.Policy().(*sampling).index(new(samplingScratch), x, newRand())
	norms := make([]float64, paperItems)
	l.v.Inverse().Norms(norms, x.Features)
	for i, got := range z {
		mean := mat.Dot(x.Features.RowView(i), mat.NewVecDense(paperFeatures, l.est.Params()))
		// The largest of 200 standard normals is in [1, 5] but for 1e-4.
		if lo, hi := mean+5*norms[i], mean+25*norms[i]; got < lo || got > hi {
			t.Errorf("z_%d = %v, want it in [%v, %v]", i, got, lo, hi)
		}
	}
}
