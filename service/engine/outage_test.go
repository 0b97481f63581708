package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// outage is a shop after 3,000 decisions with sales, from which reports stop.
func outage(t *testing.T, config string) (w *trade, store *memlog.Store) {
	t.Helper()
	store = new(memlog.Store)
	e := guarded(t, store, showing{}) // predicts a half
	put(t, e, "home", fmt.Sprintf(guardedShop, config))
	w = newTrade(t, e, 0.5)
	w.goOn(3000, 2)
	if a := w.alarm(); a != nil {
		t.Fatalf("a healthy shop has the alarm %+v", a)
	}
	w.sells[0] = 0
	w.goOn(200, 2)
	return w, store
}

// learned returns how many rounds the learner has learned.
func (w *trade) learned() uint64 {
	w.t.Helper()
	wait(w.t, w.e)
	return mustStats(w.t, w.e).Learned
}

// same compares the state with a replay, and with the continuation of a snapshot.
func same(t *testing.T, e *engine.Engine, store *memlog.Store, from []byte) {
	t.Helper()
	build := buildShowing(showing{})
	now := snapshot(t, e)
	if !bytes.Equal(now, replayed(t, engine.Options{Store: store, Build: build})) {
		t.Error("a replay gives another state")
	}
	if !bytes.Equal(now, replayed(t, engine.Options{Store: store, Snapshot: from, Build: build})) {
		t.Error("a snapshot gives another state")
	}
}

// When sales stop, an alarm rings within a hundred decisions. Until it ends the learner rests. It ends by itself once
// sales are back: the learner then learns the decisions since, but not the outage's.
func TestOutage(t *testing.T) {
	w, store := outage(t, "")
	a := w.alarm()
	if a == nil || a.Check != "no-sale" || w.n > 3100 {
		t.Fatalf("after %d decisions without a sale the alarm is %+v", w.n-3000, a)
	}
	t.Logf("after %d decisions: %s", w.n-3000, a.Detail)
	learned := w.learned()
	w.goOn2(500)
	if now := w.learned(); now != learned {
		t.Errorf("during an alarm the learner has learned %d rounds", now-learned)
	}
	middle := snapshot(t, w.e)
	same(t, w.e, store, middle)
	if g := mustStats(t, w.e).Guard; g.Held == 0 || g.WithoutSale < 500 {
		t.Errorf("%d rounds are held after %d decisions without a sale", g.Held, g.WithoutSale)
	}
	if needs := w.e.Needs(w.e.Sequence()); needs > a.Entry || needs < a.Since-200 {
		t.Errorf("the log is needed from entry %d on, with an alarm at %d", needs, a.Entry)
	}

	w.sells[0] = 0.5
	back := w.n
	for w.alarm() != nil && w.n < back+200 {
		w.goOn2(1)
	}
	if w.alarm() != nil {
		t.Fatalf("%d decisions after sales are back the alarm is %+v", w.n-back, w.alarm())
	}
	t.Logf("sales are back for %d decisions", w.n-back)
	now := w.learned() - learned
	closed := uint64(w.n - back) // about as many, as some are open and some were open before the outage
	if now+40 < closed || now > closed+60 {
		t.Errorf("after an outage of %d decisions and %d others the learner has learned %d rounds", back-3000, closed,
			now)
	}
	if s := mustStats(t, w.e); s.Skipped+s.Learned+uint64(s.Pending) != s.Decisions || s.Skipped < 400 ||
		s.Problem != "" {
		t.Errorf("of %d decisions %d are learned, %d open and %d skipped: %s", s.Decisions, s.Learned, s.Pending,
			s.Skipped, s.Problem)
	}
	same(t, w.e, store, middle)
	expect.Equal(t, w.e.Needs(w.e.Sequence()), math.MaxUint64, "after the alarm the log is needed from entry n on")
	w.goOn(500, 2)
	if a := w.alarm(); a != nil {
		t.Errorf("after the outage: %+v", a)
	}
	if more := w.learned() - learned - now; more < 400 {
		t.Errorf("after the outage %d of 500 rounds are learned", more)
	}
	same(t, w.e, store, middle)
	lawful(t, store)
}

