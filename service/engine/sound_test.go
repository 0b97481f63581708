package engine_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// attacked returns a placement's prediction for a usual item, after usual rounds, fifteen valid ones of an extreme
// feature, and usual rounds again.
func attacked(t *testing.T, text string, extreme float64) (p float64, s api.Stats) {
	t.Helper()
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: setup.NewLearner})
	put(t, e, "home", `{"max_size":1,"features":[`+text+`,{"name":"one","kind":"number"}],"policy":{"name":"ucb-mnl"}}`)
	rng := rand.New(rand.NewPCG(1, 1))
	round := func(x float64) *offer.Offer {
		a := decide(t, e, "home", &api.Request{
			Items: []api.Item{{ID: "a", Features: api.Values{api.Number("x", x), api.Number("one", 1)}}}}, 1)
		item := ""
		if rng.Float64() < 1/(1+math.Exp(-x)) == (math.Abs(x) < 100) { // the extreme ones say the opposite
			item = "a"
		}
		fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, item, 2))
		wait(t, e)
		return a
	}
	for i := range 1215 {
		x := rng.NormFloat64()
		if i >= 200 && i < 215 {
			x = extreme * float64(1-2*(i%2))
		}
		round(x)
	}
	a := round(1)
	s = fatal.Or(e.Stats("home"))(t)
	replays(t, e, engine.Options{Store: store})
	return 1 - a.Outside, s
}

// Fifteen rounds of a feature of 10⁴ ruin a learner without bounds. With bounds it goes on. With the usual ones of a
// feature with a scale, which are wider, it recovers, by more than a quarter after a thousand rounds.
func TestExtremeRounds(t *testing.T) {
	const truth = 0.731 // 1/(1 + e⁻¹)
	off := map[string]float64{}
	for _, bounds := range []string{"", `,"min":-3,"max":3`, `,"scale":0.999`} {
		text := `{"name":"x","kind":"number"` + bounds + `}`
		p, s := attacked(t, text, 1e4)
		usual, _ := attacked(t, text, 1)
		if off[bounds] = math.Abs(p - truth); math.Abs(usual-truth) > 0.05 {
			t.Errorf("%s: p = %v without extreme rounds, want %v", text, usual, truth)
		}
		if bounds != "" && s.Clipped < 15 || bounds == "" && s.Clipped > 0 {
			t.Errorf("%s: %d values were clipped", text, s.Clipped)
		}
	}
	if off[""] < 0.2 || off[`,"min":-3,"max":3`] > 0.1 || off[`,"scale":0.999`] > 0.75*off[""] {
		t.Errorf("after extreme rounds p is off by %v", off)
	}
}

// The statistics list the values that the learner left out, with the feature, and the same after a replay and after a
// snapshot.
func TestOutliers(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	put(t, e, "home", `{"max_size":1,"features":[{"name":"size","kind":"number"},{"name":"price","kind":"number"}],"policy":{"name":"auto"},"log_items":"all"}`)
	for i := range 135 {
		factor := 1.0
		if i >= 120 && i < 130 {
			factor = 1e3 // in another unit
		}
		r := &api.Request{Decision: fmt.Sprint("d", i)}
		for k := range 4 {
			r.Items = append(r.Items, api.Item{ID: itemID(k), Features: api.Values{api.Number("size", float64((i+k)%7)),
				api.Number("price", factor*float64(3+(i*k)%5))}})
		}
		a := decide(t, e, "home", r, 0)
		fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, a.IDs()[0], 0))
		if i == 119 {
			wait(t, e)
			if s, _ := e.Stats("home"); s.Outliers != nil {
				t.Errorf("outliers %+v of usual values", s.Outliers)
			}
		}
	}
	saved := snapshot(t, e)
	for name, again := range map[string]*engine.Engine{
		"live": e, "replay": opened(t, engine.Options{Store: store}), "snapshot": opened(t,
			engine.Options{Store: store, Snapshot: saved}),
	} {
		wait(t, again)
		s, err := again.Stats("home")
		want := &api.Outliers{Values: 10 * 4, Feature: "price", Since: 5, Rounds: 5}
		if diff := cmp.Diff(want, s.Outliers); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if got := snapshot(t, again); !bytes.Equal(got, saved) {
			t.Errorf("%s: another state", name)
		}
	}
}

