package bandit_test

import (
	"encoding"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/bandit/bandittest"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/utility"
)

// displayed are the learners with position effects, or without.
func displayed(t *testing.T, size int, effects bool) map[string]vitrine.Learner {
	t.Helper()
	p := bandit.Problem{NumFeatures: 3, Items: 12, MaxShown: size, Rounds: 4000, Constraint: assortment.AtMost(size)}
	linear := bandit.LinearOptions{Constants: "tuned", Radius: 0.2, Lambda: 1, PositionEffects: effects}
	fit := bandit.DefaultFitOptions()
	fit.Warmup, fit.Lambda, fit.PilotSteps, fit.PositionEffects = 20, 1, 50, effects
	rng := rand.New(rand.NewPCG(1, 1))
	list := map[string]vitrine.Learner{}
	add := func(name string, l vitrine.Learner, err error) {
		fatal.If(t, err)
		list[name] = l
	}
	ucb, err := bandit.NewUCB(p, bandit.UCBOptions{LinearOptions: linear})
	add("ucb-mnl", ucb, err)
	quadratic, err := bandit.NewUCBOn(p, utility.NewQuadratic(3), bandit.UCBOptions{LinearOptions: linear})
	add("ucb-mnl on a basis", quadratic, err)
	ts, err := bandit.NewTS(p, bandit.TSOptions{LinearOptions: linear})
	add("ts-mnl", ts, err)
	ofu := bandit.DefaultOFUOptions()
	ofu.LinearOptions = linear
	plus, err := bandit.NewOFU(p, ofu)
	add("ofu-mnl-plus", plus, err)
	o := bandit.DefaultONLOptions()
	o.FitOptions, o.Beta = fit, 0.5
	onl, err := bandit.NewONL(p, utility.NewMLP(3, []int{3}, utility.Sigmoid), o, rng)
	add("onl-mnl", onl, err)
	explore := bandit.DefaultEpsGreedyOptions()
	explore.Oracle, explore.Explore, explore.PositionEffects = "online", "set", effects
	eps, err := bandit.NewEpsGreedy(p, utility.NewLinear(3, true), explore, rng)
	add("eps-greedy-mnl", eps, err)
	barrier := bandit.DefaultLogBarrierOptions()
	barrier.Oracle, barrier.PositionEffects = "online", effects
	lb, err := bandit.NewLogBarrier(p, utility.NewLinear(3, true), barrier, rng)
	add("log-barrier-mnl", lb, err)
	good := bandit.DefaultFeelGoodOptions()
	good.Loss, good.Moves, good.PositionEffects = "log", 1, effects
	fg, err := bandit.NewFeelGood(p, utility.NewLinear(3, true), good, rng)
	add("feel-good-ts", fg, err)
	averaged := bandit.DefaultBMAOptions()
	averaged.PositionEffects = effects
	bma, err := bandit.NewBMA(p, bandit.DefaultExperts(3), averaged, rng)
	add("bma-mnl", bma, err)
	greedy, err := bandit.NewGreedy(p, utility.NewLinear(3, true), bandit.GreedyOptions{FitOptions: fit}, rng)
	add("greedy", greedy, err)
	return list
}

func TestPositionEffectsKeepTheContract(t *testing.T) {
	for name := range displayed(t, 3, true) {
		t.Run(name, func(t *testing.T) {
			bandittest.TestLearner(t, 3, 3, 30, func() vitrine.Learner { return displayed(t, 3, true)[name] })
		})
	}
	t.Run("one place", func(t *testing.T) {
		bandittest.TestLearner(t, 3, 1, 30, func() vitrine.Learner { return displayed(t, 1, true)["ucb-mnl"] })
	})
}

// shop plays rounds among random items with the utility x_1 − x_2/2 in the first place, and the
// effects of the others; nil for the order of the items.
func shop(t *testing.T, l vitrine.Learner, gamma []float64, rounds int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	for range rounds {
		x := &vitrine.Context{Features: mat.NewDense(12, 3, nil)}
		u, shock := make([]float64, 12), make([]float64, 13)
		for i := range u {
			for j := range 3 {
				x.Features.Set(i, j, rng.NormFloat64())
			}
			u[i] = x.Features.At(i, 0) - x.Features.At(i, 1)/2
		}
		offer := l.Policy().Offer(x, rng)
		if offer.Order == nil {
			offer.Order = rng.Perm(len(offer.Assortment))
			for p, k := range offer.Order {
				offer.Order[p] = offer.Assortment[k]
			}
		}
		for p, i := range offer.Order {
			u[i] += vitrine.PlaceEffect(gamma, p)
		}
		vitrine.DrawShocks(shock, rng)
		round := vitrine.Round{Context: x, Offer: offer, Choice: vitrine.Choose(offer.Assortment, u, shock)}
		fatal.If(t, l.Observe(round))
	}
}

