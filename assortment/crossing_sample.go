package assortment

import (
	"fmt"
	"math/rand/v2"

	"vitrine"
)

const (
	maxListed = 1 << 12 // sets of the size of a family that are looked at to list it
	maxDraws  = 1000
)

// crossingDraws is what draws from a [Crossing] need.
type crossingDraws struct {
	sets    *Sets    // all of them; nil if they are too many to list
	relaxed *Laminar // the family without the groups of one side
}

func (c *Crossing) draws() *crossingDraws {
	c.drawing.once.Do(func() {
		d := &c.drawing.draws
		var err error
		if d.sets, err = Enumerate(nil, c, c.maximum, c.items, maxListed); err == nil {
			return
		}
		d.sets = nil
		// The side of fewer groups has the larger ones, which random sets break more often.
		kept := 0
		if len(c.sides[1].parent) < len(c.sides[0].parent) {
			kept = 1
		}
		r := c.rules
		r.Groups = nil
		for k, g := range c.rules.Groups {
			if c.side[k] == kept {
				r.Groups = append(r.Groups, g)
			}
		}
		if d.relaxed, err = NewLaminar(r); err != nil {
			panic(fmt.Sprintf("assortment: a part of the rules of a family has no sets: %v", err))
		}
	})
	return &c.drawing.draws
}

// Sample implements [Sampler]. If there are too many sets to list, it draws sets uniformly that obey the rules of one side,
// until one obeys the others, too. That set is uniform. After 1,000 draws it gives up and returns the best set for random gains,
// which is not. It panics unless n is N.
func (c *Crossing) Sample(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment {
	c.checkSize(n)
	d := c.draws()
	if d.sets != nil {
		if d.sets.Len() == 0 {
			return dst[:0]
		}
		return append(dst[:0], d.sets.At(rng.IntN(d.sets.Len()))...)
	}
	for range maxDraws {
		if dst = d.relaxed.Sample(dst, n, rng); c.Contains(dst) {
			return dst
		}
	}
	gain := make([]float64, n)
	for i := range gain {
		gain[i] = 1 - rng.Float64()
	}
	return c.MaxGain(dst, gain)
}

// Propensity implements [Sampler]. It is 0 if there are too many sets to list: no efficient way is known to count them.
// It panics unless n is N.
func (c *Crossing) Propensity(n int) float64 {
	c.checkSize(n)
	switch d := c.draws(); {
	case d.sets == nil:
		return 0
	case d.sets.Len() == 0:
		return 1
	default:
		return 1 / float64(d.sets.Len())
	}
}

func (c *Crossing) checkSize(n int) {
	if n != c.items {
		panic(fmt.Sprintf("assortment: Crossing of %d items is sampled for %d", c.items, n))
	}
}
