package engine_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
)

// leaderTime is the time at which the leader of a pair accepts proposals.
const leaderTime = 1000

// pair is an engine that writes a log, and one that follows it and proposes to the first.
type pair struct {
	store            *memlog.Store
	leader, follower *engine.Engine
	// answer changes the leader's answers on their way; nil leaves them as they are.
	answer func(data []byte) ([]byte, error)
	ctx    context.Context // of the leader's answers, if not nil
}

func newPair(t testing.TB, o engine.Options) *pair {
	t.Helper()
	p := &pair{store: new(memlog.Store)}
	o.Store = p.store
	p.leader = opened(t, o)
	o.Replica, o.Propose = 5, p.propose
	p.follower = follower(t, o)
	return p
}

func (p *pair) propose(ctx context.Context, proposal []byte) ([]byte, error) {
	if p.ctx != nil {
		ctx = p.ctx
	}
	data := p.leader.Accept(ctx, proposal, leaderTime)
	if p.answer != nil {
		return p.answer(data)
	}
	return data, nil
}

// put makes a placement that both know.
func (p *pair) put(t testing.TB, config string) {
	t.Helper()
	put(t, p.leader, "home", config)
	reach(t, p.follower, p.leader.Sequence())
}

// A follower decides as the leader at the same version and draw: items, propensity and probabilities. The log shows the
// leader's time, and the version of the follower's policy.
func TestFollowerDecidesAsTheLeader(t *testing.T) {
	for _, mode := range []string{api.Learn, api.Explore} {
		p := newPair(t, engine.Options{})
		p.put(t, fmt.Sprintf(`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ts-mnl"},"mode":%q,"seed":3}`, mode))
		for i := range 50 {
			id := fmt.Sprint("d", i)
			a := decide(t, p.leader, "home", stock(id, 5), 0)
			is(t, "outcome", p.leader.Outcome(t.Context(), "home", id, a.IDs()[0], 1), nil)
		}
		reach(t, p.follower, p.leader.Sequence())
		wait(t, p.leader)
		wait(t, p.follower)
		twin := opened(t, engine.Options{Store: upTo(t, p.store, p.leader.Sequence())})
		wait(t, twin)
		twin.SetNumber("home", 5<<40)
		differ := 0
		for i := range 20 {
			r := stock(fmt.Sprint("e", i), 6)
			mine, yours := decide(t, p.follower, "home", r, 0), decide(t, twin, "home", r, 0)
			if mine.PolicyEntry != 101 || !reflect.DeepEqual(asSeen(mine), asSeen(yours)) {
				t.Fatalf("%s: the follower decides %+v, the leader %+v", mode, mine, yours)
			}
			if other := decide(t, p.leader, "home", stock(fmt.Sprint("f", i), 6), 0); !reflect.DeepEqual(other.IDs(),
				mine.IDs()) {
				differ++
			}
		}
		if differ == 0 && mode == api.Explore {
			t.Errorf("%s: the leader and the follower have the same draws", mode)
		}
		reach(t, p.follower, p.leader.Entry())
		if d, err := p.follower.Decision(t.Context(), "home", "e3"); err != nil || d.Time != leaderTime {
			t.Errorf("%+v, %v", d, err)
		}
		if string(snapshot(t, p.follower)) != string(replayed(t, engine.Options{Store: p.store})) {
			t.Error("the follower's state is not that of a replay")
		}
	}
}

