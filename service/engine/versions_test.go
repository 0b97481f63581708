package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// A change that would restart the learner is refused with a list of losses. With Reset it is made, and a rollback
// brings the earlier learner back, with its configuration: it decides as before.
func TestChangeKeepsAVersion(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	first := strings.Replace(shop, `"memory_bytes"`, `"attribution_window":"45s","memory_bytes"`, 1)
	second := strings.Replace(first, `{"name":"ucb-mnl"}`, `{"name":"ucb-mnl","lambda":7}`, 1)
	put(t, e, "home", first)
	for i := range 20 {
		one(t, e, "home", fmt.Sprint("a", i), float64(i%5))
	}
	wait(t, e)
	ask := func(e *engine.Engine, id string) *offer.Offer {
		t.Helper()
		a := decide(t, e, "home", stock(id, 5), 100)
		return a
	}
	before := ask(e, "before")
	sequence := e.Sequence()
	_, err := e.Put(t.Context(), "home", []byte(second), 200)
	var loss *engine.LossError
	if !errors.As(err, &loss) || !errors.Is(err, engine.ErrLoss) || loss.Rounds != 20 || loss.Versions != 0 ||
		!slices.Equal(loss.Fields, []string{"policy/lambda"}) {
		t.Fatalf("%v, %+v", err, loss)
	}
	expect.Equal(t, e.Sequence(), sequence, "a refused change is in the log")
	put(t, e, "waits", first)
	decide(t, e, "waits", stock("open", 5), 0)
	for i := range 10 { // most of these sales wait for it
		one(t, e, "waits", fmt.Sprint(i), 1)
	}
	if _, err := e.Put(t.Context(), "waits", []byte(second), 200); !errors.As(err, &loss) || loss.Rounds != 10 {
		t.Errorf("%v, want a loss of 10 rounds", err)
	}
	fatal.Or(e.Change(t.Context(), "home", []byte(second), engine.Change{Reset: true}, 200))(t)
	for i := range 3 {
		one(t, e, "home", fmt.Sprint("b", i), 1)
	}
	fatal.If(t, e.Outcome(t.Context(), "home", "before", "", 300))
	check := func(e *engine.Engine) {
		t.Helper()
		wait(t, e)
		s, err := e.Stats("home")
		versions, failed := e.Versions("home", 0)
		if err != nil || failed != nil || s.Learned != 3 || s.Stale != 1 || len(versions) != 1 {
			t.Fatalf("%+v, %+v, %v, %v", s, versions, err, failed)
		}
		v := versions[0]
		if *v.Learned != 20 || !v.Time.Equal(time.Unix(0, 200)) || v.RoundsSince != 4 || *v.RevenueSince != 0.75 ||
			v.Automatic || !v.OtherLearner ||
			v.Note != "before a change of policy/lambda" || v.Policy["lambda"] != 1.0 {
			t.Errorf("the version %+v", v)
		}
	}
	check(e)
	again := opened(t, engine.Options{Store: store, Snapshot: snapshot(t, e)})
	check(again)
	again.Close()
	versions, _ := e.Versions("home", 0)
	fatal.If(t, e.RollBack(t.Context(), "home", versions[0].Version, nil, 400))
	if c, err := e.Config("home"); err != nil || string(c.Canonical()) != string(canonicalOf(t, first)) {
		t.Errorf("the configuration is %s, %v", c.Canonical(), err)
	}
	for range 2 { // at once, and after the roll back was learned
		if after := ask(e, ""); !slices.Equal(after.IDs(), before.IDs()) ||
			!slices.Equal(after.Probability, before.Probability) {
			t.Errorf("it decides %+v, and decided %+v", after, before)
		}
		wait(t, e)
	}
	s, _ := e.Stats("home")
	if versions, _ := e.Versions("home", 0); s.Learned != 20 || len(versions) != 2 || *versions[1].Learned != 3 ||
		!strings.HasPrefix(versions[1].Note, "before the roll back to version") {
		t.Errorf("%+v, %+v", s, versions)
	}
	one(t, e, "home", "c", 1)                     // rows of all three learners are alike
	fatal.Or(e.Expire(t.Context(), 31*minute))(t) // the decisions of ask
	wait(t, e)
	if s, _ := e.Stats("home"); s.Learned != 23 {
		t.Errorf("%+v", s)
	}
	replays(t, e, engine.Options{Store: store})
}

