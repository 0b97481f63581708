package engine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/long"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// showing is a learner with a policy that shows the first item, or the second one once its level is 1; each round
// raises it by step. It predicts utility.
type showing struct {
	toy
	step    float64
	utility float64
}

func (l *showing) Observe(vitrine.Round) error { l.level += l.step; return nil }

func (l *showing) Policy() vitrine.Policy { return &shows{min(int(l.level), 1), l.utility} }

type shows struct {
	item    int
	utility float64
}

func (s *shows) Offer(x *vitrine.Context, _ *rand.Rand) vitrine.Offer {
	return vitrine.Offer{Assortment: vitrine.Assortment{min(s.item, x.NumItems()-1)}, Propensity: 1}
}

func (s *shows) Utilities(dst []float64, _ *vitrine.Context) {
	for i := range dst {
		dst[i] = s.utility
	}
}

// guarded opens an engine with the given learners.
func guarded(t *testing.T, store *memlog.Store, l showing) *engine.Engine {
	t.Helper()
	return opened(t, engine.Options{Store: store, Build: buildShowing(l)})
}

func buildShowing(l showing) func(setup.Spec) (vitrine.Learner, error) {
	return func(setup.Spec) (vitrine.Learner, error) { own := l; return &own, nil }
}

// trade is a shop with items 0, 1, … that sell with the given probabilities, a decision a minute. Sales are reported at
// once, and the others expire.
type trade struct {
	t     *testing.T
	e     *engine.Engine
	sells []float64
	base  []string
	now   int64
	n     int
	rng   *rand.Rand
}

func newTrade(t *testing.T, e *engine.Engine, sells ...float64) *trade {
	return &trade{t: t, e: e, sells: sells, now: 1e18, rng: rand.New(rand.NewPCG(2, 3))}
}

// goOn makes decisions, until there is an alarm, and returns the first items shown.
func (w *trade) goOn(decisions int, price float64) (shown []string) {
	w.t.Helper()
	for range decisions {
		w.n++
		w.now += minute
		r := stock(fmt.Sprint("d", w.n), len(w.sells))
		for i := range r.Items {
			r.Items[i].Revenue = &price
		}
		r.ShopperID, r.Baseline = r.Decision, w.base
		a, err := w.e.Decide(w.t.Context(), "home", r, w.now)
		fatal.If(w.t, err)
		shown = append(shown, a.IDs()[0])
		p := 0.0
		for i, v := range w.sells {
			if itemID(i) == a.IDs()[0] {
				p = v
			}
		}
		if w.rng.Float64() < p {
			err = w.e.Outcome(w.t.Context(), "home", a.Decision, a.IDs()[0], w.now)
		}
		if _, late := w.e.Expire(w.t.Context(), w.now); err != nil || late != nil {
			w.t.Fatal(err, late)
		}
		if w.alarm() != nil {
			wait(w.t, w.e)
			return shown
		}
	}
	return shown
}

func (w *trade) alarm() *api.Alarm {
	w.t.Helper()
	s := fatal.Or(w.e.Stats("home"))(w.t)
	return s.Guard.Alarm
}

