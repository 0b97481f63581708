package state_test

import (
	"testing"

	"vitrine/service/setup"
	"vitrine/service/state"
)

// The last offers are kept as long as they are few entries and few bytes.
func TestOffersAreBounded(t *testing.T) {
	last := uint64(3 * state.MaxOffers)
	for name, c := range map[string]struct {
		numbers int
		step    uint64
		want    uint64 // offers
	}{
		"small":     {10, 2, state.MaxOffers / 2},
		"with gaps": {10, 3 * state.MaxOffers / 4, 2},
		"large":     {10_000, 1, state.MaxOfferBytes / uint64(setup.RoundBytes(10_000, 0))},
	} {
		t.Run(name, func(t *testing.T) {
			s := state.NewOffers(c.numbers)
			for entry := uint64(1); entry <= last; entry += c.step {
				s.Add(entry)
			}
			kept, first := uint64(0), uint64(0)
			for entry := last; entry > 0; entry-- {
				if s.Has(entry) {
					kept, first = kept+1, entry
				}
			}
			if kept != c.want {
				t.Errorf("%d offers from %d on are kept of %d entries, want %d", kept, first, last, c.want)
			}
			for entry := uint64(1); entry <= last; entry++ {
				s.Drop(entry)
			}
			if s.Size() != 0 {
				t.Errorf("%d bytes without an offer", s.Size())
			}
		})
	}
}
