package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// Before an experiment starts and after it ends, requests need no shopper and no baseline, get the pages that the
// experiment names, and do not count. While it runs it divides the shoppers, and its results stay after its end.
func TestSchedule(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildFixed})
	const begin = int64(1e18)
	at := func(minutes int64) string { return time.Unix(0, begin+minutes*minute).UTC().Format(time.RFC3339Nano) }
	config := func(more string) string {
		return onTrial(fmt.Sprintf(`{"name":"x","starts":%q,"ends":%q,%s"variants":[{"name":"shop","show":"baseline","share":0.5},{"name":"ours","show":"policy","share":0.5}]}`, at(100), at(200), more))
	}
	put(t, e, "home", config(""))
	ask := func(id string, minutes int64, shopper string, baseline []string) (string, string, error) {
		t.Helper()
		r := stock(id, 2)
		r.ShopperID, r.Baseline = shopper, baseline
		a, err := e.Decide(t.Context(), "home", r, begin+minutes*minute)
		if err != nil {
			return "", "", err
		}
		return a.Variant, a.IDs()[0], nil
	}
	count := map[string]int{}
	for k := range int64(300) {
		id := fmt.Sprint("d", k)
		if k >= 100 && k < 200 {
			expect.Refused(ask(id, k, "", nil))(fatal.T(t), "at minute", k, "a request needs no shopper")
			variant, item, err := ask(id, k, id, []string{itemID(1)})
			if err != nil || variant == "" || (item == itemID(1)) != (variant == "shop") {
				t.Fatalf("at minute %d variant %q shows %s, %v", k, variant, item, err)
			}
			count[variant]++
		} else if variant, item, err := ask(id, k, "", nil); err != nil || variant != "" || item != itemID(0) {
			t.Fatalf("at minute %d variant %q shows %s, %v", k, variant, item, err)
		}
		fatal.Or(e.Expire(t.Context(), begin+k*minute))(t)
	}
	r := fatal.Or(e.Experiments("home"))(t).Experiment
	if r.Decisions != 100 || r.Variants[0].Made != uint64(count["shop"]) ||
		r.Variants[1].Made != uint64(count["ours"]) || r.Starts.UnixNano() != begin+100*minute ||
		r.Ends.UnixNano() != begin+200*minute {
		t.Errorf("%d decisions count, %v: %+v", r.Decisions, count, r.Variants)
	}
	restarted := opened(t, engine.Options{Store: store, Build: buildFixed, Snapshot: snapshot(t, e)})
	expect.Equal(t, fatal.Or(restarted.Experiments("home"))(t).Experiment.Decisions, r.Decisions,
		"decisions count after a restart")

	put(t, e, "home", config(`"outside":"baseline",`))
	expect.Refused(ask("late", 310, "", nil))(t, "after the end a request needs no baseline, which is shown")
	if variant, item, err := ask("late", 310, "", []string{itemID(1)}); err != nil || variant != "" ||
		item != itemID(1) {
		t.Errorf("after the end variant %q shows %s, %v", variant, item, err)
	}
	open := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, open, "home", strings.Replace(config(`"outside":"baseline",`), `"show":"baseline"`, `"show":"uniform"`, 1))
	for minutes := range int64(3) { // before, while it runs and after
		r := stock("", 2)
		r.ShopperID = "me"
		_, err := open.Decide(t.Context(), "home", r, begin+(50+100*minutes)*minute)
		isInvalid(t, "no page", err, "/baseline: is missing: your own page is shown before the experiment starts and after it ends")
	}
	for what, bad := range map[string]string{
		"/experiment/ends":    `{"name":"y","starts":"2026-01-02T00:00:00Z","ends":"2026-01-02T00:00:00Z","variants":[{"name":"a","show":"uniform","share":0.5},{"name":"b","show":"policy","share":0.5}]}`,
		"/experiment/outside": `{"name":"y","outside":"policy","variants":[{"name":"a","show":"uniform","share":0.5},{"name":"b","show":"policy","share":0.5}]}`,
	} {
		_, err := e.Put(t.Context(), "home", []byte(onTrial(bad)), begin+400*minute)
		isInvalid(t, what, err, what)
	}
}

// An experiment's segments are the values of a shopper's category, from the rows in the log, after a restart too.
func TestSegmentsOfShoppers(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildFixed})
	const config = `{"max_size":1,"features":[{"name":"x","kind":"number"},{"name":"device","kind":"category","from":"shopper","values":["phone","desktop"],"allow_other":true}],"policy":{"name":"0"},"mode":"experiment","attribution_window":"30m","experiment":{"name":"x","segment_by":%q,"variants":[{"name":"a","show":"uniform","share":0.5},{"name":"b","show":"policy","share":0.5}]}}`
	_, err := e.Put(t.Context(), "home", fmt.Appendf(nil, config, "x"), 1e18)
	isInvalid(t, "a feature of items", err, "/experiment/segment_by")
	put(t, e, "home", fmt.Sprintf(config, "device"))
	devices := []string{"phone", "phone", "desktop", "watch"}
	now := int64(1e18)
	for k := range 80 {
		now += minute
		r := stock(fmt.Sprint("d", k), 2)
		r.ShopperID, r.User = r.Decision, api.Values{api.Text("device", devices[k%4])}
		a := fatal.Or(e.Decide(t.Context(), "home", r, now))(t)
		if k%4 == 2 {
			fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, a.IDs()[0], now))
		}
		if k == 50 {
			e = opened(t, engine.Options{Store: store, Build: buildFixed, Snapshot: snapshot(t, e)})
		}
		fatal.Or(e.Expire(t.Context(), now))(t)
	}
	fatal.Or(e.Expire(t.Context(), now+40*minute))(t)
	r := fatal.Or(e.Experiments("home"))(t).Experiment
	for k, want := range []struct {
		value             string
		rounds, purchases uint64
	}{{"phone", 40, 0}, {"desktop", 20, 20}, {"", 20, 0}} {
		expect.Equal(fatal.T(t), len(r.Segments), 3, r.Segments)
		var sum api.Totals
		for _, v := range r.Segments[k].Variants {
			sum.Add(&v.Group)
		}
		if s := r.Segments[k]; s.Value != want.value || sum.Rounds > want.rounds || sum.Rounds+4 < want.rounds ||
			sum.Purchases > want.purchases || sum.Purchases+2 < want.purchases {
			t.Errorf("segment %d is %+v, want %+v", k, s, want)
		}
	}
}
