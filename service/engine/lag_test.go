package engine_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
)

// lingering is a log that acknowledges an entry some time after its followers saw it.
type lingering struct {
	*memlog.Store
	gate chan struct{}
}

func (s *lingering) Append(ctx context.Context, entries ...[]byte) (uint64, error) {
	last, err := s.Store.Append(ctx, entries...)
	<-s.gate
	return last, err
}

// A follower may apply an entry before the leader, and answer with it. The leader then knows the decision too.
func TestFollowerIsAhead(t *testing.T) {
	store := &lingering{new(memlog.Store), make(chan struct{}, 1)}
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	store.gate <- struct{}{}
	put(t, e, "home", toys)
	f := follower(t, engine.Options{Store: store.Store, Build: buildToy})
	slow := &held{store.Store, make(chan struct{}, 100)}
	slow.gate <- struct{}{}
	behind := follower(t, engine.Options{Store: slow, Build: buildToy, Replica: 1,
		Propose: func(ctx context.Context, proposal []byte) ([]byte, error) {
			data := e.Accept(ctx, proposal, leaderTime)
			close(slow.gate)
			return data, nil
		}})
	reach(t, behind, 1)
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { _, _ = e.Decide(t.Context(), "home", stock("a", 2), 1) })
	reach(t, f, 2)
	if a := decide(t, f, "home", stock("a", 2), 0); !a.Decoded {
		t.Errorf("%+v, want the leader's", a)
	}
	group.Go(func() {
		time.Sleep(20 * time.Millisecond)
		close(store.gate)
	})
	_, err := behind.Decision(t.Context(), "home", "a") // another follower has answered with it
	is(t, "a decision", err, nil)
	is(t, "an outcome", e.Outcome(t.Context(), "home", "a", "", 1), nil)
	is(t, "an unknown one", e.Outcome(t.Context(), "home", "b", "", 1), engine.ErrNotFound)
}

// held is a log that withholds entries from its followers until the gate is opened.
type held struct {
	*memlog.Store
	gate chan struct{}
}

func (s *held) Follow(ctx context.Context, from uint64) iter.Seq2[[][]byte, error] {
	return func(yield func([][]byte, error) bool) {
		for entries, err := range s.Store.Follow(ctx, from) {
			for one := range slices.Chunk(entries, 1) {
				select {
				case <-s.gate:
				case <-ctx.Done():
				}
				if !yield(one, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// A follower that missed a change of the placement is told, catches up, and decides again. The same goes for category
// values that another process met first.
func TestFollowerIsBehind(t *testing.T) {
	store := &held{new(memlog.Store), make(chan struct{}, 100)}
	e := opened(t, engine.Options{Store: store.Store})
	moved := make(chan struct{}, 100)
	f := follower(t, engine.Options{Store: store, Replica: 1,
		Propose: func(ctx context.Context, proposal []byte) ([]byte, error) {
			data := e.Accept(ctx, proposal, leaderTime)
			if was, err := engine.DecodeAnswer(data); was || err != nil {
				moved <- struct{}{}
			}
			return data, nil
		}})
	put(t, e, "home", brands)
	store.gate <- struct{}{}
	reach(t, f, 1)
	choose(t, e, branded("1", "a", "b"), 1)                        // entries 2 and 3
	put(t, e, "home", brands[:len(brands)-1]+`,"mode":"explore"}`) // entry 4
	decided := make(chan *offer.Offer)
	go func() { decided <- choose(t, f, branded("2", "b", "c"), 1) }()
	<-moved
	select {
	case a := <-decided:
		t.Fatalf("it decides %+v before it has seen the change", a)
	case <-time.After(20 * time.Millisecond):
	}
	for range 20 {
		store.gate <- struct{}{}
	}
	a := <-decided
	reach(t, f, f.Entry())
	var seen []string
	for entry, err := range f.Events(t.Context(), 1) {
		fatal.If(t, err)
		if b, ok := entry.Body.(*eventlog.CategoryValuesAdded); ok {
			seen = append(seen, fmt.Sprint(b.Values))
		}
	}
	if a.Decision != "2" || fmt.Sprint(seen) != "[[a b] [c]]" {
		t.Errorf("%+v, values %v", a, seen)
	}
	if string(snapshot(t, f)) != string(snapshot(t, e)) {
		t.Error("it has another state")
	}
}
