package assortmenttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/assortment"
)

// checkStability lowers the gains of items outside an answer, which must not change the answer.
func checkStability(c vitrine.Constraint, n int) error {
	trial := uint64(0)
	return gains(n, 200, func(gain []float64) error {
		trial++
		rng := rand.New(rand.NewPCG(uint64(n), trial))
		for i := range gain { // close and equal gains, of items in any order
			if rng.IntN(3) == 0 {
				gain[i] = gain[rng.IntN(n)] + oneOf(rng, 0, 1e-17, 1e-9)
			}
		}
		s := slices.Clone(c.MaxGain(nil, gain))
		lower := slices.Clone(gain)
		for i := range lower {
			if !slices.Contains(s, i) && rng.IntN(2) == 0 {
				lower[i] = min(lower[i],
					oneOf(rng, 0, -1, gain[i]*rng.Float64(), math.Nextafter(gain[i], math.Inf(-1)), -1e300))
			}
		}
		if got := c.MaxGain(nil, lower); !slices.Equal(got, s) {
			return fmt.Errorf("MaxGain is %v of the gains %v, but %v where gains of others are less, %v",
				s, gain, got, lower)
		}
		return nil
	})
}

// checkBounds compares [assortment.MaximizeBounds] with Maximize for utilities inside the bounds.
func checkBounds(c vitrine.Constraint, n int) (err error) {
	rng := rand.New(rand.NewPCG(uint64(n), 9))
	Instances(n, 6, func(name string, u, r []float64) {
		if err != nil {
			return
		}
		want, value := assortment.Maximize(nil, c, u, r)
		b := Bounds(u, rng)
		got, bounded := assortment.MaximizeBounds(nil, c, b, r)
		if !slices.Equal(got, want) || math.Float64bits(bounded) != math.Float64bits(value) {
			err = fmt.Errorf("%s: %v and %v within bounds, %v and %v by Maximize", name, got, bounded, want, value)
		}
	})
	return err
}

// Bounds returns bounds on u, some wide and some narrow, that shrink to u in up to three steps.
func Bounds(u []float64, rng *rand.Rand) *assortment.Bounds {
	n := len(u)
	b := &assortment.Bounds{Lower: make([]float64, n), Upper: make([]float64, n), Known: make([]bool, n)}
	widest := oneOf(rng, 0, 1e-15, 1e-9, 0.1, 3, 50)
	narrow := func(i int, width float64) {
		b.Lower[i], b.Upper[i] = u[i]-width*rng.Float64(), u[i]+width*rng.Float64()
		if rng.IntN(4) == 0 {
			b.Upper[i] = u[i]
		}
		if rng.IntN(4) == 0 {
			b.Lower[i] = u[i]
		}
	}
	steps := make([]int, n)
	for i := range u {
		narrow(i, widest)
	}
	b.Tighten = func(items []int) {
		for _, i := range items {
			if b.Known[i] {
				panic("assortmenttest: a known utility is to be tightened")
			}
			if steps[i]++; steps[i] == 3 || rng.IntN(3) == 0 {
				b.Lower[i], b.Upper[i], b.Known[i] = u[i], u[i], true
				continue
			}
			lower, upper := b.Lower[i], b.Upper[i]
			narrow(i, widest/float64(1+steps[i]))
			b.Lower[i], b.Upper[i] = max(b.Lower[i], lower), min(b.Upper[i], upper)
		}
	}
	return b
}
