package assortment_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
	"vitrine/internal/kernel"
	"vitrine/internal/panics"
)

// The families in this file declare themselves stable.

type stable struct{ vitrine.Constraint }

func (stable) Stable() bool { return true }

// byGroup allows k[j] items from the items equal to j modulo len(k).
type byGroup []int

func (byGroup) Stable() bool { return true }

func (k byGroup) Contains(s vitrine.Assortment) bool {
	count := make([]int, len(k))
	for _, i := range s {
		count[i%len(k)]++
	}
	for j := range k {
		if count[j] > k[j] {
			return false
		}
	}
	return true
}

func (k byGroup) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	dst = dst[:0]
	var group []float64
	for j := range k {
		group = group[:0]
		for i := j; i < len(gain); i += len(k) {
			group = append(group, gain[i])
		}
		for _, i := range assortment.AtMost(k[j]).MaxGain(nil, group) {
			dst = append(dst, j+i*len(k))
		}
	}
	slices.Sort(dst)
	return dst
}

// shelf allows items that fit on a shelf, where item i takes 1 + i%4. It solves a dynamic program over the shelf, which
// compares sums and keeps the first of equal ones.
type shelf int

func (shelf) Stable() bool { return true }

func (k shelf) Contains(s vitrine.Assortment) bool {
	used := 0
	for _, i := range s {
		used += 1 + i%4
	}
	return used <= int(k)
}

func (k shelf) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	best, sets := make([]float64, k+1), make([]vitrine.Assortment, k+1)
	for i, g := range gain {
		for used := int(k); used >= 1+i%4; used-- {
			if sum := best[used-1-i%4] + g; g > 0 && sum > best[used] {
				best[used] = sum
				sets[used] = append(slices.Clone(sets[used-1-i%4]), i)
			}
		}
	}
	return append(dst[:0], sets[k]...)
}

func TestStableFamilies(t *testing.T) {
	for name, c := range map[string]vitrine.Constraint{
		"by group":         byGroup{1, 2},
		"shelf":            shelf(5),
		"AtMost, no order": stable{plain{assortment.AtMost(3)}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "AtMost, no order" {
				assortmenttest.TestConstraint(t, c)
				return
			}
			within(t, c)
		})
	}
	t.Run("exactly 3", func(t *testing.T) { within(t, stable{exactly(3)}) })
}

// within compares MaximizeBounds with Maximize over a family, with few and with many items.
func within(t *testing.T, c vitrine.Constraint) {
	for trial := range uint64(12) {
		rng := rand.New(rand.NewPCG(trial, 1))
		n := 3 + rng.IntN(40)
		if trial%6 == 5 {
			n = 1000 + rng.IntN(500)
		}
		assortmenttest.Instances(n, 1, func(name string, u, r []float64) {
			want, value := assortment.Maximize(nil, c, u, r)
			got, bounded := assortment.MaximizeBounds(nil, c, assortmenttest.Bounds(u, rng), r)
			if !slices.Equal(got, want) || math.Float64bits(bounded) != math.Float64bits(value) {
				t.Fatalf("%s: %v and %v within bounds, %v and %v by Maximize", name, got, bounded, want, value)
			}
		})
	}
}

func TestAtMostWithinBounds(t *testing.T) {
	for _, k := range []assortment.AtMost{1, 4, 20} {
		within(t, k)
	}
}

// If the bounds separate most items, only few utilities are needed.
func TestBoundsSpareUtilities(t *testing.T) {
	const n = 20000
	rng := rand.New(rand.NewPCG(1, 1))
	u, r := make([]float64, n), make([]float64, n)
	b := &assortment.Bounds{Lower: make([]float64, n), Upper: make([]float64, n), Known: make([]bool, n)}
	for i := range u {
		u[i], r[i] = rng.NormFloat64(), rng.Float64()
		b.Lower[i], b.Upper[i] = u[i]-0.1*rng.Float64(), u[i]+0.1*rng.Float64()
	}
	asked := 0
	b.Tighten = func(items []int) {
		asked += len(items)
		for _, i := range items {
			b.Lower[i], b.Upper[i], b.Known[i] = u[i], u[i], true
		}
	}
	want, _ := assortment.Maximize(nil, assortment.AtMost(10), u, r)
	if got, _ := assortment.MaximizeBounds(nil, assortment.AtMost(10), b, r); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if asked > n/20 {
		t.Errorf("asked for %d of %d utilities", asked, n)
	}
}