// Reports that stall, and come later but within the attribution window, are learned, also of decisions without a sale
// too, also by a second learner. Decisions that expired meanwhile are skipped, and counted.
func TestStalledReports(t *testing.T) {
	for _, window := range []string{"24h", "40m"} {
		store := new(memlog.Store)
		e := guarded(t, store, showing{})
		put(t, e, "home", fmt.Sprintf(guardedShop, `,"attribution_window":"`+window+`"`))
		w := newTrade(t, e, 0.5)
		var stalled []string
		play := func(decisions int, stalls bool) {
			t.Helper()
			for range decisions {
				w.n, w.now = w.n+1, w.now+minute
				a := fatal.Or(e.Decide(t.Context(), "home", stock(fmt.Sprint("d", w.n), 1), w.now))(t)
				if stalled = append(stalled, a.Decision); !stalls {
					for _, id := range stalled {
						item := ""
						if w.rng.Float64() < 0.5 {
							item = itemID(0)
						}
						if err := e.Outcome(t.Context(), "home", id, item, w.now); err != nil &&
							!errors.Is(err, state.ErrLate) {
							t.Fatal(err)
						}
					}
					stalled = nil
				}
				fatal.Or(e.Expire(t.Context(), w.now))(t)
			}
		}
		play(1500, false)
		play(100, true)
		if a := w.alarm(); a == nil || a.Check != "no-sale" {
			t.Fatalf("%s: while reports stall the alarm is %+v", window, a)
		}
		middle := snapshot(t, e)
		play(100, false)
		wait(t, e)
		s := mustStats(t, e)
		if s.Guard.Alarm != nil || s.Learned+s.Skipped != s.Decisions || (s.Skipped > 0) != (window == "40m") ||
			s.Skipped > s.Expired {
			t.Errorf("%s: of %d decisions, %d of them expired, %d are learned and %d skipped, with the alarm %+v", window,
				s.Decisions, s.Expired, s.Learned, s.Skipped, s.Guard.Alarm)
		}
		same(t, e, store, middle)
		fatal.Or(e.Change(t.Context(), "home", []byte(strings.Replace(fmt.Sprintf(guardedShop,
			`,"attribution_window":"`+window+`"`), `{}`, `{"name":"another"}`, 1)), engine.Change{Relearn: true}, w.now))(t)
		wait(t, e)
		exchange(t, e)
		if now := mustStats(t, e); now.Learned != s.Learned || now.Skipped != s.Skipped {
			t.Errorf("%s: a second learner has learned %d rounds and skipped %d, the first one %d and %d", window,
				now.Learned, now.Skipped, s.Learned, s.Skipped)
		}
		same(t, e, store, middle)
	}
}

// An audit sees no sales. It knows neither of the alarm, which a learner waits for, nor raises one, and accepts the
// versions of an outage.
func TestAuditOfAnOutage(t *testing.T) {
	store := new(memlog.Store)
	e := guarded(t, store, showing{})
	put(t, e, "home", fmt.Sprintf(guardedShop, ""))
	w := newTrade(t, e, 0.5)
	w.goOn(3000, 2)
	keep := func(note string) uint64 {
		t.Helper()
		return fatal.Or(e.Keep(t.Context(), "home", note, w.now))(t)
	}
	good, healthy := keep("good"), snapshot(t, e)
	w.goOn(20, 2)
	w.sells[0] = 0
	w.goOn(200, 2)
	if w.alarm() == nil {
		t.Fatal("there is no alarm")
	}
	alarmed, bad := snapshot(t, e), keep("bad")
	w.goOn2(10)
	fatal.If(t, e.RollBack(t.Context(), "home", good, nil, w.now))
	fatal.If(t, e.RollBack(t.Context(), "home", bad, nil, w.now))
	w.sells[0] = 0.5
	w.goOn2(300)
	keep("later")
	for _, from := range [][]byte{nil, healthy, alarmed} {
		a := fatal.Or(engine.NewAudit(buildShowing(showing{}), from))(t)
		if faults := audited(t, a, store); faults != nil {
			t.Errorf("faults %q", faults)
		}
		a.Close()
	}
}

// The operator decides whether the learner learns the outage or not.
func TestClearedOutage(t *testing.T) {
	for _, all := range []bool{false, true} {
		w, store := outage(t, "")
		learned := w.learned()
		w.goOn2(300)
		middle := snapshot(t, w.e)
		held := mustStats(t, w.e).Guard.Held
		if err := w.e.ClearAlarm(t.Context(), "home", all, w.now); err != nil || w.alarm() != nil {
			t.Fatal(err, w.alarm())
		}
		now := w.learned() - learned
		if all && now != held || !all && now > held/4 {
			t.Errorf("all %v: %d of %d rounds that were held are learned", all, now, held)
		}
		if s := mustStats(t, w.e); s.Guard.Held != 0 {
			t.Errorf("%d rounds are still held", s.Guard.Held)
		}
		same(t, w.e, store, middle)
	}
}

