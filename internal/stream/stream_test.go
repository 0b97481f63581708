package stream_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"

	"vitrine/internal/expect"
	_ "vitrine/internal/rapidseed"
	"vitrine/internal/stream"
)

var purposes = []stream.Purpose{stream.World, stream.Contexts, stream.Customers,
	stream.Policy, stream.Learner, stream.Theory, stream.Exploration, stream.Rewards, stream.Takers}

// address names a stream.
type address struct {
	seed    uint64
	round   int
	purpose stream.Purpose
}

func (a address) rng() *rand.Rand { return stream.New(a.seed, a.round, a.purpose) }

// draws returns the first n standard normal draws at the address.
func (a address) draws(n int) []float64 {
	rng, z := a.rng(), make([]float64, n)
	for i := range z {
		z[i] = rng.NormFloat64()
	}
	return z
}

// The first draws at an address are part of every published figure. These come from another implementation, in Python's
// integers, of SplitMix64 (Steele, Lea and Flood 2014), with first output e220a8397b1dcdaf from 0, and of PCG-DXSM
// (O'Neill 2014). The halves of the generator's state are hi = mix(mix(seed) + purpose) and lo = mix(hi + round).
func TestFirstDraws(t *testing.T) {
	for _, c := range []struct {
		address
		want [2]uint64
	}{
		{address{0, 0, stream.World}, [2]uint64{0x84f4e037e96ab05e, 0xa4d25ac4d8f1688a}},
		{address{0, 1, stream.Contexts}, [2]uint64{0xea2347a4d9ab1215, 0xf9aca2f63bcd49b7}},
		{address{0, 1, stream.Customers}, [2]uint64{0x069e479bf22d7d3d, 0x3629e139a22cb371}},
		{address{0, 1, stream.Policy}, [2]uint64{0xfc5bad497de85273, 0xf948e4b5018de622}},
		{address{0, 0, stream.Learner}, [2]uint64{0x1b8fcc38cfd506b6, 0x6d68bfbd40f79b55}},
		{address{1, 1, stream.Contexts}, [2]uint64{0x0d9b16abdb91725b, 0xdeafda40e1d7d0be}},
		{address{29, 1000, stream.Customers}, [2]uint64{0xf410427dcaa8233c, 0x1d6dc215083755b2}},
		{address{math.MaxUint64, 1000, stream.Policy}, [2]uint64{0xa2e6aea4f61127fc, 0xd0398466a728b8a8}},
	} {
		rng := c.rng()
		if got := [2]uint64{rng.Uint64(), rng.Uint64()}; got != c.want {
			t.Errorf("%v: draws %#x, want %#x", c.address, got, c.want)
		}
	}
}

// Figures also depend on the laws that math/rand/v2 derives from the bits above: features, shocks, parameters and
// items. The values were printed by Go 1.26.
func TestFirstDrawsOfEachLaw(t *testing.T) {
	a := address{7, 42, stream.Contexts}
	want := []float64{-0.23794136204887747, 0.2053240998549788, 0.03528252098625184, 34}
	got := []float64{a.rng().NormFloat64(), a.rng().ExpFloat64(), a.rng().Float64(), float64(a.rng().IntN(100))}
	expect.Equal(t, got, want, "normal, exponential, uniform, integer below 100")
}

// Consecutive seeds, consecutive rounds and every purpose: the grid of a large experiment. The chance that two of its
// 2·10⁵ first draws of 64 bits agree is 10⁻⁹.
func TestDistinctAddressesDiffer(t *testing.T) {
	seen := map[uint64]address{}
	for seed := range uint64(40) {
		for round := range 1000 {
			for _, p := range purposes {
				a := address{seed, round, p}
				first := a.rng().Uint64()
				if other, ok := seen[first]; ok {
					t.Fatalf("%v and %v draw the same %#x", a, other, first)
				}
				seen[first] = a
			}
		}
	}
}

