package learner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/fields"
)

// ended is the round of a decision: a sale, or a page that sold nothing.
func ended(decision uint64, choice vitrine.Choice) sale {
	return sale{decision, task{what: toObserve, entry: decision, bytes: 100, round: vitrine.Round{
		Context: &vitrine.Context{Features: mat.NewDense(1, 1, nil)}, Offer: vitrine.Offer{Order: []int{0}},
		Choice: choice}}}
}

// Sales wait until a later page without a sale is learned, all earlier decisions have ended, or they take too much
// memory. What waits is saved.
func TestSalesWait(t *testing.T) {
	var o ordering
	for k := range uint64(maxAhead) {
		o.ahead = append(o.ahead, 1000+k)
	}
	for _, c := range []struct {
		what    string
		round   sale
		settled uint64
		room    int
		want    string
	}{
		{"a sale after an open decision", ended(5, 1), 3, 1000, "[]"},
		{"a later one", ended(9, 1), 3, 1000, "[]"},
		{"an earlier one", ended(7, 1), 3, 1000, "[]"},
		{"an earlier page without a sale", ended(4, 0), 3, 1000, "[4]"},
		{"a later page without a sale", ended(8, 0), 3, 1000, "[5 7 8]"},
		{"a sale from before it", ended(6, 1), 3, 1000, "[6]"},
		{"all up to 9 have ended", ended(12, 1), 9, 1000, "[9]"},
		{"room for two", ended(11, 1), 9, 200, "[]"},
		{"but not for three", ended(13, 1), 9, 200, "[11]"},
		{"nothing is open", ended(20, 1), 20, 1000, "[12 13 20]"},
	} {
		w := fields.Writer(nil)
		o.fields(&w)
		o = ordering{}
		r := fields.Reader(w.Rest())
		o.fields(&r)
		fatal.If(t, r.Close())
		learned := []uint64{}
		for _, due := range append(o.admit(c.round, c.room), o.settle(c.settled, c.room)...) {
			learned = append(learned, due.entry)
		}
		expect.Equal(t, fmt.Sprint(learned), c.want, c.what)
	}
	o = ordering{}
	for k := range uint64(12) {
		expect.Equal(t, len(o.admit(ended(10+k, 1), 2000)) == 1, k < maxAhead, "a sale ahead of others", k)
	}
	expect.Equal(t, len(o.admit(ended(5, 0), 2000)), 1, "a page without a sale")
	expect.Equal(t, len(o.admit(ended(10, 0), 2000)), 2, "one more, and a sale in the place of the first")
	if len(o.held) != 9 {
		t.Fatal(o)
	}
	if o.drop(); len(o.admit(ended(31, 0), 1000)) != 1 {
		t.Error("a sale that was dropped is learned")
	}
}

// A shop reports sales only: other pages end with their attribution window. Sales that wait spare auto most of the
// regret, and where few buy its predictions are right.
func TestSalesAloneMislead(t *testing.T) {
	const rounds, window, items, numbers, size = 6000, 1000, 30, 3, 4
	play := func(seed uint64, waits bool, base float64) (regret, predicted, sold float64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		problem := bandit.Problem{NumFeatures: numbers, MaxShown: size, Rounds: rounds,
			Constraint: assortment.AtMost(size)}
		l := fatal.Or(bandit.NewAuto(problem, bandit.AutoOptions{}, rng))(t)
		taste := [numbers]float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		believed, ones := make([]float64, items), slices.Repeat([]float64{1}, items)
		var o ordering
		var open []sale
		end := func(s sale) {
			due := []task{s.task}
			if waits {
				due = o.admit(s, 1<<30)
			}
			for _, d := range due {
				fatal.If(t, l.Observe(d.round))
			}
		}
		policy := l.Policy()
		for k := range rounds {
			for len(open) > 0 && int(open[0].decision)+window <= k {
				end(open[0])
				open = open[1:]
			}
			if k%16 == 0 {
				policy = l.Policy()
			}
			x := &vitrine.Context{Features: mat.NewDense(items, numbers, nil), Revenue: make([]float64, items)}
			u, shock := make([]float64, items), make([]float64, items+1)
			for i := range items {
				u[i], x.Revenue[i] = base, 0.5+rng.Float64()
				for j, w := range taste {
					v := rng.NormFloat64()
					x.Features.Set(i, j, v)
					u[i] += w * v
				}
			}
			vitrine.DrawShocks(shock, rng)
			page := policy.Offer(x, rng)
			_, best := assortment.Maximize(nil, problem.Constraint, u, x.Revenue)
			s := ended(uint64(k), vitrine.Choose(page.Assortment, u, shock))
			if k >= rounds/2 {
				policy.(interface {
					Utilities(dst []float64, x *vitrine.Context)
				}).Utilities(believed, x)
				predicted += vitrine.ExpectedRevenue(page.Assortment, believed, ones)
				sold += float64(min(s.round.Choice, 1))
				regret += best - vitrine.ExpectedRevenue(page.Assortment, u, x.Revenue)
			}
			s.round.Context, s.round.Offer = x, page
			if s.round.Choice == vitrine.Outside {
				open = append(open, s)
			} else {
				end(s)
			}
		}
		return regret, predicted, sold
	}
	alone, waiting, predicted, sold := 0., 0., 0., 0.
	for seed := range uint64(3) {
		one, _, _ := play(seed, false, -4)
		other, _, _ := play(seed, true, -4)
		alone, waiting = alone+one, waiting+other
		_, p, s := play(seed, true, -7)
		predicted, sold = predicted+p, sold+s
	}
	t.Logf("where few buy, %.0f sales of a predicted %.0f", sold, predicted)
	if predicted > 1.3*sold || predicted < sold/1.3 {
		t.Errorf("where few buy, %.0f sales of a predicted %.0f", sold, predicted)
	}
	t.Logf("regret in the second half: %.1f, with sales that wait %.1f", alone, waiting)
	if waiting > alone/5 {
		t.Errorf("sales that wait leave a regret of %.1f in the second half, and sales learned at once %.1f", waiting, alone)
	}
}
