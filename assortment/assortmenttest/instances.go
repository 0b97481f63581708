package assortmenttest

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// kind is a way to draw a number for each item.
type kind struct {
	name string
	draw func(rng *rand.Rand) float64
}

var utilities = []kind{
	{"normal", func(rng *rand.Rand) float64 { return rng.NormFloat64() }},
	{"ties", func(rng *rand.Rand) float64 { return float64(rng.IntN(3)) }},
	{"wide", func(rng *rand.Rand) float64 { return 20 * rng.NormFloat64() }},
	{"huge", func(rng *rand.Rand) float64 { return 300 + 100*rng.Float64() }},
	{"tiny", func(rng *rand.Rand) float64 { return -300 - 100*rng.Float64() }},
	{"any", func(rng *rand.Rand) float64 { return 700 * (2*rng.Float64() - 1) }},
	{"extremes", func(rng *rand.Rand) float64 { return oneOf(rng, -700, 0, 700) }},
	{"some dead", func(rng *rand.Rand) float64 { return oneOf(rng, math.Inf(-1), rng.NormFloat64()) }},
	{"masking", func(rng *rand.Rand) float64 { return oneOf(rng, 0, 32+4*rng.Float64()) }},
}

var revenues = []kind{
	{"none", nil},
	{"equal", func(*rand.Rand) float64 { return 2.5 }},
	{"zero", func(*rand.Rand) float64 { return 0 }},
	{"uniform", func(rng *rand.Rand) float64 { return rng.Float64() }},
	{"coarse", func(rng *rand.Rand) float64 { return float64(rng.IntN(3)) }},
	{"skewed", func(rng *rand.Rand) float64 { return math.Exp(5 * rng.NormFloat64()) }},
	{"close", func(rng *rand.Rand) float64 { return 1 + 0x1p-52*float64(rng.IntN(4)) }},
	// With masking utilities, an item of utility 34 and revenue 1 earns 1 - 2e-15, and an item of utility 0 and revenue
	// 2 earns 1. So their gains tie near the optimum, except for rounding.
	{"masked", func(rng *rand.Rand) float64 { return oneOf(rng, 1, 2+0.02*rng.Float64()) }},
}

func oneOf(rng *rand.Rand, values ...float64) float64 { return values[rng.IntN(len(values))] }

// Instances calls f with utilities and revenues of n items of many kinds, with the given number of trials per
// combination: ties, zero, equal and nil revenues, huge and tiny utilities, and revenues within rounding of the
// optimum.
func Instances(n, trials int, f func(name string, u, r []float64)) {
	for i, uk := range utilities {
		for j, rk := range revenues {
			for trial := range trials {
				rng := rand.New(rand.NewPCG(uint64(n), uint64(trial)<<16|uint64(i)<<8|uint64(j)))
				u := make([]float64, n)
				for i := range u {
					u[i] = uk.draw(rng)
				}
				var r []float64
				if rk.draw != nil {
					r = make([]float64, n)
					for i := range r {
						r[i] = rk.draw(rng)
					}
				}
				f(fmt.Sprintf("N = %d, utilities %s %v, revenues %s %v", n, uk.name, u, rk.name, r), u, r)
			}
		}
	}
}

// gains calls f with gains of n items: ties, zero, negative, huge and tiny.
func gains(n, trials int, f func(gain []float64) error) error {
	for trial := range trials {
		rng := rand.New(rand.NewPCG(uint64(n), uint64(trial)))
		gain := make([]float64, n)
		for i := range gain {
			gain[i] = oneOf(rng, rng.NormFloat64(), 0, 1, -1, 1e300*rng.Float64(), 1e-300)
		}
		if err := f(gain); err != nil {
			return err
		}
	}
	return nil
}