const guardedShop = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{}%s}`

// A policy that earns less than chance gets an alarm, and one that earns more does not.
func TestGuardAgainstChance(t *testing.T) {
	for _, good := range []bool{false, true} {
		store := new(memlog.Store)
		e := guarded(t, store, showing{utility: -800})
		put(t, e, "home", fmt.Sprintf(guardedShop, `,"mode":"explore","explore_share":0.5`))
		sells := []float64{0.1, 0.6, 0.6}
		if good {
			sells = []float64{0.6, 0.1, 0.1}
		}
		w := newTrade(t, e, sells...)
		w.goOn(1800, 3)
		s := fatal.Or(e.Stats("home"))(t)
		if good != (s.Guard.Alarm == nil) {
			t.Errorf("good %v: after %d decisions the guard is %+v with the alarm %+v", good, w.n, s.Guard,
				s.Guard.Alarm)
		}
		if a := s.Guard.Alarm; a != nil && (a.Check != "chance" || !strings.Contains(a.Detail, "less a decision "+
			"than sets drawn by chance") || a.Entry != e.Sequence() && a.Entry+5 < e.Sequence()) {
			t.Errorf("the alarm %+v", a)
		}
		now := snapshot(t, e)
		if !bytes.Equal(now, replayed(t, engine.Options{Store: store, Build: buildShowing(showing{utility: -800})})) {
			t.Error("a replay gives another state")
		}
		if !bytes.Equal(now, replayed(t, engine.Options{Store: store, Snapshot: now,
			Build: buildShowing(showing{utility: -800})})) {
			t.Error("a snapshot gives another state")
		}
	}
}

// A placement that falls back shows the baseline until its alarm is cleared.
func TestFallbackToTheBaseline(t *testing.T) {
	store := new(memlog.Store)
	e := guarded(t, store, showing{utility: -800})
	put(t, e, "home", fmt.Sprintf(guardedShop, `,"mode":"explore","explore_share":0.5,"fallback":"baseline"`))
	w := newTrade(t, e, 0.1, 0.6, 0.6)
	expect.Part(e.Decide(t.Context(), "home", stock("none", 3), w.now))(t,
		`/baseline: is missing: with the fallback "baseline"`, "without a baseline")
	w.base = []string{"sku2"}
	w.goOn(1800, 1)
	if a := w.alarm(); a == nil || a.Fallback != "baseline" {
		t.Fatalf("the alarm %+v", a)
	}
	middle := snapshot(t, e)
	expect.List(t, slices.Compact(w.goOn2(20)), w.base, "with an alarm it shows")
	d, err := e.Decision(t.Context(), "home", fmt.Sprint("d", w.n))
	if err != nil || d.Offer.Mode != offer.ByBaseline {
		t.Errorf("the decision %+v, %v", d, err)
	}
	wait(t, e)
	if !bytes.Equal(snapshot(t, e), replayed(t, engine.Options{Store: store, Snapshot: middle,
		Build: buildShowing(showing{utility: -800})})) {
		t.Error("a snapshot with an alarm gives another state")
	}
	if err := e.ClearAlarm(t.Context(), "home", false, w.now); err != nil || w.alarm() != nil {
		t.Errorf("cleared: %v, %+v", err, w.alarm())
	}
	before := e.Sequence()
	if err := e.ClearAlarm(t.Context(), "home", false, w.now); err != nil || e.Sequence() != before {
		t.Errorf("cleared again: %v, with %d entries", err, e.Sequence()-before)
	}
	is(t, "of no placement", e.ClearAlarm(t.Context(), "nowhere", false, w.now), engine.ErrNotFound)
	if shown := w.goOn2(40); !slices.Contains(shown, "sku0") {
		t.Errorf("after the alarm it shows %v", shown)
	}
	lawful(t, store)
}

// A policy that earns more than it predicted rings, and keeps its pages: they are not at fault.
func TestNoFallbackFromEarningMore(t *testing.T) {
	for _, fallback := range []string{api.FallbackBaseline, api.FallbackVersion} {
		e := guarded(t, new(memlog.Store), showing{utility: -1})
		put(t, e, "home", fmt.Sprintf(guardedShop, `,"mode":"learn","fallback":"`+fallback+`"`))
		w := newTrade(t, e, 0.95, 0.2, 0.2)
		w.base = []string{"sku2"}
		w.goOn(900, 1)
		wait(t, e)
		fatal.Or(e.Keep(t.Context(), "home", "", w.now))(t)
		w.goOn(2000, 1)
		if a := w.alarm(); a == nil || a.Check != "predictions" || a.Fallback != "" || a.Version != 0 {
			t.Fatalf("%s: the alarm %+v", fallback, a)
		}
		expect.List(t, slices.Compact(w.goOn2(20)), []string{"sku0"}, fallback, "shows")
	}
}

// A policy that earns less than it predicted falls back.
func TestFallbackFromEarningLess(t *testing.T) {
	e := guarded(t, new(memlog.Store), showing{utility: 1})
	put(t, e, "home", fmt.Sprintf(guardedShop, `,"mode":"learn","fallback":"baseline"`))
	w := newTrade(t, e, 0.25, 0.25, 0.25) // of 0.73
	w.base = []string{"sku2"}
	w.goOn(3000, 1)
	if a := w.alarm(); a == nil || a.Check != "predictions" || a.Fallback != api.FallbackBaseline {
		t.Fatalf("the alarm %+v", a)
	}
}

// goOn2 goes on with an alarm, too.
func (w *trade) goOn2(decisions int) (shown []string) {
	for range decisions {
		shown = append(shown, w.goOn(1, 1)...)
	}
	return shown
}

// A placement that falls back to a version shows that version's pages, also after a restart, and returns to its policy
// when it is changed.
func TestFallbackToAVersion(t *testing.T) {
	store := new(memlog.Store)
	learner := showing{utility: -800, step: 1.0 / 1000}
	e := guarded(t, store, learner)
	put(t, e, "home", fmt.Sprintf(guardedShop, `,"mode":"explore","explore_share":0.5,"fallback":"version"`))
	w := newTrade(t, e, 0.7, 0.05, 0.6, 0.6)
	w.goOn(900, 1)
	wait(t, e)
	good := fatal.Or(e.Keep(t.Context(), "home", "", w.now))(t)
	w.goOn(250, 1)
	wait(t, e)
	fatal.Or(e.Keep(t.Context(), "home", "of a bad day", w.now))(t)
	w.goOn(3000, 1)
	a := w.alarm()
	if a == nil || a.Fallback != "version" || a.Version != good {
		t.Fatalf("the alarm %+v, want version %d", a, good)
	}
	for restart := range 2 {
		if restart > 0 {
			data := snapshot(t, e)
			e.Close()
			e = opened(t, engine.Options{Store: store, Build: buildShowing(learner), Snapshot: data})
			w.e = e
		}
		wait(t, e)
		by := map[uint64]string{}
		for i := range 30 {
			d := decide(t, e, "home", stock(fmt.Sprint("after", restart, "-", i), 3), w.now)
			if d.Mode == offer.ByPolicy {
				by[d.PolicyEntry] = d.IDs()[0]
			}
		}
		if len(by) != 1 || by[good] != "sku0" {
			t.Errorf("with an alarm versions show %v, want version %d to show sku0", by, good)
		}
		if kept, err := e.Keep(t.Context(), "home", "", w.now); err != nil || len(mustStats(t, e).Versions) != 2 {
			t.Errorf("with an alarm version %d is kept by the clock, %v", kept, err)
		}
		put(t, e, "home", fmt.Sprintf(guardedShop,
			`,"mode":"explore","explore_share":0.5,"fallback":"version","max_versions":2`))
		for _, note := range []string{"one", "two"} { // drop others, and not the one that decides
			w.goOn2(20)
			fatal.Or(e.Keep(t.Context(), "home", fmt.Sprint(note, restart), w.now))(t)
		}
	}
	put(t, e, "home", fmt.Sprintf(guardedShop, `,"mode":"learn"`))
	if a := w.alarm(); a != nil {
		t.Errorf("after a change of the mode: %+v", a)
	}
	if d, err := e.Decide(t.Context(), "home", stock("last", 3), w.now); err != nil || d.IDs()[0] == "sku0" {
		t.Errorf("after a change of the mode it shows %v, %v", d.IDs(), err)
	}
	is(t, "back to the version that decides", e.RollBack(t.Context(), "home", good, nil, w.now), nil)
	lawful(t, store)
}

// The version of an alarm about earnings stays while an alarm about sales takes precedence, and decides again after it.
func TestFallbackAfterAnotherAlarm(t *testing.T) {
	learner := showing{utility: -800, step: 1.0 / 1000}
	e := guarded(t, new(memlog.Store), learner)
	put(t, e, "home", fmt.Sprintf(guardedShop,
		`,"mode":"explore","explore_share":0.5,"fallback":"version","learn_in_alarm":true,"max_versions":2`))
	w := newTrade(t, e, 0.7, 0.05, 0.6, 0.6)
	w.goOn(900, 1)
	wait(t, e)
	good := fatal.Or(e.Keep(t.Context(), "home", "", w.now))(t)
	w.goOn(3000, 1)
	if a := w.alarm(); a == nil || a.Check == "no-sale" || a.Version != good {
		t.Fatalf("the alarm %+v, want version %d", a, good)
	}
	w.goOn2(20)
	wait(t, e)
	fatal.Or(e.Keep(t.Context(), "home", "between the alarms", w.now))(t)
	sells := w.sells
	w.sells = make([]float64, len(sells))
	w.goOn2(300)
	if a := w.alarm(); a.Check != "no-sale" {
		t.Fatalf("without sales the alarm is %+v", a)
	}
	for _, note := range []string{"one", "two", "three"} {
		w.goOn2(20)
		wait(t, e)
		fatal.Or(e.Keep(t.Context(), "home", note, w.now))(t)
	}
	w.sells = sells
	for range 300 {
		if w.goOn2(1); w.alarm().Check != "no-sale" {
			break
		}
	}
	wait(t, e)
	if a := w.alarm(); a.Check == "no-sale" || a.Version != good {
		t.Fatalf("once sales are back the alarm is %+v", a)
	}
	for i := range 30 {
		if d := decide(t, e, "home", stock(fmt.Sprint("after", i), 4), w.now); d.Mode == offer.ByPolicy &&
			d.PolicyEntry != good {
			t.Fatalf("the policy of entry %d decides, want version %d of %v", d.PolicyEntry, good,
				mustStats(t, e).Versions)
		}
	}
}

func mustStats(t *testing.T, e *engine.Engine) api.Stats {
	t.Helper()
	s := fatal.Or(e.Stats("home"))(t)
	return s
}

// Earnings below half of the policy's predictions raise an alarm, as do earnings above twice of them.
func TestGuardOfPredictions(t *testing.T) {
	for _, c := range []struct {
		utility, sells float64
		alarm          bool
	}{{0, 0.5, false}, {0, 0.3, false}, {0, 0.15, true}, {0, 0.9, false}, {-1, 0.9, true}} {
		e := guarded(t, new(memlog.Store), showing{utility: c.utility}) // predicts 0.5 and 0.27
		put(t, e, "home", fmt.Sprintf(guardedShop, ""))
		w := newTrade(t, e, c.sells)
		w.goOn(3000, 2)
		if a := w.alarm(); (a != nil) != c.alarm || a != nil && (a.Check != "predictions" ||
			!strings.Contains(a.Detail, "times what it predicted")) {
			t.Errorf("%+v: the alarm is %+v", c, a)
		}
	}
}

// Another learner's predictions are compared once its own first decisions end: until then it knows little but
// sales, and predicts too many.
func TestGuardOfAnotherLearner(t *testing.T) {
	for _, c := range []struct {
		seed, window string
		alarm        bool
	}{{"", "11h50m", true}, {"", "12h10m", true}, {`,"seed":7`, "11h50m", false}} {
		const shop = `,"attribution_window":"%s"`
		e := guarded(t, new(memlog.Store), showing{}) // predicts a half
		put(t, e, "home", fmt.Sprintf(guardedShop, fmt.Sprintf(shop, "12h")))
		w := newTrade(t, e, 0.5)
		w.goOn(1500, 2)
		expect.Equal(t, w.alarm(), nil)
		put(t, e, "home", fmt.Sprintf(guardedShop, fmt.Sprintf(shop, c.window)+c.seed)) // restarts the guard
		w.sells[0] = 0.1
		if w.goOn(700, 2); (w.alarm() != nil) != c.alarm {
			t.Errorf("with the change %q the alarm is %+v", c.seed, w.alarm())
		}
	}
}

// After a rollback predictions are compared if the version learned enough, whatever the learner before it knew.
func TestGuardOfAVersion(t *testing.T) {
	for early, alarm := range map[bool]bool{false: true, true: false} {
		const shop = `,"attribution_window":"12h","max_versions":5`
		e := guarded(t, new(memlog.Store), showing{}) // predicts a half
		put(t, e, "home", fmt.Sprintf(guardedShop, shop))
		w := newTrade(t, e, 0.5)
		keep := func() uint64 { return fatal.Or(e.Keep(t.Context(), "home", "", w.now))(t) }
		w.goOn(600, 2) // in the first window
		first := keep()
		w.goOn(900, 2)
		last := keep()
		put(t, e, "home", fmt.Sprintf(guardedShop, shop+`,"seed":7`))
		if early {
			last = first
		}
		fatal.If(t, e.RollBack(t.Context(), "home", last, nil, w.now))
		w.sells[0] = 0.1
		if w.goOn(700, 2); (w.alarm() != nil) != alarm {
			t.Errorf("early %v: the alarm is %+v", early, w.alarm())
		}
	}
}

// A policy that earns less than half of what the caller's own sets did before it gets an alarm, also after another policy
// took its place.
func TestGuardAgainstTheBaseline(t *testing.T) {
	e := guarded(t, new(memlog.Store), showing{utility: -800}) // and no prediction
	put(t, e, "home", fmt.Sprintf(guardedShop, `,"mode":"shadow"`))
	w := newTrade(t, e, 0.1, 0.6)
	w.base = []string{"sku1"}
	w.goOn(900, 1)
	w.base = nil
	for seed := range 2 {
		put(t, e, "home", fmt.Sprintf(guardedShop, fmt.Sprintf(`,"seed":%d`, seed+7)))
		if a := w.alarm(); a != nil {
			t.Errorf("too early: %+v", a)
		}
		w.goOn(1800, 1)
		if a := w.alarm(); a == nil || a.Check != "baseline" {
			t.Errorf("the alarm is %+v", a)
		}
	}
}

// Sound policies raise no alarm, while they learn and afterwards.
func TestGuardIsSilent(t *testing.T) {
	rounds := 700
	if long.Wanted() {
		rounds = 3000
	}
	for _, name := range []string{"ucb-mnl", "ts-mnl", "ofu-mnl-plus", "eps-greedy-mnl", "onl-mnl", "auto"} {
		t.Run(name, func(t *testing.T) {
			const items, d = 12, 3
			e := opened(t, engine.Options{Store: new(memlog.Store)})
			put(t, e, "home", fmt.Sprintf(
				`{"max_size":3,"max_request_items":%d,"features":%s,"policy":{"name":%q},"mode":"explore"}`, items,
				numbers(d), name))
			s, now := newSimulator(7, items, d), int64(1e18)
			for round := 1; round <= rounds; round++ {
				now += minute
				r, _ := s.request(round)
				a := decide(t, e, "home", r, now)
				if item, _ := s.choose(a); item != "" { // the others expire
					fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, item, now))
				}
				if round%10 == 0 {
					fatal.Or(e.Expire(t.Context(), now))(t)
					wait(t, e)
				}
			}
			g := mustStats(t, e).Guard
			if g.Alarm != nil || g.Period != 1 || len(g.Checks) != 5 || *g.Checks[2].Low >= *g.Checks[2].High ||
				*g.Checks[3].Low >= *g.Checks[3].High {
				t.Errorf("the guard is %+v, with the alarm %+v", g, g.Alarm)
			}
			for _, c := range g.Checks {
				t.Logf("%s after %d decisions: from %d without a sale, %d more decisions needed", c.Name, c.Decisions,
					c.Silence, c.Needs)
			}
		})
	}
}
