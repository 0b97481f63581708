package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/earnings"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// broad is a PUT of about 128 bytes with a learner of 0.8 GB.
const broad = `{"max_size":3,"features":[{"name":"sku","kind":"category","columns":4095}],"policy":{"name":"onl-mnl"},"max_versions":2}`

func charged(t testing.TB, e *engine.Engine, name string) int64 {
	t.Helper()
	s := fatal.Or(e.Stats(name))(t)
	return s.Charged
}

// The caller of a put builds the learner, once: decisions and puts of other placements come in between.
func TestPutHoldsNobodyUp(t *testing.T) {
	var e *engine.Engine
	built := map[string]int{}
	build := func(s setup.Spec) (vitrine.Learner, error) {
		name := string(s.Policy)
		if built[name]++; name == `{"name":"slow"}` {
			one(t, e, "home", fmt.Sprint("meanwhile", built[name]), 1)
			put(t, e, "third", toys)
		}
		return &toy{size: s.Size}, nil
	}
	e = opened(t, engine.Options{Store: new(memlog.Store), Build: build})
	put(t, e, "home", toys)
	put(t, e, "slow", strings.Replace(toys, "{}", `{"name":"slow"}`, 1))
	one(t, e, "slow", "after", 1)
	wait(t, e)
	if built[`{"name":"slow"}`] != 1 || built[`{}`] != 2 {
		t.Errorf("learners were built %v times", built)
	}
	s, err := e.Stats("slow")
	if err != nil || s.Learned != 1 {
		t.Errorf("learned %+v, %v", s, err)
	}
	put(t, e, "slow", strings.Replace(toys, "{}", `{"name":"slow"},"max_versions":3`, 1))
	expect.Equal(t, built[`{"name":"slow"}`], 1, "a learner that goes on is built again")
}

// If a placement changes while a put builds its learner, the put applies to the new state.
func TestPutMeetsPut(t *testing.T) {
	b := budget.New(1 << 40)
	var e *engine.Engine
	builds := 0
	build := func(s setup.Spec) (vitrine.Learner, error) {
		if string(s.Policy) == `{"name":"first"}` {
			if builds++; builds == 1 {
				put(t, e, "home", toys)
			}
		}
		return &toy{size: s.Size}, nil
	}
	size := func(setup.Spec) (setup.Size, error) { return setup.Size{Learner: 1000, State: 10}, nil }
	e = opened(t, engine.Options{Store: new(memlog.Store), Build: build, Size: size, Budget: b})
	created, err := e.Put(t.Context(), "home", []byte(strings.Replace(toys, "{}", `{"name":"first"}`, 1)), 0)
	if created || err != nil || builds != 2 {
		t.Errorf("created %v, %v, after %d builds", created, err, builds)
	}
	if c, err := e.Config("home"); err != nil || c.Policy["name"] != "first" {
		t.Errorf("%s, %v", c.Canonical(), err)
	}
	if u := b.Usage(); u.Placements != charged(t, e, "home") {
		t.Errorf("%d bytes are charged, %d to the placement", u.Placements, charged(t, e, "home"))
	}
}

// A placement is charged with its learner, the states that it saves, and its decisions.
func TestPlacementsAreCharged(t *testing.T) {
	b := budget.New(8 << 30)
	e := opened(t, engine.Options{Store: new(memlog.Store), Size: setup.LearnerSize, Budget: b})
	put(t, e, "home", shop)
	c := fatal.Or(e.Config("home"))(t)
	size, err := setup.LearnerSize(setup.Spec{Policy: []byte(`{"name":"ucb-mnl"}`), Features: 1, Size: 2, Items: 1000,
		Rounds: 100})
	if err != nil || size.Learner == 0 || size.State == 0 {
		t.Fatal(size, err)
	}
	home := size.Learner + 10*size.State + int64(c.Bound())
	for _, c := range []struct {
		what, config string
		want         int64
	}{
		{"as it is", shop, home},
		{"more memory", strings.Replace(shop, "200000", "400000", 1), home + 200000 + 2*50000 + 200000/16 +
			int64(earnings.ItemBytes*(earnings.MaxItems(400000)-earnings.MaxItems(200000)))},
		{"fewer states", strings.Replace(shop, `"memory_bytes"`, `"max_versions":1,"memory_bytes"`, 1),
			home - 7*size.State},
		{"a bad policy", strings.Replace(shop, "ucb-mnl", "ucb-mln", 1), home - 7*size.State},
		{"another learner", strings.Replace(shop, `"max_size":2`, `"max_size":1`, 1), home},
	} {
		_, _ = e.Put(t.Context(), "home", []byte(c.config), 0)
		if have, u := charged(t, e, "home"), b.Usage(); have != c.want || u.Placements != c.want {
			t.Errorf("%s: %d is charged, %d in all, want %d", c.what, have, u.Placements, c.want)
		}
	}
	fatal.If(t, e.Delete(t.Context(), "home", nil, 0))
	expect.Equal(t, b.Usage().Placements, 0, "after the placement n bytes are charged")
}