// Requests are repeated at the leader, at a follower, and when the leader's answer was lost: there is one decision.
// Numbers of decisions without an id are not given twice.
func TestFollowersRequestsAreRepeated(t *testing.T) {
	p := newPair(t, engine.Options{Build: buildToy})
	p.put(t, toys)
	mine := decide(t, p.follower, "home", stock("a", 3), 0)
	if mine.Decoded || p.follower.Entry() != 2 {
		t.Errorf("%+v, at entry %d", mine, p.follower.Entry())
	}
	decide(t, p.leader, "home", stock("b", 3), 0)
	for _, e := range []*engine.Engine{p.leader, p.follower} {
		for _, id := range []string{"a", "b"} {
			if a := decide(t, e, "home", stock(id, 3), 0); !a.Decoded || a.Decision != id {
				t.Errorf("%s again: %+v", id, a)
			}
			_, err := e.Decide(t.Context(), "home", stock(id, 2), 1)
			is(t, "another request", err, engine.ErrConflict)
		}
	}
	var asked atomic.Int64
	p.answer = func(data []byte) ([]byte, error) {
		if asked.Add(1) == 1 {
			return nil, errors.New("lost")
		}
		return data, nil
	}
	if a := decide(t, p.follower, "home", stock("", 3), 0); a.Decoded || a.Number>>40 != 5 || asked.Load() != 2 {
		t.Errorf("after a lost answer, asked %d times: %+v", asked.Load(), a)
	}
	decide(t, p.leader, "home", stock("", 3), 0)
	expect.Equal(t, statsOf(t, p.leader, "home").Decisions, 4, "decisions")
	if again := opened(t, engine.Options{Store: p.store, Build: buildToy}); decide(t, again, "home", stock("", 2),
		0).Number != 3 {
		t.Error("the leader's numbers do not go on from its own")
	}
}

// Callers of two followers and of the leader at once, twins among them.
func TestManyFollowers(t *testing.T) {
	p := newPair(t, engine.Options{Build: buildToy})
	second := follower(t, engine.Options{Store: p.store, Build: buildToy, Replica: 6, Propose: p.propose})
	p.put(t, `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{}}`)
	reach(t, second, 1)
	engines := []*engine.Engine{p.leader, p.follower, second}
	var mu sync.Mutex
	answers := map[string][]string{}
	var group sync.WaitGroup
	for c := range 6 {
		group.Go(func() {
			for i := range 60 {
				id := fmt.Sprint("d", i)
				a, err := engines[c%3].Decide(t.Context(), "home", stock(id, 3+i%5), 0)
				if err != nil {
					t.Errorf("decide: %v", err)
					return
				}
				mu.Lock()
				if have := answers[id]; have != nil && !reflect.DeepEqual(have, a.IDs()) {
					t.Errorf("%s: twins were shown %v and %v", id, have, a.IDs())
				}
				answers[id] = a.IDs()
				mu.Unlock()
				if err := engines[(c+i)%3].Outcome(t.Context(), "home", id, a.IDs()[c%2], 1); err != nil &&
					!errors.Is(err, engine.ErrConflict) {
					t.Errorf("outcome: %v", err)
				}
			}
		})
	}
	group.Wait()
	if s := statsOf(t, p.leader, "home"); s.Decisions != 60 || s.Outcomes != 60 {
		t.Errorf("%+v", s)
	}
	want := replayed(t, engine.Options{Store: p.store, Build: buildToy})
	for i, e := range engines {
		reach(t, e, p.leader.Sequence())
		if string(snapshot(t, e)) != string(want) {
			t.Errorf("engine %d has another state than a replay", i)
		}
	}
}

