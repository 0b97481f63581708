package choice

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"vitrine/internal/fatal"
)

// A choice with weight k counts as k equal choices, of alternatives and of the outside option, whether sets vary or
// not. If they do not, the constants-only log-likelihood follows from the shares, Σ n log(n/N).
func TestAWeightIsACount(t *testing.T) {
	for _, outside := range []bool{false, true} {
		for _, vary := range []bool{false, true} {
			t.Run(fmt.Sprintf("outside %v, sets vary %v", outside, vary), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(5, 8))
				weighted := NewBuilder([]string{"a", "b", "c"}, []string{"x"}, outside)
				repeated := NewBuilder([]string{"a", "b", "c"}, []string{"x"}, outside)
				counts, total := map[int]float64{}, 0.0
				for range 60 {
					c := Case{Weight: float64(1 + rng.IntN(4)), Chosen: rng.IntN(3)}
					for a := range 3 {
						if vary && a < 2 && len(c.Alternatives) == a && rng.IntN(3) == 0 {
							continue
						}
						c.Alternatives, c.X = append(c.Alternatives, a), append(c.X, rng.NormFloat64())
					}
					c.Chosen %= len(c.Alternatives)
					if outside && rng.IntN(3) == 0 {
						c.Chosen = none
					}
					chosen := none
					if c.Chosen >= 0 {
						chosen = c.Alternatives[c.Chosen]
					}
					counts[chosen] += c.Weight
					total += c.Weight
					fatal.If(t, weighted.Add(c))
					n := int(c.Weight)
					for c.Weight = 1; n > 0; n-- {
						fatal.If(t, repeated.Add(c))
					}
				}
				fit := func(b *Builder, u Utility) *Result {
					d := fatal.Or(b.Data())(t)
					return fatal.Or(Fit(context.Background(), &Spec{Utility: u}, d, Options{}))(t)
				}
				u, constants := Utility{Generic: []string{"x"}}, Utility{Constants: true}
				have, want := fit(weighted, u), fit(repeated, u)
				if r := fit(weighted, constants); !near(r.LogLikelihood, have.ConstantsOnly, 1e-9) {
					t.Errorf("constants: %v, a fit of them has %v", have.ConstantsOnly, r.LogLikelihood)
				}
				for what, v := range map[string][2]float64{
					"null": {have.Null, want.Null}, "constants": {have.ConstantsOnly, want.ConstantsOnly},
					"fitted":      {have.LogLikelihood, want.LogLikelihood},
					"coefficient": {have.Coefficients[0], want.Coefficients[0]},
				} {
					if !near(v[0], v[1], 1e-9) {
						t.Errorf("%s: %v with weights, %v with repeated choices", what, v[0], v[1])
					}
				}
				shares := 0.0
				for _, n := range counts {
					shares += n * math.Log(n/total)
				}
				if !vary && !near(have.ConstantsOnly, shares, 1e-12) {
					t.Errorf("constants: %v, the shares have %v", have.ConstantsOnly, shares)
				}
				if have.ConstantsOnly < have.Null {
					t.Errorf("constants: %v, below %v without any", have.ConstantsOnly, have.Null)
				}
			})
		}
	}
}
