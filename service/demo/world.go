package demo

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/env"
)

// kinds of shoppers. A shop knows a shopper's kind, but not its tastes.
var kinds = []string{"student", "family", "collector"}

// taste is the taste of a kind of shopper. A utility is largest at an ideal product, and falls with the square of the
// distance from it, so that no line describes it.
type taste struct {
	round, warm, busy float64 // of the ideal product
	budget            float64 // in euros; each euro above it costs
}

// The tastes of the kinds, in the first half of a season and in the second one: fashion turns the colours.
var tastes = [2][]taste{
	{{-0.6, 0.7, 0.4, 16}, {0.1, 0, -0.5, 24}, {0.7, -0.6, 0.1, 36}},
	{{-0.6, -0.2, 0.4, 16}, {0.1, 0.8, -0.5, 24}, {0.7, 0.3, 0.1, 36}},
}

// utility returns the utility of a product to a shopper with a taste.
func (s *taste) utility(round, warm, busy, price float64) float64 {
	square := func(x float64) float64 { return x * x }
	return 1.2 - 1.5*square(round-s.round) - 2*square(warm-s.warm) - 1*square(busy-s.busy) - 0.12*max(price-s.budget, 0)
}

// The columns of a context are the features of the placements, in their order.
const (
	columnRound = iota
	columnWarm
	columnBusy
	columnPrice
	columnKind // the first column of the kinds, which are indicators
)

// The feature price is centred, with a standard deviation of about 1.
const priceCenter, priceScale = 25, 10

// world is the shop: its products, and shoppers who come one a round. It implements env.Moving.
type world struct {
	products []product
	half     int // rounds of half a season; 0 never moves
	season   int // 0 or 1: the tastes
}

var _ env.Moving = (*world)(nil)

// At implements env.Moving: the second half's tastes rule from the middle of a season to its end.
func (w *world) At(t int) env.Environment {
	now := *w
	if w.half > 0 {
		now.season = (t - 1) / w.half % 2
	}
	return &now
}

// Context implements env.Environment: a shopper of a kind sees all products.
func (w *world) Context(rng *rand.Rand) *vitrine.Context { return w.context(rng.IntN(len(kinds))) }

func (w *world) context(kind int) *vitrine.Context {
	x := mat.NewDense(len(w.products), columnKind+len(kinds), nil)
	revenue := make([]float64, len(w.products))
	for i, p := range w.products {
		row := x.RawRowView(i)
		row[columnRound], row[columnWarm], row[columnBusy], row[columnPrice] = p.Round, p.Warm, p.Busy,
			(p.Price-priceCenter)/priceScale
		row[columnKind+kind] = 1
		revenue[i] = p.Price
	}
	return &vitrine.Context{Features: x, Revenue: revenue}
}

// Utilities implements env.Environment.
func (w *world) Utilities(dst []float64, x *vitrine.Context) {
	for i := range dst {
		row := x.Features.RawRowView(i)
		s := &tastes[w.season][kindOf(row)]
		dst[i] = s.utility(row[columnRound], row[columnWarm], row[columnBusy], row[columnPrice]*priceScale+priceCenter)
	}
}

func kindOf(row []float64) int {
	for k := range kinds {
		if row[columnKind+k] == 1 {
			return k
		}
	}
	panic("vitrine/service/demo: a row without a kind of shopper")
}
