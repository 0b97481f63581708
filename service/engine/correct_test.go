package engine_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
)

const halfHour = 30 * minute

// ended plays a placement that draws half of its sets by chance. Every decision has ended when it returns: sales, of
// every third decision, were reported in time, or they are still to be reported.
func ended(t *testing.T, inTime bool) (e *engine.Engine, store *memlog.Store, sales map[string]string) {
	store = new(memlog.Store)
	e = opened(t, engine.Options{Store: store, Build: buildFixed})
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"},"mode":"explore","explore_share":0.5,"attribution_window":"30m"}`)
	sales = map[string]string{}
	for k := range 60 {
		r := stock(fmt.Sprint("d", k), 3)
		for i := range r.Items {
			r.Items[i].Revenue = new(1 + float64(i))
		}
		r.Defer = k%5 == 0
		now := int64(k) * int64(time.Second)
		a := decide(t, e, "home", r, now)
		if k%3 == 0 {
			sales[r.Decision] = a.IDs()[0]
			if inTime {
				is(t, "a sale", e.Outcome(t.Context(), "home", r.Decision, a.IDs()[0], now), nil)
			}
		} else if inTime && r.Defer { // it was shown, as the others
			is(t, "no sale", e.Outcome(t.Context(), "home", r.Decision, "", now), nil)
		}
	}
	fatal.Or(e.Expire(t.Context(), 2*halfHour))(t)
	wait(t, e)
	return e, store, sales
}

// earned sums a placement's earnings.
type earned struct {
	ByPolicy, ByChance, Items, Positions, Policy, Chance, Recent any
}

func earningsOf(t *testing.T, e *engine.Engine, now int64) earned {
	t.Helper()
	s := fatal.Or(e.Stats("home"))(t)
	x := fatal.Or(e.Insight(t.Context(), "home", now))(t)
	series := fatal.Or(e.Series("home", now, 0, 1000))(t)
	recent := fatal.Or(e.Recent("home", now, 0))(t)
	items := slices.Clone(x.Items)
	slices.SortFunc(items, func(a, b api.ItemInsight) int { return len(a.ID) - len(b.ID) })
	byID := map[string][3]float64{}
	for _, i := range items {
		byID[i.ID] = [3]float64{float64(i.Shown), float64(i.Taken), i.Revenue}
	}
	return earned{
		ByPolicy: s.ByPolicy, ByChance: s.ByChance, Items: byID,
		Positions: [2]uint64{x.Positions[0].Shown, x.Positions[0].Taken}, Policy: series.Policy, Chance: series.Chance,
		Recent: recent.Policy,
	}
}

// A sale counts whenever it comes: the sums are the same as for sales in time, by policy, by chance, by item
// and over time. The learner ignores it.
func TestLateSalesCount(t *testing.T) {
	punctual, _, sales := ended(t, true)
	tardy, store, same := ended(t, false)
	if len(sales) != 20 || !cmp.Equal(sales, same) {
		t.Fatal(sales, same)
	}
	before := fatal.Or(tardy.Stats("home"))(t)
	const now = 40 * 24 * 60 * minute
	for k := range 60 {
		id := fmt.Sprint("d", k)
		switch item := sales[id]; {
		case item != "":
			for range 2 { // as it is sent again
				is(t, "a late sale", tardy.Outcome(t.Context(), "home", id, item, now), engine.ErrLate)
			}
			is(t, "and another outcome", tardy.Outcome(t.Context(), "home", id, "", now), engine.ErrConflict)
		case k%5 == 0: // a withdrawn one, with an unknown sale
			is(t, "a late outcome", tardy.Outcome(t.Context(), "home", id, "", now), engine.ErrLate)
		}
	}
	wait(t, tardy)
	expect.Equal(t, earningsOf(t, tardy, now), earningsOf(t, punctual, now), "earned (-in time +late")
	s, err := tardy.Stats("home")
	if err != nil || s.Learned != before.Learned || s.PolicyEntry != before.PolicyEntry || s.Late != 28 ||
		s.Expired != before.Expired || s.Withdrawn != 12 {
		t.Errorf("%+v, %v, it was %+v", s, err, before)
	}
	if !cmp.Equal(s.Guard, before.Guard) || !cmp.Equal(s.Calibration, before.Calibration) {
		t.Errorf("the guard or the calibration has changed: %+v", s)
	}
	d, err := tardy.Decision(t.Context(), "home", "d3")
	if err != nil || d.Status != "late" || d.Choice != sales["d3"] ||
		d.Earned != 1+float64(d.Choice[len(d.Choice)-1]-'0') {
		t.Errorf("%+v, %v", d, err)
	}
	live := snapshot(t, tardy)
	for what, from := range map[string][]byte{"a replay": nil, "the snapshot": live} {
		if string(replayed(t, engine.Options{Store: store, Build: buildFixed, Snapshot: from})) != string(live) {
			t.Errorf("%s has another state", what)
		}
	}
	audit := fatal.Or(engine.NewAudit(buildFixed, nil))(t)
	defer audit.Close()
	for entry, err := range store.Entries(t.Context(), 1) {
		if _, bad := audit.Entry(entry); bad != nil || err != nil {
			t.Error(bad, err)
		}
	}
}

