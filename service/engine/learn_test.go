package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/page"
	"vitrine/service/setup"
)

const toys = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{}}`

// one decides among items with the given features, shows one of them, and tells that it was taken.
func one(t *testing.T, e *engine.Engine, placement, id string, x float64) {
	t.Helper()
	r := &api.Request{Decision: id, Items: []api.Item{{ID: "i", Features: api.Values{api.Number("x", x)}}}}
	fatal.Or(e.Decide(t.Context(), placement, r, 0))(t)
	fatal.If(t, e.Outcome(t.Context(), placement, id, "i", 1))
}

// fragile is a learner that cannot be restored after a panic.
type fragile struct {
	toy
	broken *atomic.Bool
}

func (l *fragile) Observe(r vitrine.Round) error {
	defer func() {
		if v := recover(); v != nil {
			l.broken.Store(true)
			panic(v)
		}
	}()
	return l.toy.Observe(r)
}

func (l *fragile) UnmarshalBinary(data []byte) error {
	if l.broken.Load() {
		return errors.New("no more")
	}
	return l.toy.UnmarshalBinary(data)
}

// An outcome does not wait for a learner that takes its time, and is not refused. When the learner's queue is
// full it does not learn from more rounds, which are counted as ever; other placements go on, and a replay, however
// fast its learner is, does not learn from these rounds either.
func TestSlowLearner(t *testing.T) {
	gate, store := make(chan struct{}), new(memlog.Store)
	var waiting atomic.Int64
	e := opened(t, engine.Options{Store: store, Build: func(s setup.Spec) (vitrine.Learner, error) {
		if s.Seed == 1 {
			return gated(gate, &waiting)(s)
		}
		return buildToy(s)
	}})
	put(t, e, "slow", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{},"seed":1,"memory_bytes":100000}`)
	put(t, e, "fast", toys)
	const rounds = 300
	for i := range rounds {
		id := fmt.Sprint(i)
		fatal.Or(e.Decide(t.Context(), "slow", stock(id, 1), 0))(t)
		if i == rounds-1 {
			break
		}
		fatal.If(t, e.Outcome(t.Context(), "slow", id, "", 1))
		for waiting.Load() == 0 { // it took the first one out of its queue
			time.Sleep(time.Millisecond)
		}
	}
	before := e.Sequence()
	if n, err := e.Expire(t.Context(), 31*minute); n != 0 || err != nil || e.Sequence() != before {
		t.Errorf("%d expired, %v: an expiry waits for the learner", n, err)
	}
	s, _ := e.Stats("slow")
	if s.Outcomes != rounds-1 || s.Lag+s.Unlearned != rounds-1 || s.Lag < 20 || s.Unlearned < 20 || s.Pending != 1 ||
		s.SinceUnlearned != 0 {
		t.Errorf("stats %+v after %d outcomes", s, rounds-1)
	}
	lag := s.Lag
	one(t, e, "fast", "f", 1)
	// Decisions that need memory do not wait: the one that is late expires.
	for i := 0; ; i++ {
		fatal.Or(e.Decide(t.Context(), "slow", stock(fmt.Sprint("more", i), 1), 31*minute))(t)
		if s, _ := e.Stats("slow"); s.Expired == 1 {
			expect.Equal(t, s.Unlearned+lag, rounds, "stats", s, "after the expiry")
			break
		}
	}
	close(gate)
	wait(t, e)
	if s, _ := e.Stats("slow"); s.Learned != lag || s.Lag != 0 {
		t.Errorf("stats %+v, want %d rounds learned", s, lag)
	}
	replays(t, e, engine.Options{Store: store, Build: buildToy})
}

// A caller that gives up does not leave the engine hanging.
func TestWaitIsInterrupted(t *testing.T) {
	gate := make(chan struct{})
	var waiting atomic.Int64
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: gated(gate, &waiting)})
	put(t, e, "slow", toys)
	one(t, e, "slow", "a", 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	is(t, "wait", e.Wait(ctx), context.DeadlineExceeded)
	_, _, err := e.Snapshot(ctx)
	is(t, "snapshot", err, context.DeadlineExceeded)
	close(gate)
}

// Policies that panic or break the rules are errors of the request.
func TestBadPolicies(t *testing.T) {
	for what, offer := range map[string]func(x *vitrine.Context) vitrine.Offer{
		"panic: no": func(*vitrine.Context) vitrine.Offer { panic("no") },
		"breaks the constraints": func(*vitrine.Context) vitrine.Offer {
			return vitrine.Offer{Assortment: vitrine.Assortment{0, 1}}
		},
		"outside [0, 3)": func(*vitrine.Context) vitrine.Offer {
			return vitrine.Offer{Assortment: vitrine.Assortment{9}}
		},
		"propensity = NaN": func(*vitrine.Context) vitrine.Offer { return vitrine.Offer{Propensity: math.NaN()} },
	} {
		e := opened(t, engine.Options{Store: new(memlog.Store), Build: func(setup.Spec) (vitrine.Learner, error) {
			return &always{offer: offer}, nil
		}})
		put(t, e, "home", toys)
		_, err := e.Decide(t.Context(), "home", stock("a", 3), 0)
		if !errors.Is(err, page.ErrPolicy) || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want %s", err, what)
		}
	}
}

// Rolling back returns to earlier knowledge: later rounds are forgotten, by a replay too.
func TestRollBack(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: setup.NewLearner})
	put(t, e, "home", shop)
	ask := func() float64 {
		t.Helper()
		wait(t, e)
		v := fatal.Or(e.View("home"))(t)
		a, _, err := e.Try(t.Context(), v, stock("", 4), 0)
		fatal.If(t, err)
		return a.Outside
	}
	for i := range 20 {
		one(t, e, "home", fmt.Sprint("a", i), 0.5)
	}
	before := ask()
	version := fatal.Or(e.Keep(t.Context(), "home", "", 0))(t)
	for i := range 20 {
		one(t, e, "home", fmt.Sprint("b", i), -0.5)
	}
	if ask() == before {
		t.Fatal("nothing was learned")
	}
	fatal.If(t, e.RollBack(t.Context(), "home", version, nil, 0))
	if after := ask(); after != before {
		t.Errorf("p(0|S) = %v after the roll back, it was %v", after, before)
	}
	is(t, "an unknown version", e.RollBack(t.Context(), "home", version+1, nil, 0), engine.ErrNotFound)
	s, _ := e.Stats("home")
	if s.PolicyEntry <= version || len(s.Versions) != 2 || s.Learned != 20 {
		t.Errorf("stats %+v", s)
	}
	replays(t, e, engine.Options{Store: store})
}
