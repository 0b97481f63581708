package bandit

import (
	"encoding"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/scratch"
)

// faulty is a shop with features that are wrong for a while: each item is described by d numbers, and by one of two
// categories, one of them bought more often.
type faulty struct {
	numbers, categories int
	wrong               func(round int, row []float64) // changes the numbers of an item
}

const (
	faultyItems = 10
	faultySize  = 2
)

func (w faulty) problem() Problem {
	p := Problem{NumFeatures: w.numbers + w.categories, Items: faultyItems, MaxShown: faultySize, Rounds: 10_000,
		Constraint: assortment.AtMost(faultySize)}
	for j := range w.numbers {
		p.Numeric = append(p.Numeric, j)
	}
	return p
}

// share plays a learner, and returns in how many of 400 later contexts it shows the best item.
func (w faulty) share(t *testing.T, l vitrine.Learner, seed uint64, rounds int) float64 {
	t.Helper()
	const judged = 400
	d := w.numbers + w.categories
	rng := rand.New(rand.NewPCG(seed, 1))
	slope := make([]float64, d)
	for j := range slope {
		if slope[j] = rng.NormFloat64(); j < w.numbers {
			slope[j] *= 30
		}
	}
	best := 0
	for round := range rounds + judged {
		x, u := mat.NewDense(faultyItems, d, nil), make([]float64, faultyItems)
		for i := range u {
			row := x.RawRowView(i)
			for j := range w.numbers {
				row[j] = 0.02 + 0.03*rng.NormFloat64()
			}
			if w.categories > 0 {
				row[w.numbers+rng.IntN(w.categories)] = 1
			}
			u[i] = floats.Dot(slope, row) - 1
			if w.wrong != nil {
				w.wrong(round, row[:w.numbers])
			}
		}
		shocks := make([]float64, faultyItems+1)
		vitrine.DrawShocks(shocks, rng)
		c := &vitrine.Context{Features: x}
		offer := l.Policy().Offer(c, rand.New(rand.NewPCG(seed, uint64(round)+2)))
		if round >= rounds {
			if slices.Contains(offer.Assortment, floats.MaxIdx(u)) {
				best++
			}
			continue
		}
		fatal.If(t, l.Observe(vitrine.Round{Context: c, Offer: offer, Choice: vitrine.Choose(offer.Assortment, u,
			shocks)}))
	}
	return float64(best) / judged
}

// times returns a fault of some rounds in which numbers are multiplied.
func times(factor float64, from, rounds int, columns ...int) func(int, []float64) {
	return func(round int, row []float64) {
		if round < from || round >= from+rounds {
			return
		}
		for j := range row {
			if len(columns) == 0 || slices.Contains(columns, j) {
				row[j] *= factor
			}
		}
	}
}

// Fifteen rounds with features in another unit do not harm auto: 500 rounds later it shows the best item as often as
// without them, within 0.05, with every seed.
func TestAutoForgetsAnotherUnit(t *testing.T) {
	for name, c := range map[string]struct {
		shop  faulty
		fault func(int, []float64)
		seeds uint64
	}{
		"all numbers":     {faulty{numbers: 3}, times(1e4, 300, 15), 5},
		"one of them":     {faulty{numbers: 3}, times(1e2, 300, 15, 1), 4},
		"with categories": {faulty{numbers: 3, categories: 40}, times(1e4, 300, 15), 2},
	} {
		t.Run(name, func(t *testing.T) {
			var clean, harmed []float64
			for seed := range c.seeds {
				play := func(wrong func(int, []float64)) (float64, Outliers) {
					l := fatal.Or(NewAuto(c.shop.problem(), AutoOptions{}, rand.New(rand.NewPCG(seed, 7))))(t)
					w := c.shop
					w.wrong = wrong
					share := w.share(t, l, seed, 300+15+500)
					return share, l.Policy().(interface{ Outliers() Outliers }).Outliers()
				}
				a, none := play(nil)
				b, some := play(c.fault)
				if none.Values != 0 || some.Values == 0 || some.Rounds != 0 {
					t.Errorf("seed %d: %+v without a fault, %+v with one", seed, none, some)
				}
				if b < a-0.05 {
					t.Errorf("seed %d: the best item is shown in %.3f of rounds, and %.3f without the fault", seed, b,
						a)
				}
				clean, harmed = append(clean, a), append(harmed, b)
			}
			t.Logf("%.3f with the fault, %.3f without", stat.Mean(harmed, nil), stat.Mean(clean, nil))
		})
	}
}