// Returns and refunds change a decision's earnings, once for each id of the caller's, and a sale can be withdrawn. The
// numbers are by hand: the shop sells d0, d3, …, at the prices shown.
func TestCorrections(t *testing.T) {
	e, store, sales := ended(t, true)
	const now = 2 * halfHour
	total := func() (revenue, squares float64, purchases uint64) {
		t.Helper()
		s := fatal.Or(e.Stats("home"))(t)
		a, b := s.ByPolicy, s.ByChance
		return a.Revenue + b.Revenue, a.Squares + b.Squares, a.Purchases + b.Purchases
	}
	revenue, squares, purchases := total()
	check := func(what string, value, square float64, taken int) {
		t.Helper()
		r, s, p := total()
		if r != revenue+value || s != squares+square || int(p) != int(purchases)+taken {
			t.Errorf("%s: earned %v, squares %v, %d sales, want %v, %v, %d", what, r, s, p, revenue+value,
				squares+square, int(purchases)+taken)
		}
	}
	correct := func(id, correction, item string, value *float64) error {
		return e.Correct(t.Context(), "home", id, api.Correction{ID: correction, Item: item, Value: value}, now)
	}
	price := func(id string) float64 { return 1 + float64(sales[id][len(sales[id])-1]-'0') }
	p, q := price("d0"), price("d3")
	for range 2 {
		is(t, "a refund", correct("d0", "refund", sales["d0"], new(-0.5)), nil)
	}
	square := (p-0.5)*(p-0.5) - p*p
	check("a refund", -0.5, square, 0)
	is(t, "another one of that id", correct("d0", "refund", sales["d0"], new(-0.25)), engine.ErrConflict)
	is(t, "the sale, as that id", correct("d0", "refund", sales["d0"], nil), engine.ErrConflict)
	is(t, "a return that costs more than the sale", correct("d0", "return", sales["d0"], new(-p)), nil)
	square = 0.25 - p*p
	check("a return", -0.5-p, square, 0)
	if d, err := e.Decision(t.Context(), "home", "d0"); err != nil || d.Earned != -0.5 || len(d.Corrections) != 2 ||
		*d.Corrections[1].Value != -p || d.Status != "chosen" {
		t.Errorf("%+v, %v", d, err)
	}
	for range 2 {
		is(t, "a sale that was none", correct("d3", "mistake", sales["d3"], nil), nil)
	}
	check("a sale that was none", -0.5-p-q, square-q*q, -1)
	is(t, "more of it", correct("d3", "more", sales["d3"], new(1.0)), engine.ErrConflict)
	is(t, "a decision without a sale", correct("d1", "return", itemOf(t, e, "d1"), new(-1.0)), engine.ErrConflict)
	is(t, "an item that was not shown", correct("d0", "other", "sku99", new(-1.0)), engine.ErrNotShown)
	is(t, "no id", correct("d0", "", sales["d0"], new(-1.0)), api.ErrInvalid)
	is(t, "no number", correct("d0", "nan", sales["d0"], new(math.NaN())), api.ErrInvalid)
	is(t, "no decision", correct("x", "x", "sku0", nil), engine.ErrNotFound)
	decide(t, e, "home", stock("open", 3), now)
	is(t, "an open decision", correct("open", "early", itemOf(t, e, "open"), nil), engine.ErrConflict)
	for k := range 98 {
		is(t, "many", correct("d0", fmt.Sprint("c", k), sales["d0"], new(0.0)), nil)
	}
	is(t, "too many", correct("d0", "more", sales["d0"], new(1.0)), engine.ErrConflict)
	check("all", -0.5-p-q, square-q*q, -1)

	s, err := e.Stats("home")
	if err != nil || s.Corrected != 101 {
		t.Errorf("%+v, %v", s, err)
	}
	live := snapshot(t, e)
	for what, from := range map[string][]byte{"a replay": nil, "the snapshot": live} {
		again := opened(t, engine.Options{Store: store, Build: buildFixed, Snapshot: from})
		if string(snapshot(t, again)) != string(live) {
			t.Errorf("%s has another state", what)
		}
		if r, err := again.Stats("home"); err != nil || r.Memory != s.Memory {
			t.Errorf("%s: %d bytes are remembered, %v, want %d", what, r.Memory, err, s.Memory)
		}
		for _, id := range []string{"d0", "d3"} {
			mine, _ := e.Decision(t.Context(), "home", id)
			its, err := again.Decision(t.Context(), "home", id)
			if diff := cmp.Diff(mine, its); diff != "" || err != nil {
				t.Errorf("%s of %s: %v\n%s", id, what, err, diff)
			}
		}
	}
}

