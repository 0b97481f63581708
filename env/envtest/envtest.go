// Package envtest holds the contract battery of simulated worlds.
package envtest

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/env"
)

// TestEnvironment judges a world of n items with d features.
func TestEnvironment(t *testing.T, e env.Environment, n, d int) {
	draw := func(seed uint64) *vitrine.Context { return e.Context(rand.New(rand.NewPCG(seed, 1))) }
	utilities := func(x *vitrine.Context) []float64 {
		u := make([]float64, x.NumItems())
		e.Utilities(u, x)
		return u
	}

	t.Run("contexts are lawful and differ", func(t *testing.T) {
		seen := map[float64]bool{}
		for seed := range uint64(50) {
			x := draw(seed)
			if x.NumItems() != n {
				t.Fatalf("%d items, want %d", x.NumItems(), n)
			}
			if err := x.Check(d); err != nil {
				t.Fatal(err)
			}
			first := x.Features.At(0, 0)
			if seen[first] {
				t.Fatalf("the same feature %v under two seeds", first)
			}
			seen[first] = true
		}
	})
	t.Run("the same draws give the same context", func(t *testing.T) {
		one, two := draw(3), draw(3)
		if !mat.Equal(one.Features, two.Features) {
			t.Error("features differ")
		}
		if diff := cmp.Diff(one.Revenue, two.Revenue); diff != "" {
			t.Errorf("revenues differ (-one +two):\n%s", diff)
		}
	})
	t.Run("utilities are finite, repeatable and leave the context alone", func(t *testing.T) {
		x := draw(4)
		before := mat.DenseCopyOf(x.Features)
		u := utilities(x)
		if diff := cmp.Diff(u, utilities(x)); diff != "" {
			t.Errorf("utilities differ (-first +second):\n%s", diff)
		}
		if !mat.Equal(before, x.Features) {
			t.Error("the features changed")
		}
		for i, v := range u {
			if v-v != 0 {
				t.Errorf("utility of item %d is %v", i, v)
			}
		}
	})
	t.Run("an item's utility does not depend on the others", func(t *testing.T) {
		x := draw(5)
		u := utilities(x)
		for i := range n {
			alone := &vitrine.Context{Features: mat.DenseCopyOf(x.Features.Slice(i, i+1, 0, d))}
			if got := utilities(alone)[0]; got != u[i] {
				t.Fatalf("utility of item %d is %v alone and %v among others", i, got, u[i])
			}
		}
	})
	t.Run("concurrent use", func(t *testing.T) {
		var wg sync.WaitGroup
		for seed := range uint64(4) {
			want := utilities(draw(seed))
			wg.Go(func() {
				for range 20 {
					if !cmp.Equal(want, utilities(draw(seed))) {
						t.Error("utilities differ under concurrent use")
					}
				}
			})
		}
		wg.Wait()
	})
	t.Run("utilities do not allocate", func(t *testing.T) {
		x, u := draw(6), make([]float64, n)
		if got := testing.AllocsPerRun(200, func() { e.Utilities(u, x) }); got > 0 {
			t.Errorf("Utilities allocates %v times", got)
		}
	})
}
