package assortment_test

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
	"vitrine/internal/expect"
	"vitrine/internal/panics"
	_ "vitrine/internal/rapidseed"
)

// If a family declares something wrong, the mistake may show in only one of hundreds of random families.
func init() {
	if err := flag.Set("rapid.checks", "1000"); err != nil {
		panic(err)
	}
}

func TestAtMost(t *testing.T) {
	for _, k := range []int{0, 1, 2, 3, 5, 20} {
		t.Run(fmt.Sprint(k), func(t *testing.T) { assortmenttest.TestConstraint(t, assortment.AtMost(k)) })
	}
}

// plain hides AtMost's ability to rank, so that tests also cover the general method.
type plain struct{ vitrine.Constraint }

func TestAtMostAsAPlainOracle(t *testing.T) {
	assortmenttest.TestConstraint(t, plain{assortment.AtMost(3)})
}

// exactly allows only sets of n items, as long as there are n. It excludes the empty set, so items with negative gain
// may have to be shown.
type exactly int

func (k exactly) Contains(s vitrine.Assortment) bool { return len(s) == int(k) }
func (k exactly) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	order := make(vitrine.Assortment, len(gain))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(gain[b], gain[a]) })
	dst = append(dst[:0], order[:k]...)
	slices.Sort(dst)
	return dst
}

// Davis, Gallego and Topaloglu (2013): the iteration needs only the oracle, not the empty set. Utilities further apart
// than 400 are left out; see Maximize.
func TestMaximizeWithDemandedItems(t *testing.T) {
	const n, k = 6, 3
	sets := assortmenttest.Sets(exactly(k), n)
	assortmenttest.Instances(n, 20, func(name string, u, r []float64) {
		if slices.Max(u)-slices.Min(u) > 400 {
			return
		}
		s, value := assortment.Maximize(nil, exactly(k), u, r)
		if len(s) != k {
			t.Fatalf("%s: %v has not %d items", name, s, k)
		}
		if best := assortmenttest.Best(sets, u, r); value < best*(1-1e-13) {
			t.Fatalf("%s: %v earns %v, the best set %v", name, s, value, best)
		}
	})
}

// By hand, with exp(u) = (1, 2) and r = (3, 1):
//
//	R{0} = 3/2, R{1} = 2/3, R{0,1} = (3+2)/4 = 5/4
func TestMaximizeByHand(t *testing.T) {
	u, r := []float64{0, math.Ln2}, []float64{3, 1}
	s, value := assortment.Maximize(nil, assortment.AtMost(2), u, r)
	if !slices.Equal(s, vitrine.Assortment{0}) || math.Abs(value-1.5) > 1e-15 {
		t.Errorf("S = %v, R = %v, want [0], 1.5", s, value)
	}
}

// Talluri and van Ryzin (2004): without a limit on size, an optimal assortment consists of the items with the largest
// revenues.
func TestUnconstrainedOptimumIsRevenueOrdered(t *testing.T) {
	assortmenttest.Instances(8, 10, func(name string, u, r []float64) {
		if r == nil {
			return
		}
		order := []int{0, 1, 2, 3, 4, 5, 6, 7}
		slices.SortFunc(order, func(a, b int) int { return int(math.Copysign(1, r[b]-r[a])) })
		best := 0.0
		for l := range order {
			s := vitrine.Assortment(slices.Clone(order[:l+1]))
			slices.Sort(s)
			best = max(best, vitrine.ExpectedRevenue(s, u, r))
		}
		if _, value := assortment.Maximize(nil, assortment.AtMost(8), u, r); value < best*(1-1e-13) ||
			value > best*(1+1e-13) {
			t.Fatalf("%s: R = %v, the best revenue-ordered set earns %v", name, value, best)
		}
	})
}

// At sizes too large to enumerate, no swap, addition or removal improves the set.
func TestNoPerturbationImproves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.IntRange(1, 60).Draw(t, "N"), rapid.IntRange(1, 12).Draw(t, "K")
		u := rapid.SliceOfN(rapid.Float64Range(-30, 30), n, n).Draw(t, "u")
		r := rapid.SliceOfN(rapid.Float64Range(0, 10), n, n).Draw(t, "r")
		s, value := assortment.Maximize(nil, assortment.AtMost(k), u, r)
		improves := func(other vitrine.Assortment) {
			slices.Sort(other)
			if v := vitrine.ExpectedRevenue(other, u, r); v > value*(1+1e-12) {
				t.Fatalf("%v earns %v, %v earns %v", s, value, other, v)
			}
		}
		for pos := range s {
			improves(slices.Delete(slices.Clone(s), pos, pos+1))
		}
		for i := range n {
			if slices.Contains(s, i) {
				continue
			}
			if len(s) < k {
				improves(append(slices.Clone(s), i))
			}
			for pos := range s {
				other := slices.Clone(s)
				other[pos] = i
				improves(other)
			}
		}
	})
}

