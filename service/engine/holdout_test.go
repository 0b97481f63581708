package engine_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
)

const holding = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"},"attribution_window":"30m","learn_in_alarm":true,"holdout_share":%v}`

// The same shoppers are held out before, during and after an experiment; a larger share adds some. They always see the
// caller's page, and the gain over them is the first one throughout.
func TestHoldout(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildFixed})
	put(t, e, "home", fmt.Sprintf(holding, 0.2))
	s := newBoutique(t, e, 0.6, 0.1, 0.1, 0.1)
	held := func() map[string]bool {
		list := map[string]bool{}
		for unit, v := range s.variants {
			list[unit] = v == api.Holdout
		}
		clear(s.variants)
		return list
	}
	s.serve(800, 300)
	first := held()
	if g := fatal.Or(e.Stats("home"))(t).Gains; len(g) != 1 || g[0].Over != api.Holdout || !g[0].Randomized ||
		g[0].PerDecision.Low <= 0 || g[0].PerDecision.High < 1 || math.Abs(g[0].PerDecision.Estimate-1) > 0.4 {
		t.Errorf("the gains are %+v, want about 2·(0.6 − 0.1)", g)
	}
	middle := snapshot(t, e)
	fatal.Or(e.Put(t.Context(), "home", []byte(strings.Replace(onTrial(fourVariants), `"holdout_share":0.1`,
		`"holdout_share":0.2,"learn_in_alarm":true`, 1)), s.now))(t)
	s.serve(800, 300)
	g := fatal.Or(e.Stats("home"))(t).Gains
	if len(g) != 4 || g[0].Over != api.Holdout || g[0].Variant != "" || g[1].Over != "shop" {
		t.Errorf("during an experiment the gains are %+v", g)
	}
	all := fatal.Or(e.Experiments("home"))(t)
	if h := all.Holdout; h.Variants[0].Group.Rounds != g[0].Decisions || len(h.Phases) != 1 || h.Ratio.Mismatch ||
		h.Ratio.Units == 0 || all.Experiment.Decisions >= h.Variants[0].Group.Rounds {
		t.Errorf("the hold-out's report is %+v", h)
	}
	for unit, is := range held() {
		if was, known := first[unit]; known && was != is {
			t.Errorf("%s moves when an experiment begins", unit)
		}
		first[unit] = is
	}
	fatal.Or(e.Change(t.Context(), "home", fmt.Appendf(nil, holding, 0.4), engine.Change{Reset: true}, s.now))(t)
	s.serve(800, 300)
	last, added := held(), 0
	for unit, is := range last {
		switch was, known := first[unit]; {
		case known && was && !is:
			t.Errorf("%s is not held out any more", unit)
		case known && is && !was:
			added++
		}
	}
	if added < 30 || added > 90 { // of about 300
		t.Errorf("a share of 0.4 after 0.2 adds %d shoppers", added)
	}
	s.settle()
	h := fatal.Or(e.Experiments("home"))(t).Holdout
	if len(h.Phases) != 2 || math.Abs(h.Phases[1].Moved-0.2) > 1e-9 || h.Verdict.Result != api.Ship ||
		h.Verdict.Variant != api.NotHeldOut {
		t.Errorf("after the change: %+v", h)
	}
	for share, window := range map[string]string{"0": "30m", "0.4": "20m", "0.3": "30m"} {
		config := strings.NewReplacer("%v", share, "30m", window).Replace(holding)
		v := fatal.Or(e.Preview(t.Context(), "home", []byte(config), engine.Change{}, 1e18))(t)
		warning := "the comparison with shoppers held out since 1970-01-01 "
		if ends := strings.Contains(strings.Join(v.Placement.Warnings, "\n"), warning); ends != (share != "0.3") {
			t.Errorf("a share of %s and a window of %s: %q", share, window, v.Placement.Warnings)
		}
	}
	for unit, is := range last {
		r := stock("of-"+unit, 4)
		r.ShopperID, r.Baseline = unit, []string{"sku3"}
		o := decide(t, e, "home", r, s.now)
		if held := o.Mode == offer.ByBaseline && o.IDs()[0] == "sku3"; held != is || (o.Variant == api.Holdout) != is {
			t.Errorf("%s is shown %q of %q", unit, o.IDs(), o.Variant)
		}
		if x := fatal.Or(e.Explain(t.Context(), "home", o.Decision, s.now, nil))(t); x.Policy != "0" ||
			strings.Contains(strings.Join(x.Unknown, " "), "has ended") {
			t.Errorf("%s is explained by %+v", unit, x)
		}
	}
	now := snapshot(t, e)
	for name, from := range map[string][]byte{"the beginning": nil, "the middle": middle, "now": now} {
		if again := replayed(t, engine.Options{Store: store, Build: buildFixed, Snapshot: from}); string(
			again) != string(now) {
			t.Errorf("a replay from %s on gives another state", name)
		}
	}
	fatal.Or(e.Put(t.Context(), "home", fmt.Appendf(nil, holding, 0.2), s.now))(t)
	s.serve(400, 300)
	for unit, is := range held() {
		if was, known := first[unit]; known && was != is {
			t.Errorf("with the former share %s is held out: %v", unit, is)
		}
	}
	for _, window := range []string{"30m", "20m"} { // the version of the former seed has 30m
		config := strings.NewReplacer("%v}", `0.2,"seed":7}`, "30m", window).Replace(holding)
		fatal.Or(e.Change(t.Context(), "home", []byte(config), engine.Change{Reset: true}, s.now))(t)
		s.serve(400, 300)
		w := strings.Join(fatal.Or(e.Versions("home", s.now))(t)[0].Warnings, "")
		if strings.Contains(w, "held out since") != (window == "20m") {
			t.Errorf("a roll back from a window of %s warns %q", window, w)
		}
	}
	fatal.Or(e.Change(t.Context(), "home", fmt.Appendf(nil, holding, 0), engine.Change{Reset: true}, s.now))(t)
	if all := fatal.Or(e.Experiments("home"))(t); all.Holdout != nil {
		t.Errorf("without a hold-out: %+v", all.Holdout)
	}
}

