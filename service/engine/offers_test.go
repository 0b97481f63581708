package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// entryCounter is a log that counts the entries that were read one by one.
type entryCounter struct {
	*memlog.Store
	read atomic.Int64
}

func (s *entryCounter) Entry(ctx context.Context, sequence uint64) ([]byte, error) {
	s.read.Add(1)
	return s.Store.Entry(ctx, sequence)
}

// A follower that has applied an offer does not read it again for its outcome, one that began with a snapshot does.
func TestFollowerReadsNoOfferTwice(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", toys)
	for i := range 20 {
		decide(t, e, "home", stock(fmt.Sprint("d", i), 2), 0)
	}
	whole, later := &entryCounter{Store: store}, &entryCounter{Store: store}
	f := follower(t, engine.Options{Store: whole, Build: buildToy})
	g := follower(t, engine.Options{Store: later, Build: buildToy, Snapshot: snapshot(t, e)})
	reach(t, f, e.Sequence())
	if f.OfferBytes() == 0 {
		t.Error("it keeps no offers")
	}
	for i := range 20 {
		is(t, "an outcome", e.Outcome(t.Context(), "home", fmt.Sprint("d", i), "", 2), nil)
	}
	reach(t, f, e.Sequence())
	reach(t, g, e.Sequence())
	if n, m := whole.read.Load(), later.read.Load(); n != 0 || m != 20 {
		t.Errorf("%d offers were read again, and %d after a snapshot; want 0 and 20", n, m)
	}
	if n := f.OfferBytes(); n != 0 {
		t.Errorf("%d bytes of offers are kept after their outcomes", n)
	}
	if string(snapshot(t, f)) != string(snapshot(t, g)) {
		t.Error("the two have different states")
	}
}

// The last offers are kept as long as they are few entries and few bytes.
func TestOffersAreBounded(t *testing.T) {
	last := uint64(3 * engine.MaxOffers)
	for name, c := range map[string]struct {
		numbers int
		step    uint64
		want    uint64 // offers
	}{
		"small":     {10, 2, engine.MaxOffers / 2},
		"with gaps": {10, 3 * engine.MaxOffers / 4, 2},
		"large":     {10_000, 1, engine.MaxOfferBytes / uint64(engine.RoundBytes(10_000, 0))},
	} {
		t.Run(name, func(t *testing.T) {
			s := engine.NewOffers(c.numbers)
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
			if s.Bytes() != 0 {
				t.Errorf("%d bytes without an offer", s.Bytes())
			}
		})
	}
}
