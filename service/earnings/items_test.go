package earnings

import (
	"testing"

	"vitrine/internal/expect"
	"vitrine/service/api"
)

// Sales have drifted once they are certainly below four fifths of the earlier rate, but not after only 20 decisions.
func TestFell(t *testing.T) {
	for _, c := range []struct {
		recent, before [2]uint64 // pages, and pages that sold
		want           bool
	}{
		{[2]uint64{20, 0}, [2]uint64{4000, 1200}, false},
		{[2]uint64{1000, 260}, [2]uint64{4000, 1200}, false},
		{[2]uint64{1000, 100}, [2]uint64{4000, 1200}, true},
		{[2]uint64{1000, 100}, [2]uint64{20, 6}, false},
		{[2]uint64{1000, 500}, [2]uint64{4000, 1200}, false},
		{[2]uint64{}, [2]uint64{}, false},
	} {
		recent, before := api.Totals{Rounds: c.recent[0], Purchases: c.recent[1]}, api.Totals{Rounds: c.before[0],
			Purchases: c.before[1]}
		expect.Equal(t, fell(&recent, &before, c.recent[0]+c.before[0]), c.want, c.recent, "after", c.before)
	}
}