// effects are the estimated effects of a policy.
func effects(t *testing.T, l vitrine.Learner) []float64 {
	t.Helper()
	pi, ok := l.Policy().(interface{ PlaceEffects() []float64 })
	if !ok {
		t.Fatalf("%T has no position effects", l.Policy())
	}
	return pi.PlaceEffects()
}

// The effects are learned, and with them the utilities in the first place.
func TestPositionEffectsAreLearned(t *testing.T) {
	gamma := []float64{0, -0.7, -1.4}
	for name, l := range displayed(t, 3, true) {
		if name == "feel-good-ts" {
			continue // a chain of draws: see below
		}
		t.Run(name, func(t *testing.T) {
			shop(t, l, gamma, 1500)
			got := effects(t, l)
			if len(got) != 3 || got[0] != 0 {
				t.Fatalf("effects %v", got)
			}
			for p, want := range gamma {
				if math.Abs(got[p]-want) > 0.4 {
					t.Errorf("effect of place %d is %.3f, want %v", p+1, got[p], want)
				}
			}
			x := &vitrine.Context{Features: mat.NewDense(2, 3, []float64{1, 0, 0, 0, 1, 0})}
			u := make([]float64, 2)
			l.Policy().(interface {
				Utilities([]float64, *vitrine.Context)
			}).Utilities(u, x)
			if math.Abs(u[0]-u[1]-1.5) > 0.5 {
				t.Errorf("utilities %v, want a difference of 1.5", u)
			}
		})
	}
}

// The draws of Feel-Good Thompson sampling are about the effects.
func TestFeelGoodLearnsPositionEffects(t *testing.T) {
	gamma := []float64{0, -0.7, -1.4}
	l := displayed(t, 3, true)["feel-good-ts"]
	shop(t, l, gamma, 250)
	const draws = 50
	mean := make([]float64, 3)
	for range draws { // in rounds that teach nothing
		fatal.If(t, l.Observe(vitrine.Round{Context: &vitrine.Context{}}))
		for p, v := range effects(t, l) {
			mean[p] += v / draws
		}
	}
	for p, want := range gamma {
		if math.Abs(mean[p]-want) > 0.4 {
			t.Errorf("effects %.3f, want %v", mean, gamma)
		}
	}
}

