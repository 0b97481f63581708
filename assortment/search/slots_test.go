package search

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// Slots agrees with sorting, including the preference for lower items, for any number of processors.
func TestSlots(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	const n, slots, k = 5*claimItems + 7, 2, 9
	rng := rand.New(rand.NewPCG(7, 1))
	z := [slots][]float64{make([]float64, n), make([]float64, n)}
	var want [slots][]int
	for s := range z {
		for i := range n {
			z[s][i] = []float64{float64(rng.IntN(300)), math.Inf(-1), math.NaN()}[max(0, rng.IntN(5)-2)]
			if z[s][i] > math.Inf(-1) {
				want[s] = append(want[s], i)
			}
		}
		slices.SortStableFunc(want[s], func(i, j int) int { return int(z[s][j] - z[s][i]) })
		want[s] = slices.Sorted(slices.Values(want[s][:k]))
	}
	begin := func() (func(dst []float64, from, to int), func()) {
		return func(dst []float64, from, to int) {
			for s := range z {
				copy(dst[s*(to-from):], z[s][from:to])
			}
		}, func() {}
	}
	for _, processors := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(processors)
		for s, best := range Slots(n, slots, assortment.Rules{Max: k}, nil, begin) {
			expect.List(fatal.T(t), slices.Sorted(slices.Values(best.Items)), want[s], "slot", s, "has")
			for j, i := range best.Items {
				expect.Equal(fatal.T(t), best.Values[j], z[s][i], "item", i, "of slot", s, "has the value")
			}
		}
		for s, best := range Slots(n, slots, assortment.Rules{Max: n}, []float64{298, 297}, begin) {
			above := 0
			for _, v := range z[s] {
				if v > float64(298-s) {
					above++
				}
			}
			if above == 0 || len(best.Items) != above || slices.Min(best.Values) <= float64(298-s) {
				t.Errorf("slot %d has %d items down to %v, want the %d above %d",
					s, len(best.Items), slices.Min(best.Values), above, 298-s)
			}
		}
	}
}

// A panic in any goroutine reaches the caller after all goroutines have ended.
func TestSlotsPanic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	var begun, done atomic.Int64
	defer func() {
		if v := recover(); v == nil || begun.Load() != done.Load() {
			t.Errorf("%v after %d of %d have ended", v, done.Load(), begun.Load())
		}
	}()
	Slots(20*claimItems, 1, assortment.Rules{Max: 1}, nil, func() (func(dst []float64, from, to int), func()) {
		begun.Add(1)
		return func(dst []float64, from, _ int) {
			clear(dst)
			if from >= 10*claimItems {
				panic("broken")
			}
		}, func() { done.Add(1) }
	})
}
