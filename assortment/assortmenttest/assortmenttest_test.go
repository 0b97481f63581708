package assortmenttest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"vitrine"
	"vitrine/assortment"
)

// family is correct until a field replaces a method.
type family struct {
	assortment.AtMost
	maxGain    func(dst vitrine.Assortment, gain []float64) vitrine.Assortment
	sample     func(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment
	propensity func(n int) float64
}

func (f family) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	if f.maxGain != nil {
		return f.maxGain(dst, gain)
	}
	return f.AtMost.MaxGain(dst, gain)
}

func (f family) Sample(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment {
	if f.sample != nil {
		return f.sample(dst, n, rng)
	}
	return f.AtMost.Sample(dst, n, rng)
}

func (f family) Propensity(n int) float64 {
	if f.propensity != nil {
		return f.propensity(n)
	}
	return f.AtMost.Propensity(n)
}

func TestARightFamilyPasses(t *testing.T) {
	TestConstraint(t, family{AtMost: 3})
}

// either allows sets that do not contain both item 0 and item 1. It is defined for three items.
type either struct{}

func (either) Contains(s vitrine.Assortment) bool {
	return !slices.Contains(s, 0) || !slices.Contains(s, 1)
}

func (either) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	dst = dst[:0]
	best := 0
	if gain[1] > gain[0] {
		best = 1
	}
	for i, g := range gain {
		if g > 0 && (i == best || i == 2) {
			dst = append(dst, i)
		}
	}
	return dst
}

func TestAFamilyOfThreeItemsPasses(t *testing.T) {
	TestConstraint(t, either{}, 3)
}

// narrowed keeps item 0 out of AtMost, but fails to narrow the method that Maximize uses if revenues are equal.
type narrowed struct{ assortment.AtMost }

func (c narrowed) Contains(s vitrine.Assortment) bool {
	return !slices.Contains(s, 0) && c.AtMost.Contains(s)
}

func (c narrowed) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	gain = slices.Clone(gain)
	if len(gain) > 0 {
		gain[0] = 0
	}
	return c.AtMost.MaxGain(dst, gain)
}

func TestWrongFamiliesAreFound(t *testing.T) {
	const k = assortment.AtMost(3)
	shared := make(vitrine.Assortment, 0, 64)
	maxGain := func(f func(dst vitrine.Assortment, gain []float64) vitrine.Assortment) family {
		return family{AtMost: k, maxGain: f}
	}
	sample := func(f func(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment) family {
		return family{AtMost: k, sample: f}
	}
	items := orAny(nil)
	for _, test := range []struct {
		name  string
		check func() error
	}{
		{"leaves room for one more", func() error {
			return checkMaxGain(maxGain((k - 1).MaxGain), items)
		}},
		{"shows one too many", func() error {
			return checkMaxGain(maxGain((k + 1).MaxGain), items)
		}},
		{"takes gains of 0", func() error {
			return checkMaxGain(maxGain(func(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
				raised := slices.Clone(gain)
				for i := range raised {
					if raised[i] == 0 {
						raised[i] = 1e-310
					}
				}
				return k.MaxGain(dst, raised)
			}), items)
		}},
		{"forgets the order of items", func() error {
			return checkMaxGain(maxGain(func(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
				s := k.MaxGain(dst, gain)
				slices.Reverse(s)
				return s
			}), items)
		}},
		{"uses the gains as scratch", func() error {
			return checkArguments(maxGain(func(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
				s := k.MaxGain(dst, gain)
				slices.Sort(gain)
				return s
			}), items)
		}},
		{"ignores the destination", func() error {
			return checkDestination(maxGain(func(_ vitrine.Assortment, gain []float64) vitrine.Assortment {
				return k.MaxGain(nil, gain)
			}), items)
		}},
		{"keeps what the destination held", func() error {
			return checkDestination(maxGain(func(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
				if len(dst) > 0 && len(gain) > 3 {
					return dst[:1]
				}
				return k.MaxGain(dst, gain)
			}), items)
		}},
		{"returns its own storage", func() error {
			return checkDestination(maxGain(func(_ vitrine.Assortment, gain []float64) vitrine.Assortment {
				return k.MaxGain(shared, gain)
			}), items)
		}},
		{"allocates", func() error {
			return checkAllocations(maxGain(func(_ vitrine.Assortment, gain []float64) vitrine.Assortment {
				return k.MaxGain(nil, gain)
			}), items)
		}},
		{"promises to be stable and is not", func() error {
			return checkStability(maxGain(func(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
				if len(gain) > 0 && slices.Min(gain) < 0 {
					gain = gain[1:]
				}
				return k.MaxGain(dst, gain)
			}), items)
		}},
		{"promises to be stable, so that bounds mislead", func() error {
			return checkBounds(maxGain(func(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
				sum := 0.0
				for _, g := range gain {
					sum += g
				}
				return (k - assortment.AtMost(int(math.Abs(sum))%2)).MaxGain(dst, gain)
			}), items)
		}},
		{"embeds AtMost and narrows half of it", func() error {
			return checkMaximize(narrowed{k}, items)
		}},
		{"draws the size uniformly", func() error {
			return checkSample(sample(func(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment {
				size := 1 + rng.IntN(min(3, n))
				for {
					if s := k.Sample(dst, n, rng); len(s) == size {
						return s
					}
				}
			}), items[1:])
		}},
		{"draws the empty set", func() error {
			return checkSample(sample(func(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment {
				if rng.IntN(100) == 0 {
					return dst[:0]
				}
				return k.Sample(dst, n, rng)
			}), items[1:])
		}},
		{"draws from elsewhere than rng", func() error {
			elsewhere := rand.New(rand.NewPCG(1, 2))
			return checkSample(sample(func(dst vitrine.Assortment, n int, _ *rand.Rand) vitrine.Assortment {
				return k.Sample(dst, n, elsewhere)
			}), items)
		}},
		{"counts the empty set", func() error {
			return checkSample(family{AtMost: k, propensity: func(n int) float64 {
				p := k.Propensity(n)
				return p / (1 + p)
			}}, items)
		}},
	} {
		if err := test.check(); err == nil {
			t.Errorf("a family that %s passes", test.name)
		} else {
			t.Logf("%s: %v", test.name, err)
		}
	}
}
