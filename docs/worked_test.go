package docs_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// hyperbola is the family f_w(x) = tanh(wx) of the worked round.
type hyperbola struct{}

func (hyperbola) NumFeatures() int               { return 1 }
func (hyperbola) NumParams() int                 { return 1 }
func (hyperbola) Init(w []float64, _ *rand.Rand) { w[0] = 1 }

func (hyperbola) Utilities(dst, w []float64, x *mat.Dense) {
	for i := range dst {
		dst[i] = math.Tanh(w[0] * x.At(i, 0))
	}
}

func (hyperbola) Gradients(dst *mat.Dense, w []float64, x *mat.Dense) {
	n, _ := x.Dims()
	for i := range n {
		f := math.Tanh(w[0] * x.At(i, 0))
		dst.Set(i, 0, x.At(i, 0)*(1-f*f))
	}
}

// The worked round on the page of ONL-MNL is one that the learner plays.
func TestWorkedRound(t *testing.T) {
	text := page(t, "docs/algorithms/onl-mnl.md")
	says := func(format string, args ...any) {
		t.Helper()
		expect.Contains(t, text, fmt.Sprintf(format, args...), "the page")
	}
	o := bandit.DefaultONLOptions()
	o.Pilot, o.PilotWeights, o.Lambda, o.Beta, o.Tolerance = "given", []float64{1}, 1, 10, 1e-12
	x := &vitrine.Context{Features: mat.NewDense(2, 1, []float64{1, 2})}
	rounds := func(choice vitrine.Choice) (e bandit.Ellipsoid) {
		rng := rand.New(rand.NewPCG(1, 2))
		l := fatal.Or(bandit.NewONL(bandit.Problem{NumFeatures: 1, MaxShown: 1, Rounds: 10,
			Constraint: assortment.AtMost(1)}, hyperbola{}, o, rng))(t)
		for round := range 2 {
			e, _ = l.Ellipsoid()
			f, g := make([]float64, 2), mat.NewDense(2, 1, nil)
			hyperbola{}.Utilities(f, e.Center, x.Features)
			hyperbola{}.Gradients(g, e.Center, x.Features)
			for i := range f {
				if round == 1 && choice == vitrine.Outside {
					break // the page shows the round after a sale
				}
				width := math.Abs(g.At(i, 0)) / math.Sqrt(e.Gram.Sym(nil).At(0, 0))
				says("| %d | %d | %.3f | %.3f | %.3f | %.3f |", round+1, i+1, f[i], g.At(i, 0), width,
					f[i]+math.Sqrt(e.Beta)*width)
			}
			offer := l.Policy().Offer(x, rng)
			if len(offer.Assortment) != 1 || offer.Assortment[0] != 0 {
				t.Errorf("round %d offers %v, the page item 1", round+1, offer.Assortment)
			}
			if round == 0 {
				fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: offer, Choice: choice}))
			}
		}
		return e
	}
	sold, left := rounds(1), rounds(vitrine.Outside)
	says("V_2 = 1 + 0.420² = %.3f", sold.Gram.Sym(nil).At(0, 0))
	says("ŵ_2 = %.3f", sold.Center[0])
	says("ŵ_2 would be %.3f", left.Center[0])
}