// A call passed on by a follower gets the answer that the leader gives its own callers.
func TestFollowersOutcomes(t *testing.T) {
	p := newPair(t, engine.Options{Build: buildToy})
	p.put(t, `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"attribution_window":"1000ns"}`)
	for i, id := range []string{"a", "b", "c", "d"} {
		r := stock(id, 3)
		r.Defer = i == 3
		decide(t, p.leader, "home", r, leaderTime)
	}
	decide(t, p.leader, "home", stock("old", 2), -leaderTime)
	decide(t, p.leader, "home", stock("basket", 2), leaderTime)
	two := []api.Choice{{Item: "sku1", Quantity: new(3), Value: new(0.5)}, {Item: "sku0"}}
	f := p.follower
	for i, c := range []struct {
		err, want error
	}{
		{f.Outcome(t.Context(), "home", "a", "sku1", 1), nil},
		{f.Outcome(t.Context(), "home", "a", "sku1", 1), nil},
		{f.Outcome(t.Context(), "home", "a", "sku1", 1), nil},
		{f.Outcome(t.Context(), "home", "a", "", 1), engine.ErrConflict},
		{f.Outcome(t.Context(), "home", "a", "other", 1), engine.ErrNotShown},
		{f.Outcome(t.Context(), "home", "z", "", 1), engine.ErrNotFound},
		{f.Outcome(t.Context(), "home", "old", "sku0", 1), engine.ErrLate},
		{f.Choose(t.Context(), "home", "basket", two, 1), nil},
		{f.Choose(t.Context(), "home", "basket", two, 1), nil},
		{f.Choose(t.Context(), "home", "basket", two[:1], 1), engine.ErrConflict},
		{f.Choose(t.Context(), "home", "basket", append(two, two...), 1), api.ErrInvalid},
		{f.Correct(t.Context(), "home", "basket", api.Correction{ID: "return", Item: "sku1", Value: new(-0.25)}, 1),
			nil},
		{f.Reward(t.Context(), "home", "b", []api.Reward{{Item: "sku0", Value: 1}}, 1), nil},
		{f.Activate(t.Context(), "home", "d", 1), nil},
		{f.Activate(t.Context(), "home", "z", 1), engine.ErrNotFound},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%d: %v, want %v", i, c.err, c.want)
		}
	}
	var field *api.FieldError
	if err := f.Reward(t.Context(), "home", "c", []api.Reward{{Item: "sku0", Value: 2}}, 1); !errors.As(err, &field) ||
		field.Field != "/rewards/0/value" {
		t.Errorf("%v, want a fault of the first reward", err)
	}
	reach(t, f, f.Entry())
	if d, err := f.Decision(t.Context(), "home", "b"); err != nil || d.Choice != "sku0" {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := f.Decision(t.Context(), "home", "basket"); err != nil || d.Earned != 1.25 || len(d.Choices) != 2 ||
		len(d.Corrections) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	if s := statsOf(t, f, "home"); s.Outcomes != 3 || s.Expired != 1 {
		t.Errorf("%+v", s)
	}
}

// Without a leader a follower says so after a while, and decides when there is one. One that became the leader
// meanwhile decides itself.
func TestNoLeader(t *testing.T) {
	defer engine.SetLeaderPatience(10*time.Millisecond, 100*time.Millisecond)()
	p := newPair(t, engine.Options{Build: buildToy})
	p.put(t, toys)
	p.answer = func([]byte) ([]byte, error) { return nil, errors.New("nobody answers") }
	_, err := p.follower.Decide(t.Context(), "home", stock("a", 2), 1)
	is(t, "without a leader", err, engine.ErrNoLeader)
	expect.Equal(t, err.Error(), "no process that writes the log can be reached at present: nobody answers", "the error")
	is(t, "an outcome", p.follower.Outcome(t.Context(), "home", "a", "", 1), engine.ErrNoLeader)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	is(t, "a caller that leaves", p.follower.Outcome(ctx, "home", "a", "", 1), context.DeadlineExceeded)
	p.answer = func([]byte) ([]byte, error) { return []byte("nonsense"), nil }
	if _, err := p.follower.Decide(t.Context(), "home", stock("b", 2), 1); err == nil ||
		errors.Is(err, engine.ErrNoLeader) {
		t.Errorf("a leader that speaks another language: %v", err)
	}
	engine.SetLeaderPatience(10*time.Millisecond, time.Minute)
	asked := make(chan struct{}, 1000)
	p.answer = func([]byte) ([]byte, error) { asked <- struct{}{}; return nil, errors.New("nobody answers") }
	decided := make(chan error)
	go func() {
		_, err := p.follower.Decide(t.Context(), "home", stock("c", 2), 1)
		decided <- err
	}()
	<-asked
	p.leader.Close()
	fatal.If(t, p.follower.Lead(t.Context(), nil))
	is(t, "as the leader", <-decided, nil)
	unled := follower(t, engine.Options{Store: p.store, Build: buildToy})
	_, err = unled.Decide(t.Context(), "home", stock("d", 2), 1)
	is(t, "a follower that proposes nothing", err, engine.ErrFollower)
}