// Beyond the bounds a feature counts as its mean, in learning and in offers. Bounds apply after 100 rounds, and never
// exclude values seen before: not the ones of a rare indicator.
func TestBounds(t *testing.T) {
	m := newMoments(2)
	m.extremes = newExtremes(2)
	for round := range 200 { // the first is ±1, the second is 1 in every tenth round
		x := mat.NewDense(2, 2, []float64{-1, 0, 1, 0})
		if round%10 == 0 {
			x.Set(0, 1, 1)
		}
		if m.add(x); round < 99 && m.bounds() != nil {
			t.Fatalf("bounds after %d rounds", round+1)
		}
	}
	b := m.bounds()
	if b.low[0] != -50 || b.high[0] != 50 || b.usual[0] != 0 || b.ofRound[0] != 10 {
		t.Errorf("bounds %v to %v about %v", b.low[0], b.high[0], b.usual[0])
	}
	if b.high[1] < 3 {
		t.Errorf("a rare indicator has the bound %v", b.high[1])
	}
	x := mat.NewDense(2, 2, []float64{60, 0, 2, 1})
	var u outliers
	if most := u.note(b, x, nil); most || u.Values != 1 || u.Rounds != 0 {
		t.Errorf("%+v", u)
	}
	var scratch scratch.Matrix
	if got := b.rows(&scratch, x, nil).RawMatrix().Data; !slices.Equal(got, []float64{0, 0, 2, 1}) || x.At(0, 0) != 60 {
		t.Errorf("%v, of %v", got, x.RawMatrix().Data)
	}
	x = mat.NewDense(3, 2, []float64{60, 0, 2, 1, -20, 0}) // most are beyond 10
	if most := u.note(b, x, nil); !most || u.Values != 1+3 || u.Rounds != 1 {
		t.Errorf("%+v", u)
	}
	expect.List(t, b.rows(&scratch, x, nil).RawMatrix().Data, []float64{0, 0, 0, 1, 0, 0})
}

// A learner that keeps getting features of another unit begins again with them, after 1,000 rounds at least. Its
// snapshots count them.
func TestAutoFollowsAnotherUnit(t *testing.T) {
	for _, w := range []faulty{{numbers: 2}, {numbers: 2, categories: 40}} {
		w.wrong = times(1e3, 200, 1<<30)
		create := func() vitrine.Learner { return must(NewAuto(w.problem(), AutoOptions{}, newRand())) }
		unusualOf := func(l vitrine.Learner) Outliers {
			return l.Policy().(interface{ Outliers() Outliers }).Outliers()
		}
		one := create()
		w.share(t, one, 1, 200+minOutliers-1)
		if u := unusualOf(one); u.Rounds != minOutliers-1 || u.Values < 9*2*u.Rounds {
			t.Errorf("%+v", u)
		}
		data := fatal.Or(one.(encoding.BinaryMarshaler).MarshalBinary())(t)
		two := create()
		if err := two.(encoding.BinaryUnmarshaler).UnmarshalBinary(data); err != nil ||
			unusualOf(two) != unusualOf(one) {
			t.Errorf("%+v again, %v", unusualOf(two), err)
		}
		later := w
		later.wrong = times(1e3, 0, 1<<30)
		if share := later.share(t, two, 1, 500); share < 0.8 || unusualOf(two).Rounds != 0 {
			t.Errorf("after the change the best item is shown in %v of rounds; %+v", share, unusualOf(two))
		}
	}
}
