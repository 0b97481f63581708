package assortmenttest

import (
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
			return each[vitrine.Constraint](items, maxGain((k - 1).MaxGain), checkMaxGain)
		}},
		{"shows one too many", func() error {
			return each[vitrine.Constraint](items, maxGain((k + 1).MaxGain), checkMaxGain)
		}},
		{"takes gains of 0", func() error {
			return each[vitrine.Constraint](items, maxGain(func(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
				raised := slices.Clone(gain)
				for i := range raised {
					if raised[i] == 0 {
						raised[i] = 1e-310
					}
				}
				return k.MaxGain(dst, raised)
			}), checkMaxGain)
		}},
		{"forgets the order of items", func() error {
			return each[vitrine.Constraint](items, maxGain(func(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
				s := k.MaxGain(dst, gain)
				slices.Reverse(s)
				return s
			}), checkMaxGain)
		}},
		{"uses the gains as scratch", func() error {
			return each[vitrine.Constraint](items, maxGain(func(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
				s := k.MaxGain(dst, gain)
				slices.Sort(gain)
				return s
			}), checkArguments)
		}},
		{"ignores the destination", func() error {
			return each[vitrine.Constraint](items, maxGain(func(_ vitrine.Assortment, gain []float64) vitrine.Assortment {
				return k.MaxGain(nil, gain)
			}), checkDestination)
		}},
		{"keeps what the destination held", func() error {
			return each[vitrine.Constraint](items, maxGain(func(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
				if len(dst) > 0 && len(gain) > 3 {
					return dst[:1]
				}
				return k.MaxGain(dst, gain)
			}), checkDestination)
		}},
		{"returns its own storage", func() error {
			return each[vitrine.Constraint](items, maxGain(func(_ vitrine.Assortment, gain []float64) vitrine.Assortment {
				return k.MaxGain(shared, gain)
			}), checkDestination)
		}},
		{"allocates", func() error {
			return each[vitrine.Constraint](items, maxGain(func(_ vitrine.Assortment, gain []float64) vitrine.Assortment {
				return k.MaxGain(nil, gain)
			}), checkAllocations)
		}},
		{"embeds AtMost and narrows half of it", func() error {
			return each[vitrine.Constraint](items, narrowed{k}, checkMaximize)
		}},
		{"draws the size uniformly", func() error {
			return each[assortment.Sampler](items[1:], sample(func(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment {
				size := 1 + rng.IntN(min(3, n))
				for {
					if s := k.Sample(dst, n, rng); len(s) == size {
						return s
					}
				}
			}), checkSample)
		}},
		{"draws the empty set", func() error {
			return each[assortment.Sampler](items[1:], sample(func(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment {
				if rng.IntN(100) == 0 {
					return dst[:0]
				}
				return k.Sample(dst, n, rng)
			}), checkSample)
		}},
		{"draws from elsewhere than rng", func() error {
			elsewhere := rand.New(rand.NewPCG(1, 2))
			return each[assortment.Sampler](items, sample(func(dst vitrine.Assortment, n int, _ *rand.Rand) vitrine.Assortment {
				return k.Sample(dst, n, elsewhere)
			}), checkSample)
		}},
		{"counts the empty set", func() error {
			return each[assortment.Sampler](items, family{AtMost: k, propensity: func(n int) float64 {
				p := k.Propensity(n)
				return p / (1 + p)
			}}, checkSample)
		}},
	} {
		if err := test.check(); err == nil {
			t.Errorf("a family that %s passes", test.name)
		} else {
			t.Logf("%s: %v", test.name, err)
		}
	}
}
