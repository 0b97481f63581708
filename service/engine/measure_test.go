package engine_test

import (
	"fmt"
	"math"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// What a caller reports of open decisions counts once they have ended: the last value of each name that the experiment
// compares, after a restart too. Other names take nothing of the log, and reports after the outcome are refused.
func TestMeasure(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildFixed})
	put(t, e, "home", onTrial(`{"name":"x","metrics":[{"name":"margin","max":10},{"name":"wait","max":2,"better":"lower"}],"variants":[{"name":"a","show":"uniform","share":0.5},{"name":"b","show":"policy","share":0.5}]}`))
	now := int64(1e18)
	report := func(id string, metrics map[string]float64) error {
		return e.Measure(t.Context(), "home", id, metrics, now)
	}
	for k := range 40 {
		now += minute
		id := fmt.Sprint("d", k)
		r := stock(id, 2)
		r.ShopperID = id
		a := fatal.Or(e.Decide(t.Context(), "home", r, now))(t)
		fatal.If(t, report(id, map[string]float64{"margin": 9, "other": 1}))
		fatal.If(t, report(id, map[string]float64{"margin": 2, "wait": 0.5}))
		at := e.Sequence()
		fatal.If(t, report(id, map[string]float64{"wait": 0.5, "other": 2}))
		expect.Equal(fatal.T(t), e.Sequence(), at, "the log has a report that says nothing new")
		if k == 20 {
			e = opened(t, engine.Options{Store: store, Build: buildFixed, Snapshot: snapshot(t, e)})
		}
		fatal.If(t, e.Outcome(t.Context(), "home", id, a.IDs()[0], now))
		is(t, "a report after the outcome", report(id, map[string]float64{"margin": 1}), engine.ErrConflict)
	}
	fatal.Or(e.Expire(t.Context(), now+40*minute))(t)
	put(t, e, "shop", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"}}`)
	last := stock("last", 2)
	last.ShopperID = "last"
	fatal.Or(e.Decide(t.Context(), "home", last, now+60*minute))(t)
	r := fatal.Or(e.Experiments("home"))(t).Experiment
	if r.Decisions != 40 || len(r.Metrics) != 4 {
		t.Fatalf("%d decisions, %+v", r.Decisions, r.Metrics)
	}
	for k, want := range map[int]float64{0: 1, 1: 1, 2: 2, 3: 0.5} {
		for _, v := range r.Metrics[k].Variants {
			if m := r.Metrics[k]; m.Reported != 40 || math.Abs(v.Mean.Estimate-want) > 1e-12 {
				t.Errorf("metric %s of %s is %v, want %v, reported %d times", m.Name, v.Variant, v.Mean.Estimate, want,
					m.Reported)
			}
		}
	}
	is(t, "a report of no decision", report("none", map[string]float64{"margin": 1}), engine.ErrNotFound)
	isInvalid(t, "a report of NaN", report("last", map[string]float64{"margin": math.NaN()}), "/metrics/margin")
	for what, bad := range map[string]string{
		"/experiment/metrics/0/name":   `[{"name":"conversion","max":1}]`,
		"/experiment/metrics/1/name":   `[{"name":"m","max":1},{"name":"m","max":1}]`,
		"/experiment/metrics/0/max":    `[{"name":"m"}]`,
		"/experiment/metrics/0/better": `[{"name":"m","max":1,"better":"more"}]`,
		"/experiment/metrics: ":        `[{"name":"a","max":1},{"name":"b","max":1},{"name":"c","max":1},{"name":"d","max":1},{"name":"e","max":1},{"name":"f","max":1}]`,
	} {
		_, err := e.Put(t.Context(), "home",
			[]byte(onTrial(`{"name":"y","metrics":`+bad+`,"variants":[{"name":"a","show":"uniform","share":0.5},{"name":"b","show":"policy","share":0.5}]}`)), now)
		isInvalid(t, what, err, what)
	}
	expect.Equal(t, fatal.Or(e.Stats("shop"))(t).Decisions, 0, "another placement counts")
}