// A worthless item with a high utility must not push the others out of floating-point range.
func TestWorthlessItemsDoNotCauseUnderflow(t *testing.T) {
	u, r := []float64{700, -700, -650}, []float64{0, 4, 3}
	s, value := assortment.Maximize(nil, assortment.AtMost(1), u, r)
	if !slices.Equal(s, vitrine.Assortment{2}) || value <= 0 {
		t.Errorf("S = %v, R = %v, want [2] and a positive value", s, value)
	}
}

// If r_i equals the optimum up to rounding, showing the item does not pay. With a large exp(u_i), its rounding error
// would outweigh an item that does pay.
func TestRoundingDoesNotDisplaceAGain(t *testing.T) {
	u := []float64{30, 30, 30, -4}
	r := []float64{0.1, 0.1, 0.1 * (1 + 1e-16), 0.7}
	sets := assortmenttest.Sets(assortment.AtMost(2), 4)
	_, value := assortment.Maximize(nil, assortment.AtMost(2), u, r)
	if best := assortmenttest.Best(sets, u, r); value < best*(1-1e-15) {
		t.Errorf("R = %v, the best set earns %v", value, best)
	}
}

// A single item earns r_i/(1+exp(−u_i)), so the best is known. Near the optimum the heavy item's gain is the difference
// of two numbers that agree to 15 digits; an optimiser that believed it would miss up to 1%.
func TestHeavyItemsDoNotMaskBetterOnes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 20_000 {
		u := []float64{28 + 20*rng.Float64(), 0}
		r := []float64{1, 2 + 0.04*(rng.Float64()-0.5)}
		best := max(r[0]/(1+math.Exp(-u[0])), r[1]/2)
		if s, value := assortment.Maximize(nil, assortment.AtMost(1), u, r); value < best*(1-1e-13) {
			t.Fatalf("u = %v, r = %v: %v earns %v, the best item %v", u, r, s, value, best)
		}
	}
}

func TestMaximizeRefusesOtherLengths(t *testing.T) {
	if panics.Value(func() { assortment.Maximize(nil, assortment.AtMost(1), []float64{1, 2}, []float64{1}) }) == nil {
		t.Error("no panic for 1 revenue and 2 utilities")
	}
}

// NaN utilities are the caller's mistake, but the search still ends with a set of the family.
func TestMaximizeEndsOnNaN(t *testing.T) {
	nan := math.NaN()
	demanding := quota(t, assortment.Rules{Items: 3, Max: 3, Groups: []assortment.Group{
		{Name: "a", Items: []int{0, 1}, Min: 1, Max: 1}, {Name: "b", Items: []int{1, 2}, Min: 1, Max: 1}}})
	if s, _ := assortment.Maximize(nil, demanding, []float64{nan, nan, 0}, []float64{1, 2, 3}); !demanding.Contains(s) {
		t.Errorf("%v is not in the family", s)
	}
	assortment.Maximize(nil, assortment.AtMost(2), []float64{nan, 1, 2}, []float64{1, 2, 3})
	assortment.Maximize(nil, assortment.AtMost(2), []float64{0, 1, 2}, []float64{nan, 2, 3})
}

func TestSampleOfManyItems(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct{ n, k int }{{1_000_000, 10}, {1_000_000, 1_000_000}, {5000, 3000}, {3, 100}, {0, 5}} {
		s := assortment.AtMost(c.k).Sample(nil, c.n, rng)
		if err := s.Check(c.n); err != nil || len(s) > c.k {
			t.Errorf("N = %d, K = %d: %d items, %v", c.n, c.k, len(s), err)
		}
	}
	// C(100,1) + … + C(100,5) = 79 375 495, and 95% of these sets consist of 5 items.
	if got := assortment.AtMost(5).Propensity(100); math.Abs(got*79375495-1) > 1e-12 {
		t.Errorf("propensity %v, want 1/79375495", got)
	}
	dst := make(vitrine.Assortment, 0, 5)
	if got := testing.AllocsPerRun(100, func() { assortment.AtMost(5).Sample(dst, 100, rng) }); got > 0 {
		t.Errorf("Sample allocates %v times with a destination", got)
	}
}

