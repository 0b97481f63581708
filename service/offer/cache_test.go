package offer_test

import (
	"fmt"
	"testing"

	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// The candidates of a decision are returned for that decision only: for its placement, which may have been deleted and
// put again, its id and its number.
func TestRecentKnowsTwinsApart(t *testing.T) {
	type key struct {
		placement string
		born      uint64
		decision  string
		number    uint64
	}
	r := offer.NewCandidateCache()
	row := map[key]float64{}
	for i := range 9 { // more than there are rings
		for _, born := range []uint64{1, 7} {
			for _, id := range []string{"one", "two"} {
				for number := range uint64(2) {
					k := key{fmt.Sprint("placement-", i), born, id, number}
					row[k] = float64(len(row))
					r.Add(&offer.Candidates{
						Placement: k.placement, Born: born, Decision: id, Number: number,
						IDs: []string{"a", "b"}, Features: []float64{row[k], -row[k]}, Shown: []int32{1},
					})
				}
			}
		}
	}
	for k, x := range row {
		logged := &offer.Offer{Offered: &eventlog.Offered{Decision: k.decision, Candidates: 2, ItemIDs: []string{"b"},
			Width: 1, Features: []float64{-x}, Shown: []int32{0}}}
		logged.Number = k.number
		all, ok := r.Complete(k.placement, k.born, logged)
		if !ok || all.Features[0] != x || all.Features[1] != -x {
			t.Errorf("%+v: %v, %v, want the rows of %v", k, all.Features, ok, x)
		}
		if _, ok := r.Complete(k.placement, k.born+1, logged); ok {
			t.Errorf("%+v has the rows of a placement that was born later", k)
		}
	}
}