// A log in which a sale is withdrawn twice is refused: no snapshot of it could be read.
func TestASaleIsWithdrawnOnce(t *testing.T) {
	e, store, sales := ended(t, true)
	is(t, "no sale", e.Correct(t.Context(), "home", "d0", api.Correction{ID: "one", Item: sales["d0"]}, 2*halfHour), nil)
	var last eventlog.Event
	for event := range events(t, store) {
		last = event
	}
	e.Close()
	again := *last.Body.(*eventlog.Corrected)
	again.Correction, again.Before, again.Value = "two", 0, 0
	last.Body = &again
	fatal.Or(store.Append(t.Context(), fatal.Or(last.Encode(nil))(t)))(t)
	expect.Part(engine.Open(t.Context(), engine.Options{Store: store, Build: buildFixed}))(t,
		`decision "d0" is chosen with item`, "opening it")
}

// itemOf returns the item that a decision shows.
func itemOf(t *testing.T, e *engine.Engine, id string) string {
	t.Helper()
	d := fatal.Or(e.Decision(t.Context(), "home", id))(t)
	return d.Offer.IDs()[0]
}

// A forgotten decision cannot be corrected, and the error and the statistics say since when decisions are remembered.
// Corrections take memory themselves.
func TestForgottenMoney(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", small)
	for k := range 100 {
		id := fmt.Sprint("d", k)
		now := int64(k) * int64(time.Second)
		decide(t, e, "home", stock(id, 1), now)
		is(t, "a sale", e.Outcome(t.Context(), "home", id, "sku0", now), nil)
	}
	s, err := e.Stats("home")
	if err != nil || s.RememberedSince == nil {
		t.Fatal(s, err)
	}
	first := int(s.RememberedSince.Unix())
	if first < 10 || first > 90 {
		t.Fatalf("decisions are remembered since %v", s.RememberedSince)
	}
	forgotten := e.Correct(t.Context(), "home", fmt.Sprint("d", first-1), api.Correction{ID: "c", Item: "sku0"}, 0)
	is(t, "a forgotten one", forgotten, engine.ErrNotFound)
	expect.Equal(t, forgotten.Error(),
		fmt.Sprintf(`decision "d%d": not found: the placement has forgotten decisions of before %s: to remember them longer, give it more memory, or the log a longer [retention]`, first-1, s.RememberedSince.Format(time.RFC3339)), forgotten)
	for k := range 20 {
		is(t, "the last one", e.Correct(t.Context(), "home", "d99", api.Correction{ID: fmt.Sprint("c", k), Item: "sku0",
			Value: new(-0.01)}, 0), nil)
	}
	if after, err := e.Stats("home"); err != nil || !after.RememberedSince.After(*s.RememberedSince) ||
		after.Memory > 12000 {
		t.Errorf("decisions are remembered since %v, %v, with %d bytes", after.RememberedSince, err, after.Memory)
	}
	replays(t, e, engine.Options{Store: store, Build: buildToy})
}

