package offer

import (
	"testing"

	"vitrine/internal/expect"
)

// The last offers are kept as long as they are few entries and few bytes.
func TestRecentIsBounded(t *testing.T) {
	const last = uint64(3 * recentEntries)
	for name, c := range map[string]struct {
		bytes int
		step  uint64
		want  uint64 // offers
	}{
		"small":     {100, 2, recentEntries / 2},
		"with gaps": {100, 3 * recentEntries / 4, 2},
		"large":     {100_000, 1, recentBytes / 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := new(Recent), new(Offer)
			for entry := uint64(1); entry <= last; entry += c.step {
				s.Add(entry, o, c.bytes)
			}
			kept, first := uint64(0), uint64(0)
			for entry := last; entry > 0; entry-- {
				if s.Of(entry) != nil {
					kept, first = kept+1, entry
				}
			}
			if kept != c.want {
				t.Errorf("%d offers from %d on are kept of %d entries, want %d", kept, first, last, c.want)
			}
			for entry := uint64(1); entry <= last; entry++ {
				s.Drop(entry)
			}
			expect.Equal(t, s.Bytes, 0, "bytes without an offer")
		})
	}
}
