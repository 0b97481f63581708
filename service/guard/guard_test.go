package guard

import (
	"testing"

	"vitrine/internal/confseq"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// Every round is within its bound of the centre of its cohort, also if the sets have become cheaper than the centre: a
// period may begin with such a cohort, and knows no earlier bound.
func TestBounds(t *testing.T) {
	for _, c := range []struct{ centre, revenue, want float64 }{{5, 1, 5}, {0.5, 2, 2}} {
		at := confseq.Block{Centre: c.centre}
		of := &cohort{earned: at, estimated: at, baseline: at}
		o := &offer.Closed{Offer: &offer.Offer{Offered: &eventlog.Offered{Shown: []int32{0}, Revenue: []float64{c.revenue}, Mode: offer.ByPolicy}}, Choice: 1, Predicted: true}
		of.add(o, new(Watch))
		o.Mode = offer.ByBaseline
		of.add(o, new(Watch))
		for _, bound := range []float64{of.earned.Bound, of.estimated.Bound, of.baseline.Bound} {
			if bound != c.want {
				t.Errorf("a revenue of at most %v has the bound %v around %v", c.revenue, bound, c.centre)
			}
		}
	}
}
