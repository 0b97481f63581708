package natslog

import (
	"testing"
	"time"

	"vitrine/internal/expect"
)

// A lease becomes free after its duration without a renewal, counting only time in which it could be read. Each look is
// the time since the first, and the observation.
func TestQuiet(t *testing.T) {
	for name, c := range map[string]struct {
		looks []time.Duration
		seen  []uint64
		want  time.Duration
	}{
		"one look":              {[]time.Duration{0}, []uint64{4}, 0},
		"no renewal":            {[]time.Duration{0, 1e7, 2e7, 3e7}, []uint64{4, 4, 4, 4}, 3e7},
		"renewed":               {[]time.Duration{0, 1e7, 2e7, 3e7}, []uint64{4, 4, 5, 5}, 1e7},
		"unreadable for a time": {[]time.Duration{0, 1e7, 9e9, 9e9 + 1e7}, []uint64{4, 4, 4, 4}, 2e7 + renewal},
		"given back and taken":  {[]time.Duration{0, 1e7, 2e7, 3e7}, []uint64{4, 0, 6, 6}, 1e7},
	} {
		var q quiet
		for i, at := range c.looks {
			expect.Equal(t, q.observe(c.seen[i], time.Unix(0, 0).Add(at)),
				i > 0 && c.seen[i-1] > 0 && c.seen[i] > c.seen[i-1], name, "look", i, "finds a renewal")
		}
		expect.Equal(t, q.lasted, c.want, name, "it was not renewed for")
	}
}

// A commit that took long does not hide a renewal that was sent after its beginning.
func TestUnreachedAfterALongCommit(t *testing.T) {
	begin := time.Now()
	now := begin.Add(7 * time.Second)
	s := &Store{options: Options{Now: func() (steady, day time.Time) { return now, now }}}
	s.took(begin)
	s.took(begin.Add(6 * time.Second))
	s.took(begin)
	expect.Equal(t, s.Unreached(), time.Second, "unreached for")
}