// A placement may go on learning, and another configuration gives back what was held.
func TestLearningInAnOutage(t *testing.T) {
	w, store := outage(t, `,"learn_in_alarm":true`)
	learned := w.learned()
	w.goOn2(300)
	if w.alarm() == nil || w.learned() < learned+290 {
		t.Errorf("the learner has learned %d of 300 rounds, with the alarm %+v", w.learned()-learned, w.alarm())
	}
	same(t, w.e, store, nil)

	w, store = outage(t, "")
	learned = w.learned()
	w.goOn2(300)
	held := mustStats(t, w.e).Guard.Held
	put(t, w.e, "home", fmt.Sprintf(guardedShop, `,"learn_in_alarm":true`))
	if now := w.learned(); w.alarm() == nil || now != learned+held || held < 290 {
		t.Errorf("%d of %d rounds that were held are learned, with the alarm %+v", now-learned, held, w.alarm())
	}
	same(t, w.e, store, nil)
}

// During an experiment each learner gets back the rounds of the variants from which it learns.
func TestOutageInAnExperiment(t *testing.T) {
	store := new(memlog.Store)
	o := engine.Options{Store: store, Build: buildFixed}
	e := opened(t, o)
	put(t, e, "home", onTrial(fourVariants))
	s := newBoutique(t, e, 0.7, 0.6, 0.5, 0.4)
	s.serve(3000, 600)
	s.sells = make([]float64, 4)
	s.serve(200, 600)
	middle := snapshot(t, e)
	g := mustStats(t, e).Guard
	if g.Alarm == nil || g.Alarm.Check != "no-sale" || g.Held == 0 {
		t.Fatalf("after 200 decisions without a sale the guard is %+v", g)
	}
	s.serve(100, 600)
	fatal.If(t, e.ClearAlarm(t.Context(), "home", true, s.now))
	s.settle()
	for _, v := range s.report().Variants {
		if v.Learner != nil && *v.Learner.Learned != s.groups[v.Name].Rounds {
			t.Errorf("%s has learned %d rounds, want %d", v.Name, *v.Learner.Learned, s.groups[v.Name].Rounds)
		}
	}
	now := snapshot(t, e)
	for _, o.Snapshot = range [][]byte{nil, middle} {
		if !bytes.Equal(now, replayed(t, o)) {
			t.Error("a replay gives another state")
		}
	}
}

// The learner of a variant that is adopted during an alarm gets the rounds that were held.
func TestAdoptionInAnOutage(t *testing.T) {
	store := new(memlog.Store)
	o := engine.Options{Store: store, Build: buildFixed}
	e := opened(t, o)
	put(t, e, "home", onTrial(fourVariants))
	s := newBoutique(t, e, 0.7, 0.6, 0.5, 0.4)
	s.serve(3000, 600)
	for k := range s.sells {
		s.sells[k] /= 8
	}
	s.serve(300, 600)
	g := mustStats(t, e).Guard
	if g.Alarm == nil || g.Alarm.Check != "sales" || g.Held < 100 {
		t.Fatalf("after 300 decisions with few sales the guard is %+v", g)
	}
	o.Snapshot = snapshot(t, e)
	s.now += 40 * minute
	s.expire()
	fatal.Or(e.Put(t.Context(), "home", []byte(
		`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"1"}}`), s.now))(t)
	wait(t, e)
	if now := mustStats(t, e); now.Learned != s.groups["rival"].Rounds || now.Guard.Held != 0 {
		t.Errorf("the adopted learner has learned %d rounds of %d, and %d are held", now.Learned,
			s.groups["rival"].Rounds, now.Guard.Held)
	}
	replays(t, e, o)
	o.Snapshot = nil
	replays(t, e, o)
}

// noting counts the rounds that it has learned, and sums their choices.
type noting struct{ showing }

func (l *noting) Observe(r vitrine.Round) error {
	l.level += 1<<20 + float64(r.Choice)
	return nil
}

func (l *noting) Policy() vitrine.Policy { return &shows{0, 0} }