func canonicalOf(t *testing.T, text string) []byte {
	t.Helper()
	c := fatal.Or(setup.Parse([]byte(text)))(t)
	return c.Canonical()
}

// Before the first outcome all changes are allowed.
func TestNothingIsLostBeforeTheFirstOutcome(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	for i := range 3 {
		fatal.Or(e.Put(t.Context(), "home", []byte(strings.Replace(toys, `{}`, fmt.Sprintf(`{"name":"t%d"}`, i), 1)),
			0))(t)
	}
	if v, err := e.Versions("home", 0); err != nil || len(v) != 0 {
		t.Errorf("%+v, %v", v, err)
	}
}

// Versions of the timer go before other ones.
func TestOldestVersionsGo(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", strings.Replace(toys, `{}`, `{},"max_versions":3`, 1))
	for i, note := range []string{"", "first", "", "second", "", "third", "fourth", ""} {
		one(t, e, "home", fmt.Sprint(i), 1)
		fatal.Or(e.Keep(t.Context(), "home", note, 0))(t)
	}
	var notes []string
	versions, _ := e.Versions("home", 0)
	for _, v := range versions {
		notes = append(notes, v.Note)
	}
	expect.List(t, notes, []string{"third", "fourth", ""}, "versions")
	_, err := e.Keep(t.Context(), "home", strings.Repeat("x", 501), 0)
	is(t, "a long note", err, api.ErrInvalid)
}

// If a person keeps a state that the timer just kept, the version gets the note, and so it does if a rollback starts
// from such a state: later versions of the timer do not push it out. The timer never removes a note.
func TestNoteKeepsAVersion(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", strings.Replace(toys, `{}`, `{},"max_versions":3`, 1))
	keep := func(note string) uint64 {
		t.Helper()
		version := fatal.Or(e.Keep(t.Context(), "home", note, 0))(t)
		return version
	}
	one(t, e, "home", "a", 1)
	timers := keep("")
	expect.Equal(t, keep("before the sale"), timers, "one state is the versions", timers, "and")
	sequence := e.Sequence()
	keep("")
	keep("another word")
	expect.Equal(t, e.Sequence(), sequence, "a version with a note was kept again")
	one(t, e, "home", "b", 1)
	keep("") // which the roll back is to keep
	fatal.If(t, e.RollBack(t.Context(), "home", timers, nil, 0))
	for i := range 4 {
		one(t, e, "home", fmt.Sprint(i), 1)
		keep("")
	}
	check := func(e *engine.Engine) {
		t.Helper()
		var notes []string
		versions, _ := e.Versions("home", 0)
		for _, v := range versions {
			if notes = append(notes, v.Note); v.Automatic != (v.Note == "") {
				t.Errorf("%+v", v)
			}
		}
		expect.List(t, notes, []string{"before the sale", fmt.Sprintf("before the roll back to version %d", timers),
			""}, "the versions are")
	}
	check(e)
	check(opened(t, engine.Options{Store: store, Build: buildToy, Snapshot: snapshot(t, e)}))
	replays(t, e, engine.Options{Store: store, Build: buildToy})
}

// A learner that is behind when its placement changes learns what it was given, as a version, also after a restart.
// The new one decides meanwhile.
func TestFormerLearnerIsBehind(t *testing.T) {
	store, gate := new(memlog.Store), make(chan struct{})
	var waiting atomic.Int64
	e := opened(t, engine.Options{Store: store, Build: gated(gate, &waiting)})
	put(t, e, "home", toys)
	for i := range 3 {
		one(t, e, "home", fmt.Sprint("a", i), float64(i))
	}
	for waiting.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	put(t, e, "home", strings.Replace(toys, `{}`, `{"name":"other"}`, 1))
	decide(t, e, "home", stock("b", 3), 0)
	var w bytes.Buffer
	if _, behind, err := e.WriteSnapshot(t.Context(), &w, time.Millisecond); err != nil || len(behind) != 1 {
		t.Fatalf("behind %q, %v", behind, err)
	}
	if v, _ := e.Versions("home", 0); len(v) != 1 || v[0].Learned != nil {
		t.Errorf("versions %+v", v)
	}
	close(gate)
	want := snapshot(t, e)
	versions, _ := e.Versions("home", 0)
	if len(versions) != 1 || *versions[0].Learned != 3 {
		t.Errorf("versions %+v", versions)
	}
	for what, from := range map[string][]byte{"the log": nil, "the snapshot": w.Bytes()} {
		if string(replayed(t, engine.Options{Store: store, Build: buildToy, Snapshot: from})) != string(want) {
			t.Errorf("%s gives another state", what)
		}
	}
	again := opened(t, engine.Options{Store: store, Build: buildToy, Snapshot: w.Bytes()})
	is(t, "rolling back", again.RollBack(t.Context(), "home", versions[0].Version, nil, 1), nil)
	wait(t, again)
	if s, _ := again.Stats("home"); s.Learned != 3 || s.Broken {
		t.Errorf("%+v", s)
	}
}