// Bounds are part of the configuration, and a learner goes on under new ones.
func TestBoundsOfFeatures(t *testing.T) {
	place := func(text string) string {
		return `{"max_size":1,"features":[{"name":"x","kind":` + text + `}],"policy":{}}`
	}
	for text, want := range map[string]string{
		`"number","min":1,"max":1`: "/features/0/min", `"number","min":2,"max":1`: "/features/0/min",
		`"number","center":1,"max":-10`: "/features/0/min",
		`"number","max":1e19`:           "/features/0/max: 1e+19: is 1e+19 after scaling",
		`"category","min":1`:            "/features/0/min: is not a field of kind",
	} {
		expect.Prefix(setup.Parse([]byte(place(text))))(t, want, text)
	}
	for _, c := range []struct {
		text    string
		v, want float64
	}{
		{`"number","min":-1,"max":2`, 1e300, 2}, {`"number","min":-1,"max":2`, -5, -1}, {`"number","min":-1`, 5, 5},
		{`"number","scale":2,"center":10`, 1000, 10}, {`"number","scale":2,"center":10`, -1e6, -10},
		{`"number","scale":2,"center":10`, 28, 9}, {`"number"`, 9999, 9999},
		{`"number","from":"shopper","max":1`, 3, 1}, {`"number","max":1,"default":7`, math.NaN(), 1},
	} {
		config := fatal.Or(setup.Parse([]byte(place(c.text))))(t)
		row, value := make([]float64, 1), api.Number("", c.v)
		if math.IsNaN(c.v) {
			value = api.Value{}
		}
		item := api.Item{ID: "a", Features: []api.Value{value}}
		var user []api.Value
		if strings.Contains(c.text, "shopper") {
			item.Features, user = nil, []api.Value{value}
		}
		if _, err := config.Schema().Rows(row, user, []api.Item{item}); err != nil || row[0] != c.want {
			t.Errorf("%s: %v is %v, %v, want %v", c.text, c.v, row[0], err, c.want)
		}
	}
	for _, v := range []float64{math.Inf(1), math.NaN()} {
		config, _ := setup.Parse([]byte(place(`"number","max":1`)))
		expect.Refused(config.Schema().Rows(make([]float64, 1), nil,
			[]api.Item{{ID: "a", Features: []api.Value{api.Number("", v)}}}))(t, v, "is taken")
	}
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", place(`"number"`))
	one(t, e, "home", "a", 1)
	put(t, e, "home", place(`"number","max":1`))
	one(t, e, "home", "b", 50)
	wait(t, e)
	if s, _ := e.Stats("home"); s.Learned != 2 || s.Stale != 0 || s.Clipped == 0 {
		t.Errorf("after new bounds %+v", s)
	}
}

// sure predicts one utility of every item.
type sure struct {
	toy
	u float64
}

func (l *sure) Policy() vitrine.Policy                      { return l }
func (l *sure) Utilities(dst []float64, _ *vitrine.Context) { dst[0] = l.u }
func (l *sure) Offer(*vitrine.Context, *rand.Rand) vitrine.Offer {
	return vitrine.Offer{Assortment: vitrine.Assortment{0}, Propensity: 1}
}

// A policy with predictions that are NaN, or certain of outcomes that do not come, is a problem.
func TestUnsoundPolicies(t *testing.T) {
	for _, c := range []struct {
		u       float64
		problem string
	}{{0, ""}, {math.NaN(), "not finite"}, {math.Inf(1), "not finite"}, {701, "not finite"}, {30, "below 1e-06"},
		{10, ""}} {
		e := opened(t, engine.Options{Store: new(memlog.Store), Build: func(setup.Spec) (vitrine.Learner, error) {
			return &sure{u: c.u}, nil
		}})
		put(t, e, "home", small)
		for i := range 30 {
			id := fmt.Sprint("d", i)
			decide(t, e, "home", stock(id, 1), 1)
			fatal.If(t, e.Outcome(t.Context(), "home", id, "", 2))
			wait(t, e)
		}
		if s, err := e.Stats("home"); err != nil || s.Unsound != (c.problem != "") ||
			!strings.Contains(s.Problem, c.problem) || c.problem == "" && s.Problem != "" {
			t.Errorf("u = %v: unsound %v, %q, %v", c.u, s.Unsound, s.Problem, err)
		}
		put(t, e, "home", strings.Replace(small, `"policy"`, `"seed":3,"policy"`, 1))
		if s, _ := e.Stats("home"); s.Unsound {
			t.Errorf("u = %v: a learner that begins again is unsound", c.u)
		}
	}
}