// Decisions whose entries were removed from the log are forgotten as well.
func TestMoneyOfRemovedEntries(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}]}`)
	var from uint64
	for k := range 20 {
		if k == 10 {
			from = e.Sequence() + 1
		}
		id, now := fmt.Sprint("d", k), int64(k)*int64(time.Second)
		decide(t, e, "home", stock(id, 1), now)
		is(t, "a sale", e.Outcome(t.Context(), "home", id, "sku0", now), nil)
	}
	if s := fatal.Or(e.StatsNow(t.Context(), "home"))(t); s.RememberedSince != nil {
		t.Errorf("decisions are remembered since %v", s.RememberedSince)
	}
	fatal.If(t, store.TruncateBefore(t.Context(), from))
	forgotten := e.Correct(t.Context(), "home", "d9", api.Correction{ID: "c", Item: "sku0"}, 0)
	is(t, "a forgotten one", forgotten, engine.ErrNotFound)
	if !strings.Contains(forgotten.Error(), "has forgotten decisions of before 1970-01-01T00:00:10Z") {
		t.Error(forgotten)
	}
	is(t, "the first that is left", e.Correct(t.Context(), "home", "d10", api.Correction{ID: "c", Item: "sku0"}, 0), nil)
	is(t, "an earlier one", e.Correct(t.Context(), "home", "d3", api.Correction{ID: "c", Item: "sku0"}, 0), engine.ErrNotFound)
	s := fatal.Or(e.StatsNow(t.Context(), "home"))(t)
	expect.Equal(t, *s.RememberedSince, time.Unix(10, 0).UTC())
}

// askedLog counts how often it is asked for its extent. If answer is set, it returns its error.
type askedLog struct {
	*memlog.Store
	asked  atomic.Int64
	answer func(context.Context) error
}

func (a *askedLog) Extent(ctx context.Context) (eventlog.Extent, error) {
	a.asked.Add(1)
	if a.answer != nil {
		if err := a.answer(ctx); err != nil {
			return eventlog.Extent{}, err
		}
	}
	return a.Store.Extent(ctx)
}

// If the log does not answer the question for its first entry, all who need it get the error of one question, which does
// not take long and does not end with the caller that asked.
func TestFirstEntryUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &askedLog{Store: new(memlog.Store)}
		e := opened(t, engine.Options{Store: store, Build: buildToy})
		put(t, e, "home", toys)
		store.answer = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		store.asked.Store(0)
		begin := time.Now()
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var callers sync.WaitGroup
		for k := range 10 {
			callers.Go(func() {
				ctx := t.Context()
				if k == 0 {
					ctx = brief
				}
				err := errOf(e.StatsNow(ctx, "home"))
				if k%2 == 1 {
					_, err = e.Explain(ctx, "home", "x", 0, nil)
				}
				is(t, "an answer", err, engine.ErrUnread)
			})
			synctest.Wait()
		}
		is(t, "in a hurry", errOf(e.StatsNow(brief, "home")), context.DeadlineExceeded)
		callers.Wait()
		is(t, "a later one", errOf(e.StatsNow(t.Context(), "home")), engine.ErrUnread)
		if n, took := store.asked.Load(), time.Since(begin); n != 1 || took != 2*time.Second {
			t.Errorf("the log was asked %d times, and the answers took %v", n, took)
		}
		store.answer = nil
		time.Sleep(time.Second)
		is(t, "with the log", errOf(e.StatsNow(t.Context(), "home")), nil)
	})
}

// Unknown ids and statistics ask the log for its first entry at most once a second, and then learn of removed entries.
func TestUnknownIDsAskRarely(t *testing.T) {
	store := &askedLog{Store: new(memlog.Store)}
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", toys)
	one(t, e, "home", "first", 1)
	end := e.Sequence()
	one(t, e, "home", "second", 1)
	store.asked.Store(0)
	began := time.Now()
	for k := range 50 {
		is(t, "an unknown one", e.Activate(t.Context(), "home", fmt.Sprint("x", k), 0), engine.ErrNotFound)
		_, err := e.Explain(t.Context(), "home", "y", 0, nil)
		is(t, "an unknown one", err, engine.ErrNotFound)
		fatal.Or(e.StatsNow(t.Context(), "home"))(t)
	}
	if n, most := store.asked.Load(), 1+int64(time.Since(began)/time.Second); n == 0 || n > most {
		t.Errorf("the log was asked %d times, at most %d may be", n, most)
	}
	fatal.If(t, store.TruncateBefore(t.Context(), end+1))
	for fatal.Or(e.StatsNow(t.Context(), "home"))(t).RememberedSince == nil {
		time.Sleep(time.Millisecond)
	}
}

// A correction counts even if a decision of the same commit makes the placement forget the one that it corrects.
func TestCorrectionOfWhatTheCommitForgets(t *testing.T) {
	hold, reached := make(chan struct{}), make(chan struct{}, 3)
	var held atomic.Bool
	store := &faultyStore{fails: func(int64) error {
		if held.Load() {
			reached <- struct{}{}
			<-hold
		}
		return nil
	}}
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", small)
	for k := range 100 {
		one(t, e, "home", fmt.Sprintf("d%03d", k), 0)
	}
	forgotten, item := "", "" // the first decision of the next commit takes the place of the oldest one, the second one that of the next
	for k := 0; item == ""; k++ {
		if _, err := e.Decision(t.Context(), "home", fmt.Sprintf("d%03d", k)); err == nil {
			forgotten = fmt.Sprintf("d%03d", k+1)
			item = itemOf(t, e, forgotten)
		}
	}
	before, err := e.Stats("home")
	fatal.If(t, err)
	errs := make(chan error)
	now := int64(0)
	waiting := func(n int) { // for the log, besides what is appended
		for {
			now += int64(time.Minute)
			if x, err := e.Insight(t.Context(), "home", now); err != nil || x.Waiting == n {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	held.Store(true)
	for n, propose := range []func() error{
		func() error { _, err := e.Decide(t.Context(), "home", stock("d100", 1), 0); return err },
		func() error { _, err := e.Decide(t.Context(), "home", stock("d101", 1), 0); return err },
		func() error {
			return e.Correct(t.Context(), "home", forgotten, api.Correction{ID: "return", Item: item, Value: new(-1.0)},
				0)
		},
	} {
		go func() { errs <- propose() }()
		if n == 0 {
			<-reached
		}
		waiting(n)
	}
	close(hold)
	for range 3 {
		is(t, "a proposal", <-errs, nil)
	}
	_, err = e.Decision(t.Context(), "home", forgotten)
	is(t, forgotten, err, engine.ErrNotFound)
	if s, err := e.Stats("home"); err != nil || s.Corrected != 1 || s.ByPolicy.Revenue != before.ByPolicy.Revenue-1 {
		t.Errorf("%+v, %v", s, err)
	}
	replays(t, e, engine.Options{Store: store, Build: buildToy})
}

// Late money does not enter the comparison of variants, whichever variant it belongs to and whether its cohort was
// complete: the report lists it next to each variant. The last decision is from before the experiment.
func TestLateMoneyOfVariants(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"},"attribution_window":"30m"}`)
	decide(t, e, "home", stock("before", 3), 0)
	put(t, e, "home", onTrial(fourVariants))
	s := newBoutique(t, e, 0.5, 0.5, 0.5)
	s.now = 0
	s.serve(200, 50)
	s.settle()
	s.serve(20, 50) // with incomplete cohorts
	s.now += 31 * minute
	s.expire()
	before := s.report()
	later := map[string]float64{}
	for k := range 221 {
		id := fmt.Sprint("d", k+1)
		d := fatal.Or(e.Decision(t.Context(), "home", id))(t)
		value := 2.0
		switch {
		case d.Status == "expired" && k%2 == 0:
			is(t, "a late sale", e.Outcome(t.Context(), "home", id, d.Offer.IDs()[0], s.now), engine.ErrLate)
		case d.Status == "chosen" && k%2 == 0:
			value = -2
			is(t, "a return", e.Correct(t.Context(), "home", id, api.Correction{ID: "return", Item: d.Choice,
				Value: &value}, s.now), nil)
		default:
			continue
		}
		later[d.Offer.Variant] += value
	}
	is(t, "a late sale of before", e.Outcome(t.Context(), "home", "before", itemOf(t, e, "before"), s.now),
		engine.ErrLate)
	after := s.report()
	seen := 0
	for _, v := range append(slices.Clone(after.Variants), fatal.Or(e.Experiments("home"))(t).Holdout.Variants[1]) {
		if v.Later != later[v.Name] {
			t.Errorf("%s earned %v later, want %v", v.Name, v.Later, later[v.Name])
		}
		if v.Later != 0 {
			seen++
		}
	}
	if seen < 4 {
		t.Errorf("%v proves little", later)
	}
	for i := range after.Variants {
		after.Variants[i].Later = 0
	}
	expect.Equal(t, after, before, "the report has changed")
}