// A leader that may have been replaced never denies a decision, neither to its callers nor to followers, which ask
// again.
func TestLeaderInDoubt(t *testing.T) {
	defer engine.SetLeaderPatience(10*time.Millisecond, 5*time.Minute)()
	var replaced atomic.Bool
	p := newPair(t, engine.Options{Build: buildToy, Confirm: func(context.Context) error {
		if replaced.Load() {
			return eventlog.ErrFenced
		}
		return nil
	}})
	p.put(t, toys)
	is(t, "an unknown decision", p.follower.Outcome(t.Context(), "home", "a", "", 1), engine.ErrNotFound)
	is(t, "the writer", p.leader.Confirm(t.Context()), nil)
	replaced.Store(true)
	engine.SetLeaderPatience(10*time.Millisecond, 100*time.Millisecond)
	is(t, "an unknown decision of a leader in doubt", p.follower.Outcome(t.Context(), "home", "a", "", 1),
		engine.ErrNoLeader)
	_, err := p.leader.Decision(t.Context(), "home", "a")
	is(t, "reading it", err, engine.ErrNoLeader)
	if err := p.leader.Confirm(t.Context()); !errors.Is(err, engine.ErrNoLeader) ||
		!errors.Is(err, eventlog.ErrFenced) {
		t.Errorf("%v, want ErrNoLeader, and why", err)
	}
	is(t, "a follower", p.follower.Confirm(t.Context()), nil)
	replaced.Store(false)
	decide(t, p.leader, "home", stock("b", 2), 0)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	p.ctx = ended
	is(t, "a leader that ends", p.follower.Outcome(t.Context(), "home", "b", "", 1), engine.ErrNoLeader)
}

// A follower that is behind asks the leader before it reports a decision as unknown, in any call. Without a leader it
// says so.
func TestFollowerLooksForADecision(t *testing.T) {
	defer engine.SetLeaderPatience(10*time.Millisecond, 5*time.Minute)()
	store := &held{new(memlog.Store), make(chan struct{}, 100)}
	e := opened(t, engine.Options{Store: store.Store})
	var gone atomic.Bool
	f := follower(t, engine.Options{Store: store, Replica: 1,
		Propose: func(ctx context.Context, proposal []byte) ([]byte, error) {
			if gone.Load() {
				return nil, errors.New("nobody answers")
			}
			data := e.Accept(ctx, proposal, leaderTime)
			store.gate <- struct{}{} // the follower gets one entry for each question
			return data, nil
		}})
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`)
	store.gate <- struct{}{}
	reach(t, f, e.Sequence())
	for i, ask := range []func(id string) error{
		func(id string) error { _, err := f.Decision(t.Context(), "home", id); return err },
		func(id string) error { _, err := f.Explain(t.Context(), "home", id, 0, nil); return err },
		func(id string) error { return f.Outcome(t.Context(), "home", id, "", 1) },
	} {
		id := fmt.Sprint("d", i)
		gone.Store(true)
		patiently := engine.SetLeaderPatience(10*time.Millisecond, 100*time.Millisecond)
		is(t, "a decision without a leader", ask(id), engine.ErrNoLeader)
		gone.Store(false)
		patiently()
		decide(t, e, "home", stock(id, 2), 0)
		is(t, "a decision that only the leader has", ask(id), nil)
	}
	store.gate <- struct{}{} // the outcome
	decide(t, e, "home", stock("again", 2), 0)
	fatal.If(t, e.Outcome(t.Context(), "home", "again", "", 1))
	store.gate <- struct{}{}
	store.gate <- struct{}{}
	reach(t, f, e.Sequence())
	fatal.If(t, store.TruncateBefore(t.Context(), e.Sequence()))
	decide(t, e, "home", stock("again", 2), 1)
	is(t, "an id whose earlier decision left the log",
		func() error { _, err := f.Decision(t.Context(), "home", "again"); return err }(), nil)
	is(t, "no decision", func() error { _, err := f.Decision(t.Context(), "home", "none"); return err }(),
		engine.ErrNotFound)
}
