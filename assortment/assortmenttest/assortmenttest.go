// Package assortmenttest holds the contract battery of feasible families and
// of the optimiser over them.
package assortmenttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"vitrine"
	"vitrine/assortment"
)

// TestConstraint judges a family by exhaustive search, which reads nothing but
// Contains, over thousands of random instances.
func TestConstraint(t *testing.T, c vitrine.Constraint) {
	t.Run("MaxGain", func(t *testing.T) { testMaxGain(t, c) })
	t.Run("Maximize", func(t *testing.T) { testMaximize(t, c) })
	t.Run("no allocation", func(t *testing.T) { testAllocation(t, c) })
	if s, ok := c.(assortment.Sampler); ok {
		t.Run("Sample", func(t *testing.T) { testSample(t, s) })
	}
}

// Sets returns the sets of the family over n items, by asking for all 2ⁿ.
func Sets(c vitrine.Constraint, n int) []vitrine.Assortment {
	var sets []vitrine.Assortment
	for bits := range 1 << n {
		s := vitrine.Assortment{}
		for i := range n {
			if bits>>i&1 == 1 {
				s = append(s, i)
			}
		}
		if c.Contains(s) {
			sets = append(sets, s)
		}
	}
	return sets
}

// Best returns the largest expected revenue over the given sets.
func Best(sets []vitrine.Assortment, u, r []float64) float64 {
	best := math.Inf(-1)
	for _, s := range sets {
		best = max(best, vitrine.ExpectedRevenue(s, u, r))
	}
	return best
}

func testMaxGain(t *testing.T, c vitrine.Constraint) {
	for n := range 9 {
		sets := Sets(c, n)
		for trial := range 300 {
			rng := rand.New(rand.NewPCG(uint64(n), uint64(trial)))
			gain := make([]float64, n)
			for i := range gain {
				gain[i] = []float64{rng.NormFloat64(), 0, 1, -1, 1e300 * rng.Float64(), 1e-300}[rng.IntN(6)]
			}
			sum := func(s vitrine.Assortment) float64 {
				v := 0.0
				for _, i := range s {
					v += gain[i]
				}
				return v
			}
			best := math.Inf(-1)
			for _, s := range sets {
				best = max(best, sum(s))
			}
			got := c.MaxGain(nil, gain)
			if err := got.Check(n); err != nil {
				t.Fatalf("gains %v: %v: %v", gain, got, err)
			}
			if !c.Contains(got) {
				t.Fatalf("gains %v: %v is not in the family", gain, got)
			}
			if v := sum(got); v < best-1e-12*math.Abs(best) {
				t.Fatalf("gains %v: %v gains %v, the best set %v", gain, got, v, best)
			}
		}
	}
}

// Instances calls f with utilities and revenues of n items of many kinds: ties,
// zero, equal and no revenues, huge and tiny utilities.
func Instances(n, trials int, f func(name string, u, r []float64)) {
	utilities := map[string]func(rng *rand.Rand) float64{
		"normal":    func(rng *rand.Rand) float64 { return rng.NormFloat64() },
		"ties":      func(rng *rand.Rand) float64 { return float64(rng.IntN(3)) },
		"wide":      func(rng *rand.Rand) float64 { return 20 * rng.NormFloat64() },
		"huge":      func(rng *rand.Rand) float64 { return 300 + 100*rng.Float64() },
		"tiny":      func(rng *rand.Rand) float64 { return -300 - 100*rng.Float64() },
		"extremes":  func(rng *rand.Rand) float64 { return []float64{-700, 0, 700}[rng.IntN(3)] },
		"some dead": func(rng *rand.Rand) float64 { return []float64{math.Inf(-1), rng.NormFloat64()}[rng.IntN(2)] },
	}
	revenues := map[string]func(rng *rand.Rand) float64{
		"none":    nil,
		"equal":   func(*rand.Rand) float64 { return 2.5 },
		"zero":    func(*rand.Rand) float64 { return 0 },
		"uniform": func(rng *rand.Rand) float64 { return rng.Float64() },
		"coarse":  func(rng *rand.Rand) float64 { return float64(rng.IntN(3)) },
		"skewed":  func(rng *rand.Rand) float64 { return math.Exp(5 * rng.NormFloat64()) },
	}
	for _, un := range slices.Sorted(mapsKeys(utilities)) {
		for _, rn := range slices.Sorted(mapsKeys(revenues)) {
			for trial := range trials {
				rng := rand.New(rand.NewPCG(uint64(n), uint64(trial)))
				u := make([]float64, n)
				for i := range u {
					u[i] = utilities[un](rng)
				}
				var r []float64
				if draw := revenues[rn]; draw != nil {
					r = make([]float64, n)
					for i := range r {
						r[i] = draw(rng)
					}
				}
				f(fmt.Sprintf("N = %d, utilities %s %v, revenues %s %v", n, un, u, rn, r), u, r)
			}
		}
	}
}

