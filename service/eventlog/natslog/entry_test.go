package natslog_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
)

// Entries stay the same after reopening the log, and after the cache of frames was dropped completely or in large part.
// Reading an entry again sends no message to the server.
func TestEntryIsFoundAgain(t *testing.T) {
	for _, c := range []struct {
		name                  string
		bytes, begins, coarse int
		first, again          uint64 // maximum number of messages to the server per entry
	}{
		{"all remembered", 1 << 24, 1 << 16, 1 << 16, 20, 0},
		{"where frames begin", 0, 1 << 16, 1 << 16, 20, 1},
		{"where few begin", 2000, 5, 1 << 16, 20, 5},
		{"where very few begin", 2000, 5, 4, 20, 20},
		{"nothing", 0, 0, 0, 20, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer natslog.SetMemory(c.bytes, c.begins, c.coarse)()
			t.Cleanup(natslog.SetPatientAttempts())          // keeps a busy machine from resending messages
			defer natslog.SetLease(time.Hour, 3*time.Hour)() // keeps lease messages out of the count
			o := natslog.Options{URL: natstest.URL(t)}
			s := connect(t, o)
			rng := rand.New(rand.NewPCG(1, 2))
			last := 0
			for range 100 {
				n := 1 + rng.IntN(5)
				var all [][]byte
				for i := range n {
					all = append(all, entry((last+i+1)%250))
				}
				fatal.Or(s.Append(t.Context(), all...))(t)
				last += n
			}
			read := func(s *natslog.Store, i int, maximum uint64) {
				t.Helper()
				before := natslog.Sent(s)
				if e, err := s.Entry(t.Context(), uint64(i)); err != nil || !bytes.Equal(e, entry(i%250)) {
					t.Fatalf("entry %d is %q, %v", i, e, err)
				}
				if sent := natslog.Sent(s) - before; sent > maximum {
					t.Errorf("entry %d cost %d messages, want %d at most", i, sent, maximum)
				}
			}
			for _, i := range rng.Perm(last) {
				read(s, i+1, c.again)
			}
			s.Close()

			s = connect(t, o)
			for _, i := range rng.Perm(last) {
				read(s, i+1, c.first)
				read(s, i+1, c.again+2) // the claim at the end is not cached
			}
			fatal.If(t, s.TruncateBefore(t.Context(), uint64(last/2)))
			x := fatal.Or(s.Extent(t.Context()))(t)
			s.Close()

			s = connect(t, o)
			defer s.Close()
			for _, i := range rng.Perm(last) {
				if uint64(i+1) >= x.First {
					read(s, i+1, c.first+2)
				} else {
					expect.Fails(s.Entry(t.Context(), uint64(i+1)))(fatal.T(t), eventlog.ErrRemoved, i+1)
				}
			}
		})
	}
}

// Large entries, such as parts of a catalogue, do not displace small ones, which are read again.
func TestLargeEntriesAreNotRemembered(t *testing.T) {
	const remembered = 48 << 10
	defer natslog.SetMemory(remembered, 1<<16, 1<<16)()
	t.Cleanup(natslog.SetPatientAttempts())
	defer natslog.SetLease(time.Hour, 3*time.Hour)()
	s := connect(t, natslog.Options{URL: natstest.URL(t)})
	defer s.Close()
	small, medium, large := entry(1), bytes.Repeat([]byte("m"), 15<<10), bytes.Repeat([]byte("l"), 17<<10)
	frames := [][][]byte{{small}, {medium}, {large}, {large, large}, {small, large}}
	cost := []uint64{0, 0, 1, 1, 0} // messages per entry of each frame
	for _, f := range frames {
		fatal.Or(s.Append(t.Context(), f...))(t)
	}
	sequence := uint64(0)
	for i, f := range frames {
		for _, want := range f {
			sequence++
			before := natslog.Sent(s)
			have, err := s.Entry(t.Context(), sequence)
			if err != nil || !bytes.Equal(have, want) {
				t.Fatalf("entry %d has %d bytes, %v; want %d", sequence, len(have), err, len(want))
			}
			expect.Equal(t, natslog.Sent(s)-before, cost[i], "entry", sequence, "of frame", i, "cost n messages")
		}
	}
}