// A second learner learns what the first one has learned, and leaves out the rounds of an outage, whenever it begins, and
// however the alarm ends.
func TestRelearningWithOutages(t *testing.T) {
	const before, during, after = 0, 1, 2
	for _, ends := range []string{"by itself", "cleared", "cleared, to learn all", "roll back", "reset"} {
		for begins := before; begins <= after; begins++ {
			if begins < after && (ends == "roll back" || ends == "reset") {
				continue // which end the relearning
			}
			last := map[string]*noting{} // by policy
			build := func(s setup.Spec) (vitrine.Learner, error) {
				l := new(noting)
				last[string(s.Policy)] = l
				return l, nil
			}
			store := new(memlog.Store)
			o := engine.Options{Store: store, Build: build}
			e := opened(t, o)
			put(t, e, "home", fmt.Sprintf(guardedShop, ""))
			second := strings.Replace(fmt.Sprintf(guardedShop, ""), `{}`, `{"name":"another"}`, 1)
			w := newTrade(t, e, 0.5)
			relearnAt := func(at int) {
				if at == begins {
					fatal.Or(e.Change(t.Context(), "home", []byte(second), engine.Change{Relearn: true}, w.now))(t)
				}
			}
			w.goOn(1500, 2)
			relearnAt(before)
			w.sells[0] = 0
			w.goOn(200, 2)
			if w.alarm() == nil {
				t.Fatal("no alarm")
			}
			wait(t, e)
			kept := fatal.Or(e.Keep(t.Context(), "home", "in the outage", w.now))(t)
			first := last[`{}`]
			w.goOn2(150)
			relearnAt(during)
			w.goOn2(150)
			held := mustStats(t, e).Guard.Held
			o.Snapshot = snapshot(t, e)
			switch ends {
			case "by itself":
				w.sells[0] = 0.5
				for w.alarm() != nil {
					w.goOn2(1)
				}
			case "roll back":
				fatal.If(t, e.RollBack(t.Context(), "home", kept, nil, w.now))
				first = last[`{}`]
			case "reset":
				fatal.Or(e.Change(t.Context(), "home", []byte(strings.Replace(fmt.Sprintf(guardedShop, ""), `{}`,
					`{},"seed":2`, 1)), engine.Change{Reset: true}, w.now))(t)
			default:
				fatal.If(t, e.ClearAlarm(t.Context(), "home", ends != "cleared", w.now))
			}
			w.sells[0] = 0.5
			w.goOn2(100)
			relearnAt(after)
			w.goOn2(20)
			fatal.Or(e.Expire(t.Context(), w.now+31*minute))(t) // no sale waits
			wait(t, e)
			if held < 250 || last[`{"name":"another"}`].level != first.level && ends != "reset" {
				t.Errorf("%s, begun at %d: after an outage with %d rounds held the second learner has learned %d rounds "+
					"of %d, or others", ends, begins, held, mustStats(t, e).Relearning.Learned, mustStats(t, e).Learned)
			}
			if n := mustStats(t, e).Relearning.Learned; ends == "reset" && (n < 1500 || n > 1500+held) {
				t.Errorf("after a reset in an outage the second learner has learned %d rounds", n)
			}
			replays(t, e, o)
			exchange(t, e)
			replays(t, e, o)
			o.Snapshot = nil
			replays(t, e, o)
		}
	}
}

// A second learner does not take over in an outage, whose alarm would end: it waits until the alarm has ended, and has
// learned what was held back by then.
func TestExchangeAfterAnOutage(t *testing.T) {
	for _, ends := range []string{"by itself", "cleared"} {
		w, store := outage(t, "")
		w.goOn2(300)
		fatal.Or(w.e.Change(t.Context(), "home", []byte(strings.Replace(fmt.Sprintf(guardedShop, ""), `{}`,
			`{"name":"another"}`, 1)), engine.Change{Relearn: true}, w.now))(t)
		w.goOn2(300)
		if done, ended, err := w.e.Exchange(t.Context(), w.now); done != nil || ended != nil || err != nil ||
			w.alarm() == nil {
			t.Errorf("%s: in an outage: exchanged %q, ended %q, %v, with the alarm %+v", ends, done, ended, err,
				w.alarm())
		}
		wait(t, w.e)
		is(t, "accepting in an outage", failed(w.e.Change(t.Context(), "home", []byte(strings.Replace(fmt.Sprintf(guardedShop,
			""), `{}`, `{"name":"another"}`, 1)), engine.Change{Accept: true}, w.now)), engine.ErrNotReady)
		if ends == "cleared" {
			fatal.If(t, w.e.ClearAlarm(t.Context(), "home", false, w.now))
		} else {
			for w.sells[0] = 0.5; w.alarm() != nil; {
				w.goOn2(1)
			}
		}
		first, to := w.learned(), w.e.Sequence()
		if r := mustStats(t, w.e).Relearning; r.Learned < first-20 || r.Learned > first+20 || r.To+10 < to {
			t.Errorf("%s: at entry %d the second learner has learned %d rounds up to entry %d, and the first one %d",
				ends, to, r.Learned, r.To, first)
		}
		exchange(t, w.e)
		same(t, w.e, store, nil)
	}
}