// A put that does not fit is refused before anything is built, with advice. A smaller one fits.
func TestPutThatDoesNotFit(t *testing.T) {
	b := budget.New(1 << 30)
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Size: setup.LearnerSize, Budget: b,
		Build: func(s setup.Spec) (vitrine.Learner, error) {
			if s.Features > 100 {
				t.Error("what does not fit is built")
			}
			return setup.NewLearner(s)
		}})
	put(t, e, "home", shop)
	before := b.Usage()
	_, err := e.Put(t.Context(), "wide", []byte(broad), 0)
	is(t, "a placement of 4095 buckets in a service of 1 GiB", err, engine.ErrMemory)
	var full *budget.FullError
	if !errors.As(err, &full) || full.Need < 1e9 || full.Max != 3<<28 || full.Held != before.Placements {
		t.Errorf("the error has the sizes %+v", full)
	}
	for _, part := range []string{`placement "wide"`, "4095 columns", "max_versions is 2", "memory_bytes 67108864",
		"[limits] memory"} {
		expect.Part(err)(t, part)
	}
	_, err = e.Put(t.Context(), "home", []byte(strings.Replace(shop, "200000", "900000000", 1)), 0)
	is(t, "memory of 900 MB in a service of 1 GiB", err, engine.ErrMemory)
	if b.Usage() != before {
		t.Errorf("%+v was charged before, and %+v after", before, b.Usage())
	}
	put(t, e, "other", shop)
}

// Failed builds and callers that leave free all memory.
func TestPutGivesBack(t *testing.T) {
	b := budget.New(1 << 30)
	ctx, cancel := context.WithCancel(t.Context())
	e := opened(t, engine.Options{Store: new(memlog.Store), Budget: b,
		Build: func(s setup.Spec) (vitrine.Learner, error) {
			if string(s.Policy) == `{"name":"bad"}` {
				return nil, errors.New("bad")
			}
			cancel()
			return &toy{size: s.Size}, nil
		}})
	_, err := e.Put(t.Context(), "home", []byte(strings.Replace(toys, "{}", `{"name":"bad"}`, 1)), 0)
	is(t, "a bad policy", err, api.ErrInvalid)
	expect.Equal(t, b.Usage().Placements, 0, "a placement that could not be built holds n bytes")
	for i := range 20 { // some come to the writer, and some do not
		_, _ = e.Put(ctx, fmt.Sprint("p", i), []byte(toys), 0)
	}
	wait(t, e)
	want := int64(0)
	for _, name := range e.Placements() {
		want += charged(t, e, name)
	}
	if u := b.Usage(); u.Placements != want {
		t.Errorf("%d bytes are held, %d by %v", u.Placements, want, e.Placements())
	}
}

// The contents of a log or a snapshot are opened however small the budget is, and charged as before.
func TestOpeningIsNeverRefused(t *testing.T) {
	store := new(memlog.Store)
	o := engine.Options{Store: store, Size: setup.LearnerSize}
	o.Budget = budget.New(1 << 30)
	e := opened(t, o)
	put(t, e, "home", shop)
	put(t, e, "gone", shop)
	put(t, e, "other", strings.Replace(shop, "200000", "300000", 1))
	put(t, e, "home", strings.Replace(shop, "200000", "250000", 1))
	fatal.If(t, e.Delete(t.Context(), "gone", nil, 0))
	state := snapshot(t, e)
	want := o.Budget.Usage().Placements
	for name, data := range map[string][]byte{"the log": nil, "a snapshot": state} {
		o.Snapshot, o.Budget, o.Store = data, budget.New(1000), copied(t, store)
		e := opened(t, o)
		if u := o.Budget.Usage(); u.Placements != want || u.Over() != want-750 {
			t.Errorf("from %s: %+v, want %d", name, u, want)
		}
		if string(snapshot(t, e)) != string(state) {
			t.Errorf("the state from %s is another one", name)
		}
		_, err := e.Put(t.Context(), "new", []byte(shop), 0)
		is(t, "a put beyond the budget", err, engine.ErrMemory)
		put(t, e, "home", strings.Replace(shop, "200000", "240000", 1)) // less than before
	}
	o.Snapshot, o.Budget = []byte("none"), budget.New(1000)
	expect.Refused(engine.Open(t.Context(), o))(t, "a file that is no snapshot is opened")
	o.Snapshot, o.Store = nil, copied(t, store)
	fatal.Or(o.Store.Append(t.Context(), []byte("no event")))(t)
	if _, err := engine.Open(t.Context(), o); err == nil || o.Budget.Usage().Placements != 0 {
		t.Errorf("a log that cannot be opened: %v, and %+v stays charged", err, o.Budget.Usage())
	}
}

// copied returns a log of the same entries.
func copied(t *testing.T, s *memlog.Store) *memlog.Store {
	t.Helper()
	c := new(memlog.Store)
	for entry, err := range s.Entries(t.Context(), 1) {
		if err == nil {
			_, err = c.Append(t.Context(), append([]byte(nil), entry...))
		}
		fatal.If(t, err)
	}
	return c
}

func TestWrongPolicyIsSaidBeforeItsLoss(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: setup.NewLearner, Size: setup.LearnerSize})
	put := func(policy string) error {
		_, err := e.Put(t.Context(), "home",
			[]byte(`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":`+policy+`}`), 100)
		return err
	}
	fatal.If(t, put(`{"name":"auto"}`))
	one(t, e, "home", "a", 1)
	wait(t, e)
	for policy, want := range map[string]string{
		`{"name":"outo"}`:            `/policy: `,
		`{"name":"auto","lambda":1}`: `/policy: `,
		`{"name":"uniform"}`:         `it depends on policy/name`,
	} {
		expect.Part(put(policy))(t, want, policy)
	}
}
