package env_test

import (
	"math"
	"slices"
	"testing"

	"vitrine"
	"vitrine/env"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/utility"
)

// The context, utilities and shocks of a round's shopper come from the round's addresses, in whatever order shoppers
// are met, and determine the choices.
func TestShoppersHaveAddresses(t *testing.T) {
	world := &env.World{
		Items: 6, Contexts: env.Gaussian{}, Revenues: env.UniformRevenue{Low: 1, High: 2},
		Truth: env.NewFamily(utility.NewLinear(3, false), -1, 1, stream.New(7, 0, stream.World)),
	}
	shoppers := env.Shoppers{World: world, Seed: 7}
	var p env.Shopper
	contexts := map[int]*vitrine.Context{}
	for _, round := range []int{3, 1, 2, 3} {
		fatal.If(t, shoppers.Meet(&p, round))
		want := world.Context(stream.New(7, round, stream.Contexts))
		expect.Equal(fatal.T(t), p.Context.Features.RawMatrix().Data, want.Features.RawMatrix().Data,
			"features of round", round)
		if contexts[round] == p.Context {
			t.Error("a context is used twice")
		}
		contexts[round] = p.Context
		u := make([]float64, 6)
		world.Utilities(u, want)
		rng := stream.New(7, round, stream.Customers)
		best, choice := 0.0, 0
		for i := range 7 {
			v := -math.Log(rng.ExpFloat64())
			if i > 0 {
				v += u[i-1]
			}
			if i == 0 || v > best {
				best, choice = v, i
			}
		}
		if got := p.Choose(vitrine.Assortment{0, 1, 2, 3, 4, 5}); int(got) != choice || !slices.Equal(p.Utilities, u) {
			t.Errorf("the shopper of round %d takes %d, want %d", round, got, choice)
		}
	}
}

// If tastes drift, utilities belong to the round.
func TestShoppersDriftWithTheWorld(t *testing.T) {
	truth := env.NewRotation(env.NewFamily(utility.NewLinear(2, false), -1, 1, newRand(3)), 0.5, newRand(4))
	world := &env.World{Items: 4, Contexts: env.Gaussian{}, Revenues: env.One{}, Truth: truth}
	shoppers := env.Shoppers{World: world, Seed: 1}
	var p env.Shopper
	for round := 1; round <= 3; round++ {
		fatal.If(t, shoppers.Meet(&p, round))
		expect.List(t, p.Utilities, utilities(truth.At(round), p.Context.Features), "utilities of round", round, "are")
	}
}

func TestShoppersRefuseABadContext(t *testing.T) {
	world := &env.World{
		Items: 4, Contexts: env.Gaussian{}, Revenues: env.UniformRevenue{Low: -2, High: -1},
		Truth: env.NewFamily(utility.NewLinear(2, false), -1, 1, newRand(3)),
	}
	shoppers := env.Shoppers{World: world, Seed: 1}
	expect.Part(shoppers.Meet(new(env.Shopper), 1))(t, "revenue", "a negative revenue")
}
