package bandit_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/utility"
)

// With a given pilot Phase II begins in the first round: without a bonus the page is the best one
// under the pilot, and ŵ is the pilot until a round is observed.
func TestGivenPilot(t *testing.T) {
	weights := []float64{1, -2, 0.5}
	o := bandit.DefaultONLOptions()
	o.Pilot, o.PilotWeights, o.Beta = "given", weights, 0
	p := bandit.Problem{NumFeatures: 2, MaxShown: 2, Rounds: 100, Constraint: assortment.AtMost(2)}
	rng := rand.New(rand.NewPCG(1, 2))
	model := utility.NewLinear(2, true)
	l := fatal.Or(bandit.NewONL(p, model, o, rng))(t)
	e, ok := l.Ellipsoid()
	if !ok || !slices.Equal(e.Pilot, weights) || !slices.Equal(e.Center, weights) {
		t.Fatalf("the pilot is %v, the estimate %v", e.Pilot, e.Center)
	}
	x := &vitrine.Context{Features: mat.NewDense(5, 2, nil), Revenue: make([]float64, 5)}
	u := make([]float64, 5)
	for range 20 {
		for i := range 5 {
			x.Features.SetRow(i, []float64{rng.NormFloat64(), rng.NormFloat64()})
			x.Revenue[i] = rng.Float64()
		}
		model.Utilities(u, weights, x.Features)
		want, _ := assortment.Maximize(nil, assortment.AtMost(2), u, x.Revenue)
		if got := l.Policy().Offer(x, rng).Assortment; !slices.Equal(got, want) {
			t.Errorf("offers %v, the pilot's best page is %v", got, want)
		}
	}
	fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: vitrine.Assortment{0}},
		Choice: 1}))
	if e, _ := l.Ellipsoid(); slices.Equal(e.Center, weights) {
		t.Error("a round does not move the estimate")
	}
	data := fatal.Or(l.MarshalBinary())(t)
	again, _ := bandit.NewONL(p, model, o, rng)
	expect.Error(t, again.UnmarshalBinary(data), nil)
	o.PilotWeights = []float64{1, -2, 0.25}
	other, _ := bandit.NewONL(p, model, o, rng)
	expect.Refused(other.UnmarshalBinary(data))(t, "a snapshot of another pilot is taken")
	for want, change := range map[string]func(o *bandit.ONLOptions){
		"pilot_weights: has 2 numbers, the utility has 3": func(o *bandit.ONLOptions) {
			o.PilotWeights = weights[:2]
		},
		`pilot_weights: go with pilot = "given"`: func(o *bandit.ONLOptions) { o.Pilot = "adam" },
		"which needs them":                       func(o *bandit.ONLOptions) { o.PilotWeights = nil },
		"pilot_weights: number 1 is NaN, must be finite": func(o *bandit.ONLOptions) {
			o.PilotWeights = []float64{0, math.NaN(), 0}
		},
		"pilot_weights: number 0 is 1e+07, must be finite and": func(o *bandit.ONLOptions) {
			o.PilotWeights = []float64{1e7, 0, 0}
		},
	} {
		bad := bandit.DefaultONLOptions()
		bad.Pilot, bad.PilotWeights = "given", weights
		change(&bad)
		expect.Part(bandit.NewONL(p, model, bad, rng))(t, want)
	}
}