// A learner with position effects is one of the features and indicators of the places.
func TestPlacesAreFeatures(t *testing.T) {
	const d, size = 3, 3
	rng := rand.New(rand.NewPCG(3, 3))
	o := bandit.UCBOptions{LinearOptions: bandit.LinearOptions{Constants: "tuned", Radius: 0.3, Lambda: 2,
		PositionEffects: true}}
	l := fatal.Or(bandit.NewUCB(bandit.Problem{NumFeatures: d, MaxShown: size, Rounds: 100,
		Constraint: assortment.AtMost(size)}, o))(t)
	o.PositionEffects = false
	wide := fatal.Or(bandit.NewUCB(bandit.Problem{NumFeatures: d + size - 1, MaxShown: size, Rounds: 100,
		Constraint: assortment.AtMost(size)}, o))(t)
	for range 80 {
		x, z := mat.NewDense(6, d, nil), mat.NewDense(6, d+size-1, nil)
		for i := range 6 {
			for j := range d {
				x.Set(i, j, rng.NormFloat64())
				z.Set(i, j, x.At(i, j))
			}
		}
		offer := vitrine.Offer{Assortment: slices.Sorted(slices.Values(rng.Perm(6)[:rng.IntN(size+1)]))}
		if rng.IntN(4) > 0 { // or no places
			offer.Order = slices.Clone([]int(offer.Assortment))
			rng.Shuffle(len(offer.Order),
				func(a, b int) { offer.Order[a], offer.Order[b] = offer.Order[b], offer.Order[a] })
			for p, i := range offer.Order {
				if p > 0 {
					z.Set(i, d+p-1, 1)
				}
			}
		}
		choice := vitrine.Choice(rng.IntN(len(offer.Assortment) + 1))
		fatal.If(t, l.Observe(vitrine.Round{Context: &vitrine.Context{Features: x}, Offer: offer, Choice: choice}))
		fatal.If(t, wide.Observe(vitrine.Round{Context: &vitrine.Context{Features: z},
			Offer: vitrine.Offer{Assortment: offer.Assortment}, Choice: choice}))
	}
	x, z := mat.NewDense(6, d, nil), mat.NewDense(6, d+size-1, nil)
	x.Apply(func(i, j int, _ float64) float64 { v := rng.NormFloat64(); z.Set(i, j, v); return v }, x)
	type estimator interface {
		Utilities([]float64, *vitrine.Context)
	}
	got, want := make([]float64, 6), make([]float64, 6)
	l.Policy().(estimator).Utilities(got, &vitrine.Context{Features: x})
	wide.Policy().(estimator).Utilities(want, &vitrine.Context{Features: z})
	for i := range got {
		if math.Abs(got[i]-want[i]) > 1e-9 {
			t.Errorf("utility of item %d: %v, want %v", i, got[i], want[i])
		}
	}
	second := mat.NewDense(2, d+size-1, nil) // an item of no features in the second and the third place
	second.Set(0, d, 1)
	second.Set(1, d+1, 1)
	wide.Policy().(estimator).Utilities(want[:2], &vitrine.Context{Features: second})
	if gamma := effects(t, l); math.Abs(gamma[1]-want[0]) > 1e-9 || math.Abs(gamma[2]-want[1]) > 1e-9 {
		t.Errorf("effects %v, want %v", gamma, want[:2])
	}
}

// A policy shows the best order for its utilities and effects; without effects it sets no order.
func TestOffersAreInTheBestOrder(t *testing.T) {
	for name, l := range displayed(t, 3, true) {
		shop(t, l, []float64{0, 0.9, -1}, 400)
		rng := rand.New(rand.NewPCG(9, 9))
		x := &vitrine.Context{Features: mat.NewDense(8, 3, nil), Revenue: make([]float64, 8)}
		x.Features.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, x.Features)
		for i := range x.Revenue {
			x.Revenue[i] = 0.2 + rng.Float64()
		}
		offer := l.Policy().Offer(x, rng)
		if err := (vitrine.Round{Context: x, Offer: offer}).Check(3); err != nil || len(offer.Order) == 0 {
			t.Fatalf("%s: order %v of %v, %v", name, offer.Order, offer.Assortment, err)
		}
		if name == "greedy" { // without a bonus the utilities are the offer's
			u := make([]float64, 8)
			l.Policy().(interface {
				Utilities([]float64, *vitrine.Context)
			}).Utilities(u, x)
			want, _ := assortment.MaximizeOrdered(nil, assortment.AtMost(3), u, effects(t, l), x.Revenue)
			expect.List(t, offer.Order, want, "order")
		}
	}
	for name, l := range displayed(t, 3, false) {
		shop(t, l, nil, 30)
		if offer := l.Policy().Offer(&vitrine.Context{Features: mat.NewDense(8, 3, nil)},
			rand.New(rand.NewPCG(1, 1))); offer.Order != nil {
			t.Errorf("%s without effects: order %v", name, offer.Order)
		}
	}
}

// Snapshots with and without position effects are not taken for each other.
func TestSnapshotsHavePositionEffects(t *testing.T) {
	with, without := displayed(t, 3, true), displayed(t, 3, false)
	for name := range with {
		data, err := with[name].(encoding.BinaryMarshaler).MarshalBinary()
		fatal.If(t, err)
		expect.Part(without[name].(encoding.BinaryUnmarshaler).UnmarshalBinary(data))(t, "snapshot is of", name)
		if data, err = without[name].(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "position_effects") {
			t.Errorf("%s: a snapshot without effects names them", name)
		}
		expect.Refused(with[name].(encoding.BinaryUnmarshaler).UnmarshalBinary(data))(t, name,
			"with effects reads a snapshot without")
	}
}