// Wherever a stream was before, and however much was drawn there, At moves it to the start of the address.
func TestAtIsNew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s stream.Stream
		for range rapid.IntRange(1, 10).Draw(t, "moves") {
			a := address{
				rapid.Uint64().Draw(t, "seed"),
				rapid.IntRange(0, math.MaxInt).Draw(t, "round"),
				rapid.SampledFrom(purposes).Draw(t, "purpose"),
			}
			moved, fresh := s.At(a.seed, a.round, a.purpose), a.rng()
			for k := range rapid.IntRange(1, 20).Draw(t, "draws") {
				if got, want := moved.NormFloat64(), fresh.NormFloat64(); got != want {
					t.Fatalf("draw %d at %v is %v, want New's %v", k, a, got, want)
				}
			}
		}
	})
}

func TestMovingDoesNotAllocate(t *testing.T) {
	var s stream.Stream
	s.At(0, 0, stream.World)
	round := 0
	if got := testing.AllocsPerRun(100, func() {
		round++
		s.At(3, round, stream.Contexts).Uint64()
	}); got > 0 {
		t.Errorf("At allocates %v times, want none", got)
	}
}

// Neighbours share no randomness: the first draws at an address are uncorrelated with the first draws at the next
// address. Under independence a correlation of n pairs has the standard error 1/√n; the tolerance is 5 standard errors,
// for 16 correlations of each of 13 pairs of neighbours.
func TestNeighboursAreIndependent(t *testing.T) {
	const n, first = 10_000, 4
	type neighbours struct {
		name string
		of   func(i int) (a, b address)
	}
	cases := []neighbours{
		{"seed and next seed", func(i int) (a, b address) {
			return address{uint64(i), 1, stream.Contexts}, address{uint64(i) + 1, 1, stream.Contexts}
		}},
		{"round and next round", func(i int) (a, b address) {
			return address{5, i, stream.Contexts}, address{5, i + 1, stream.Contexts}
		}},
		// Addresses that the sum of seed, round and purpose would confuse.
		{"next seed and next round", func(i int) (a, b address) {
			return address{uint64(i) + 1, 1, stream.Contexts}, address{uint64(i), 2, stream.Contexts}
		}},
	}
	for j, p := range purposes {
		for _, q := range purposes[:j] {
			cases = append(cases, neighbours{fmt.Sprintf("purposes %d and %d", q, p), func(i int) (a, b address) {
				return address{5, i, q}, address{5, i, p}
			}})
		}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var x, y [first][]float64
			for i := range n {
				a, b := c.of(i)
				za, zb := a.draws(first), b.draws(first)
				for k := range first {
					x[k], y[k] = append(x[k], za[k]), append(y[k], zb[k])
				}
			}
			for j := range first {
				for k := range first {
					if rho := stat.Correlation(x[j], y[k], nil); math.Abs(rho) > 5/math.Sqrt(n) {
						t.Errorf("draw %d of the one and draw %d of the other have correlation %.4f ± %.4f",
							j, k, rho, 1/math.Sqrt(n))
					}
				}
			}
		})
	}
}

// The first draw is uniform over seeds and over rounds: with 64 cells of equal probability, χ² has 63 degrees of
// freedom, mean 63 and standard deviation √126.
func TestFirstDrawIsUniform(t *testing.T) {
	const n, cells = 64_000, 64
	for name, at := range map[string]func(i int) address{
		"over seeds":  func(i int) address { return address{uint64(i), 1, stream.Customers} },
		"over rounds": func(i int) address { return address{1, i, stream.Customers} },
	} {
		var count [cells]float64
		for i := range n {
			count[at(i).rng().Uint64()>>58]++
		}
		chi2 := 0.0
		for _, c := range count {
			chi2 += (c - n/cells) * (c - n/cells) / (n / cells)
		}
		if math.Abs(chi2-(cells-1)) > 5*math.Sqrt(2*(cells-1)) {
			t.Errorf("%s: χ² = %.1f, want %d ± %.1f", name, chi2, cells-1, math.Sqrt(2*(cells-1)))
		}
	}
}