// Large sets are drawn by a different algorithm from small ones. Every item must appear in a set of l of n with
// probability l/n, which is close to one half for K = N.
func TestLargeSamplesHoldEveryItemAlike(t *testing.T) {
	const n, draws = 400, 4000
	rng := rand.New(rand.NewPCG(1, 1))
	var count [n]float64
	for range draws {
		for _, i := range assortment.AtMost(n).Sample(nil, n, rng) {
			count[i]++
		}
	}
	// A count is binomial with standard deviation √(draws/4). One of 400 items exceeds 4.5 standard deviations once in
	// 370 seeds.
	for i, v := range count {
		if math.Abs(v-draws/2) > 4.5*math.Sqrt(draws/4) {
			t.Errorf("item %d is in %v of %d sets", i, v, draws)
		}
	}
}

func FuzzMaximize(f *testing.F) {
	f.Add(uint64(1), uint8(4), uint8(2), 1.0, 1.0)
	f.Add(uint64(7), uint8(6), uint8(3), 300.0, 0.0)
	f.Fuzz(func(t *testing.T, seed uint64, n, k uint8, scale, spread float64) {
		if n > 8 || math.Abs(scale) > 700 || math.IsNaN(scale) || !(math.Abs(spread) <= 50) {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 3))
		u, r := make([]float64, n), make([]float64, n)
		for i := range u {
			u[i] = scale * (2*rng.Float64() - 1)
			r[i] = math.Exp(spread * rng.NormFloat64())
		}
		c := assortment.AtMost(k)
		s, value := assortment.Maximize(nil, c, u, r)
		if best := assortmenttest.Best(assortmenttest.Sets(c, int(n)), u, r); value < best*(1-1e-12) {
			t.Fatalf("u = %v, r = %v: %v earns %v, the best set %v", u, r, s, value, best)
		}
	})
}

func BenchmarkMaximize(b *testing.B) {
	for _, shape := range []struct{ n, k int }{{100, 5}, {1_000_000, 10}} {
		rng := rand.New(rand.NewPCG(2, 2))
		u, r := make([]float64, shape.n), make([]float64, shape.n)
		for i := range u {
			u[i], r[i] = rng.NormFloat64(), rng.Float64()
		}
		for name, revenue := range map[string][]float64{"equal": nil, "unequal": r} {
			b.Run(fmt.Sprintf("%s,N=%d,K=%d", name, shape.n, shape.k), func(b *testing.B) {
				dst := make(vitrine.Assortment, 0, shape.k)
				b.ReportAllocs()
				for b.Loop() {
					assortment.Maximize(dst, assortment.AtMost(shape.k), u, revenue)
				}
			})
		}
	}
}

// menu is a family given as a list of sets. It returns the listed sets themselves rather than copies.
type menu []vitrine.Assortment

func (m menu) Contains(s vitrine.Assortment) bool {
	return slices.ContainsFunc(m, func(o vitrine.Assortment) bool { return slices.Equal(o, s) })
}

func (m menu) MaxGain(_ vitrine.Assortment, gain []float64) vitrine.Assortment {
	total := func(s vitrine.Assortment) float64 {
		sum := 0.0
		for _, i := range s {
			sum += gain[i]
		}
		return sum
	}
	return slices.MaxFunc(m, func(a, b vitrine.Assortment) int { return cmp.Compare(total(a), total(b)) })
}

// The set that a family returns may be the family's own. Maximize must not write to it, now or later.
func TestMaximizeLeavesTheFamilysAnswerAlone(t *testing.T) {
	family := menu{{}, {0, 1, 2}, {3, 4, 5}}
	u := []float64{1, 1, 1, 0, 0, 0}
	for _, r := range [][]float64{nil, {1, 2, 3, 1, 1, 1}} {
		first, _ := assortment.Maximize(nil, family, u, r)
		for range 3 {
			assortment.Maximize(nil, assortment.AtMost(3), []float64{0, 0, 0, 2, 2, 2}, r)
		}
		if !slices.Equal(first, vitrine.Assortment{0, 1, 2}) || !slices.Equal(family[1], first) {
			t.Errorf("revenues %v: the best set is %v and the family's is %v, want [0 1 2]", r, first, family[1])
		}
		first[0] = 9
		expect.Equal(t, family[1][0], 0, "the answer is the family's own memory")
	}
}

func TestAtMostOfANegativeNumberIsTheEmptySet(t *testing.T) {
	k := assortment.AtMost(-1)
	if s := k.MaxGain(nil, []float64{1, 2}); len(s) != 0 || !k.Contains(s) || k.Contains(vitrine.Assortment{0}) {
		t.Errorf("AtMost(-1): best set %v, contains ∅: %v, contains {0}: %v",
			s, k.Contains(s), k.Contains(vitrine.Assortment{0}))
	}
}
