//go:build slow

package demo

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/env"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
)

// In the first half of a season auto earns what it predicts, within 5 percent: its windows' expected revenue under its
// mean probabilities matches the true one.
func TestAutoIsCalibrated(t *testing.T) {
	for _, seed := range []uint64{Seed, 5, 6} {
		w := &world{products: catalogue(seed), half: halfSeason}
		width := columnKind + len(kinds)
		p := bandit.Problem{NumFeatures: width, MaxShown: size, Rounds: 1 << 20, Constraint: assortment.AtMost(size),
			Numeric: []int{columnRound, columnWarm, columnBusy, columnPrice}}
		l, err := bandit.NewAuto(p, bandit.AutoOptions{}, stream.New(seed, 0, stream.Learner))
		fatal.If(t, err)
		shoppers := env.Shoppers{World: w, Seed: seed}
		var s env.Shopper
		var worth, predicted float64
		for round := 1; round <= halfSeason; round++ {
			fatal.If(t, shoppers.Meet(&s, round))
			pi := l.Policy()
			offer := pi.Offer(s.Context, stream.New(seed, round, stream.Policy))
			n := len(offer.Assortment)
			window, revenue, u, all := mat.NewDense(n, width, nil), make([]float64, n), make([]float64, n),
				make(vitrine.Assortment, n)
			for k, i := range offer.Assortment {
				copy(window.RawRowView(k), s.Context.Features.RawRowView(i))
				revenue[k], all[k] = s.Context.Revenue[i], k
			}
			pi.(interface {
				Utilities([]float64, *vitrine.Context)
			}).Utilities(u, &vitrine.Context{Features: window})
			predicted += vitrine.ExpectedRevenue(all, u, revenue)
			worth += vitrine.ExpectedRevenue(offer.Assortment, s.Utilities, s.Context.Revenue)
			fatal.If(t, l.Observe(vitrine.Round{Context: s.Context, Offer: offer, Choice: s.Choose(offer.Assortment)}))
		}
		t.Logf("seed %d: worth/predicted %.3f", seed, worth/predicted)
		if ratio := worth / predicted; math.Abs(ratio-1) > 0.05 {
			t.Errorf("seed %d: windows are worth %.3f of what is predicted", seed, ratio)
		}
	}
}