// A former learner with an unreadable state comes back broken, and a fresh learner decides.
func TestUnreadableVersion(t *testing.T) {
	var unreadable atomic.Bool
	build := func(s setup.Spec) (vitrine.Learner, error) {
		return &fragile{toy: toy{size: s.Size}, broken: &unreadable}, nil
	}
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: build})
	put(t, e, "home", toys)
	one(t, e, "home", "a", 3)
	put(t, e, "home", strings.Replace(toys, `{}`, `{"name":"other"}`, 1))
	wait(t, e)
	unreadable.Store(true)
	versions, _ := e.Versions("home", 0)
	is(t, "rolling back", e.RollBack(t.Context(), "home", versions[0].Version, nil, 1), nil)
	for range 2 {
		if _, err := e.Decide(t.Context(), "home", stock("", 3), 0); err != nil {
			t.Error(err)
		}
		wait(t, e)
	}
	if s, _ := e.Stats("home"); !s.Broken {
		t.Errorf("%+v", s)
	}
	e.Close()
	again := opened(t, engine.Options{Store: store, Build: build})
	if _, err := again.Decide(t.Context(), "home", stock("", 3), 0); err != nil {
		t.Errorf("after a replay: %v", err)
	}
}

// A former learner's states are charged as long as it has versions.
func TestFormerLearnersAreCharged(t *testing.T) {
	size := func(s setup.Spec) (setup.Size, error) {
		if string(s.Policy) == `{"name":"large"}` {
			return setup.Size{Learner: 1000, State: 500}, nil
		}
		return setup.Size{Learner: 10, State: 5}, nil
	}
	b := budget.New(1 << 30)
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy, Size: size, Budget: b})
	config := func(policy string) string {
		return strings.Replace(toys, `{}`, `{"name":"`+policy+`"},"max_versions":1`, 1)
	}
	put(t, e, "home", config("large"))
	bound := charged(t, e, "home") - 1000 - 3*500
	one(t, e, "home", "a", 1)
	for i, c := range []struct {
		policy string
		want   int64
	}{{"small", 10 + 3*500}, {"smaller", 10 + 3*5}} {
		put(t, e, "home", config(c.policy))
		if have := charged(t, e, "home") - bound; have != c.want || b.Usage().Placements != bound+c.want {
			t.Errorf("%s is charged %d, want %d", c.policy, have, c.want)
		}
		one(t, e, "home", fmt.Sprint("b", i), 1)
	}
}

// Callers may roll back, decide and read while the learner of a variant takes over, with a new configuration.
func TestConfigurationsChangeUnderCallers(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	trial := onTrial(fourVariants)
	ends := strings.Replace(strings.Replace(trial[:strings.Index(trial, `,"experiment"`)]+"}", `"experiment"`, `"learn"`, 1),
		`"0"`, `"1"`, 1)
	put(t, e, "home", trial)
	var callers sync.WaitGroup
	done := make(chan struct{})
	for k := range 2 {
		callers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				r := stock(fmt.Sprint("d", k, "-", n), 2)
				r.ShopperID, r.Baseline = fmt.Sprint(n), []string{itemID(0)}
				if _, err := e.Decide(t.Context(), "home", r, 0); err != nil {
					t.Error(err)
					return
				}
				_ = e.Outcome(t.Context(), "home", r.Decision, itemID(0), 0)
				versions, _ := e.Versions("home", 0)
				for _, v := range versions {
					_ = e.RollBack(t.Context(), "home", v.Version, nil, 0) // not while the experiment runs
				}
				_, _ = e.Experiments("home")
			}
		})
	}
	for range 30 {
		if _, err := e.Put(t.Context(), "home", []byte(ends), 0); err != nil && !errors.Is(err, engine.ErrLoss) {
			t.Error(err)
		}
		put(t, e, "home", trial)
	}
	close(done)
	callers.Wait()
}
