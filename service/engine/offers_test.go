package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"vitrine/internal/expect"
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

// A follower that applied an offer does not read it again for its outcome; one that began with a snapshot does.
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
	expect.Equal(t, f.OfferBytes(), 0, "bytes of offers are kept after their outcomes")
	if string(snapshot(t, f)) != string(snapshot(t, g)) {
		t.Error("the two have different states")
	}
}