func mapsKeys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func testMaximize(t *testing.T, c vitrine.Constraint) {
	for n := range 9 {
		sets := Sets(c, n)
		Instances(n, 20, func(name string, u, r []float64) {
			s, value := assortment.Maximize(nil, c, u, r)
			if err := s.Check(n); err != nil {
				t.Fatalf("%s: %v: %v", name, s, err)
			}
			if !c.Contains(s) {
				t.Fatalf("%s: %v is not in the family", name, s)
			}
			if want := vitrine.ExpectedRevenue(s, u, r); value != want {
				t.Fatalf("%s: the value of %v is %v, ExpectedRevenue says %v", name, s, value, want)
			}
			if best := Best(sets, u, r); value < best*(1-1e-13) {
				t.Fatalf("%s: %v earns %v, the best set %v", name, s, value, best)
			}
		})
	}
}

func testAllocation(t *testing.T, c vitrine.Constraint) {
	rng := rand.New(rand.NewPCG(1, 1))
	u, r := make([]float64, 40), make([]float64, 40)
	for i := range u {
		u[i], r[i] = rng.NormFloat64(), rng.Float64()
	}
	dst := make(vitrine.Assortment, 0, 40)
	for _, revenue := range [][]float64{nil, r} {
		if got := testing.AllocsPerRun(200, func() { assortment.Maximize(dst, c, u, revenue) }); got > 0 {
			t.Errorf("Maximize allocates %v times with a destination", got)
		}
		if got := testing.AllocsPerRun(200, func() { assortment.Maximize(nil, c, u, revenue) }); got > 1 {
			t.Errorf("Maximize allocates %v times without a destination, want once", got)
		}
	}
}

func testSample(t *testing.T, c assortment.Sampler) {
	const draws = 20_000
	for _, n := range []int{1, 2, 5, 7} {
		sets := Sets(c, n)
		sets = slices.DeleteFunc(sets, func(s vitrine.Assortment) bool { return len(s) == 0 })
		rng := rand.New(rand.NewPCG(uint64(n), 99))
		if len(sets) == 0 {
			if s := c.Sample(nil, n, rng); len(s) != 0 || c.Propensity(n) != 1 {
				t.Errorf("N = %d: drew %v with propensity %v from a family without nonempty sets", n, s, c.Propensity(n))
			}
			continue
		}
		if got, want := c.Propensity(n), 1/float64(len(sets)); math.Abs(got-want) > 1e-12*want {
			t.Errorf("N = %d: propensity %v, the family has %d nonempty sets", n, got, len(sets))
		}
		count := map[string]int{}
		dst := make(vitrine.Assortment, 0, n)
		for range draws {
			count[fmt.Sprint(c.Sample(dst, n, rng))]++
		}
		// χ² has mean m − 1 and variance 2(m − 1) for m sets.
		expect, chi2 := float64(draws)/float64(len(sets)), 0.0
		for _, s := range sets {
			diff := float64(count[fmt.Sprint(s)]) - expect
			chi2 += diff * diff / expect
			delete(count, fmt.Sprint(s))
		}
		if len(count) > 0 {
			t.Errorf("N = %d: drew sets outside the family: %v", n, count)
		}
		if free := float64(len(sets) - 1); math.Abs(chi2-free) > 5*math.Sqrt(2*free) {
			t.Errorf("N = %d: χ² = %.1f with %v degrees of freedom", n, chi2, free)
		}
	}
}
