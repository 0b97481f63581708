package assortmenttest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"vitrine"
	"vitrine/assortment"
)

// checkArguments requires the oracle to leave its arguments unchanged.
func checkArguments(c vitrine.Constraint, n int) error {
	return gains(n, 20, func(gain []float64) error {
		kept := slices.Clone(gain)
		s := c.MaxGain(nil, gain)
		if !slices.Equal(gain, kept) {
			return fmt.Errorf("the gains %v become %v in MaxGain", kept, gain)
		}
		set := slices.Clone(s)
		c.Contains(s)
		if !slices.Equal(s, set) {
			return fmt.Errorf("the assortment %v becomes %v in Contains", set, s)
		}
		return nil
	})
}

// checkDestination requires the oracle to answer in dst's storage, independent of the old content of dst.
func checkDestination(c vitrine.Constraint, n int) error {
	return gains(n, 20, func(gain []float64) error {
		want := c.MaxGain(nil, gain)
		dst := make(vitrine.Assortment, n)
		for i := range dst {
			dst[i] = -1
		}
		got := c.MaxGain(dst, gain)
		if !slices.Equal(got, want) {
			return fmt.Errorf("gains %v: MaxGain returns %v without a destination, %v with one", gain, want, got)
		}
		if len(got) > 0 && &got[0] != &dst[0] {
			return fmt.Errorf("for N = %d: MaxGain does not use a destination that suffices", n)
		}
		return nil
	})
}

// checkConcurrency compares concurrent calls with the same calls made one at a time. The race detector sees more.
func checkConcurrency(c vitrine.Constraint, n int) error {
	answers := func() (all []vitrine.Assortment) {
		gains(n, 20, func(gain []float64) error {
			all = append(all, slices.Clone(c.MaxGain(nil, gain)))
			return nil
		})
		return all
	}
	want := answers()
	errs := make([]error, 4)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			for k, got := range answers() {
				if !slices.Equal(got, want[k]) {
					errs[i] = fmt.Errorf("beside other calls MaxGain returns %v, alone %v", got, want[k])
				}
			}
		})
	}
	group.Wait()
	return cmp.Or(errs...)
}

// checkAllocations requires Maximize not to allocate with a destination, and to allocate only the answer without one.
// One such call in many is enough, because the garbage collector and the race detector may empty the scratch pools at
// any time.
func checkAllocations(c vitrine.Constraint, n int) error {
	rng := rand.New(rand.NewPCG(1, 1))
	u, r := make([]float64, n), make([]float64, n)
	for i := range u {
		u[i], r[i] = rng.NormFloat64(), rng.Float64()
	}
	for _, revenue := range [][]float64{nil, r} {
		for _, test := range []struct {
			dst  vitrine.Assortment
			want float64
		}{{make(vitrine.Assortment, 0, n), 0}, {nil, 1}} {
			minimum := math.Inf(1)
			for tries := 2000; tries > 0 && minimum > test.want; tries-- {
				minimum = min(minimum, testing.AllocsPerRun(1, func() { assortment.Maximize(test.dst, c, u, revenue) }))
			}
			if minimum > test.want {
				return fmt.Errorf("with a destination of capacity %d, Maximize allocates %v times, want %v",
					cap(test.dst), minimum, test.want)
			}
		}
	}
	return nil
}