// A hold-out needs the shopper's id and the caller's page. Other names of shoppers, and another window, begin
// its sums again.
func TestHoldoutNeeds(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", fmt.Sprintf(holding, 0.5))
	r := stock("a", 2)
	_, err := e.Decide(t.Context(), "home", r, 0)
	isInvalid(t, "no shopper", err, "/shopper_id: is missing: the placement always shows your own page to some shoppers")
	r.ShopperID = "someone"
	_, err = e.Decide(t.Context(), "home", r, 0)
	isInvalid(t, "no page", err, "/baseline: is missing: the placement always shows your own page to some shoppers")
	if _, _, err := try(t.Context(), e, "home", stock("", 2), 0); err != nil {
		t.Errorf("a trial: %v", err)
	}
	r.Baseline = []string{"sku1"}
	decide(t, e, "home", r, 0)
	begun := func() uint64 { return fatal.Or(e.Experiments("home"))(t).Holdout.Number }
	first := begun()
	put(t, e, "home", strings.Replace(fmt.Sprintf(holding, 0.5), "}],", `}],"max_versions":3,`, 1))
	expect.Equal(t, begun(), first, "another setting begins the hold-out again")
	put(t, e, "home", strings.Replace(fmt.Sprintf(holding, 0.5), "30m", "20m", 1))
	second := begun()
	if second == first {
		t.Error("another window does not begin the hold-out again")
	}
	put(t, e, "home", strings.Replace(strings.Replace(fmt.Sprintf(holding, 0.5), "30m", "20m", 1), "}],",
		`}],"shopper_history":{"keep":"1h"},`, 1))
	if begun() == second {
		t.Error("a memory of shoppers, who then have other names, does not begin the hold-out again")
	}
}