// wavering embeds a stable family without declaring itself stable.
type wavering struct{ assortment.AtMost }

func (wavering) Stable() bool { return false }

func TestMaximizeBoundsPanics(t *testing.T) {
	b := func(n int) *assortment.Bounds {
		return &assortment.Bounds{Lower: make([]float64, n), Upper: make([]float64, n), Known: make([]bool, n)}
	}
	for name, f := range map[string]func(){
		"a family that promises nothing": func() {
			assortment.MaximizeBounds(nil, plain{assortment.AtMost(1)}, b(3), nil)
		},
		"a family that is not stable": func() { assortment.MaximizeBounds(nil, wavering{1}, b(3), nil) },
		"too few revenues": func() {
			assortment.MaximizeBounds(nil, assortment.AtMost(1), b(3), make([]float64, 2))
		},
		"too few lower bounds": func() {
			b := b(3)
			b.Lower = b.Lower[1:]
			assortment.MaximizeBounds(nil, assortment.AtMost(1), b, nil)
		},
	} {
		if panics.Value(f) == nil {
			t.Errorf("%s: no panic", name)
		}
	}
}

// A larger utility may get a smaller exponential, by a rounding. An item's upper bound must still exceed its own
// weight, and its lower bound must stay below.
func TestBoundsWhereTheExponentialFalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	found, told := 0, map[string]int{}
	for range 200_000 {
		low := -0.1 - rng.Float64()
		high := low + 0x1p-52*rng.Float64()
		var e [2]float64
		if kernel.Exp(e[:], []float64{low, high}); !(low < high && e[0] > e[1]) {
			continue
		}
		found++
		// Exponentials are taken relative to the utility of item 2. One of the other items is shown. While gains grow
		// with the utility, item 1 gains most, and its upper bound equals the utility of item 0. Once item 2 earns more
		// than the others, gains fall with the utility, and its lower bound equals that utility; before, the answer was
		// item 3.
		for name, c := range map[string]struct{ u, lower, upper, r []float64 }{
			"upper": {[]float64{high, low, 0, -5}, []float64{high, low - 1, 0, -5}, []float64{high, high, 0, -5}, nil},
			"lower": {[]float64{low, high, 0, -0.01}, []float64{low, low, 0, -0.01},
				[]float64{low, high, 0, -0.01}, []float64{0.1, 0.1, 5, 0.1}},
		} {
			b := &assortment.Bounds{Lower: c.lower, Upper: c.upper, Known: []bool{true, false, true, true}}
			b.Tighten = func(items []int) {
				for _, i := range items {
					b.Lower[i], b.Upper[i], b.Known[i] = c.u[i], c.u[i], true
				}
			}
			want, value := assortment.Maximize(nil, pairs{}, c.u, c.r)
			// unless the product with the revenue rounds the difference away
			if slices.Equal(want, vitrine.Assortment{1, 2}) {
				told[name]++
			}
			got, bounded := assortment.MaximizeBounds(nil, pairs{}, b, c.r)
			if !slices.Equal(got, want) || bounded != value {
				t.Fatalf("%s: u = %v: %v and %v within bounds, want %v and %v", name, c.u, got, bounded, want, value)
			}
		}
	}
	if found > 0 && (told["upper"] == 0 || told["lower"] == 0) {
		t.Errorf("of %d pairs that the exponential puts in the wrong order these matter: %v", found, told)
	}
	if found == 0 {
		t.Skip("this exponential never falls: there is nothing to hold apart")
	}
}

// pairs requires one of the items 0, 1 and 3, and allows item 2 in addition.
type pairs struct{}

func (pairs) Stable() bool { return true }

func (pairs) Contains(s vitrine.Assortment) bool {
	return len(s) == 1 && s[0] != 2 || len(s) == 2 && slices.Contains(s, 2)
}

func (pairs) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	dst = append(dst[:0], 0)
	for _, i := range []int{1, 3} {
		if gain[i] > gain[dst[0]] {
			dst[0] = i
		}
	}
	if gain[2] > 0 {
		dst = append(dst, 2)
	}
	slices.Sort(dst)
	return dst
}
