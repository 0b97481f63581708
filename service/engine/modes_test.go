package engine_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// In the mode "explore" a set is shown as often as its propensity says.
func TestExplorePropensity(t *testing.T) {
	const share, n, rounds = 0.3, 4, 4000
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", fmt.Sprintf(`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":"explore","explore_share":%v}`, share))
	seen, propensity, chance := map[string]float64{}, map[string]float64{}, 0.0
	for range rounds {
		a := decide(t, e, "home", stock("", n), 0)
		shown := a.IDs()
		slices.Sort(shown)
		set := fmt.Sprint(shown)
		seen[set]++
		propensity[set] = a.Propensity
		if a.Mode == offer.ByChance {
			chance++
		}
	}
	expect.Equal(t, len(seen), 4+6, "sets were shown, there are 10 of one or two of four items")
	checkPropensities(t, seen, propensity, rounds)
	if z := (chance - rounds*share) / math.Sqrt(rounds*share*(1-share)); math.Abs(z) > 4 {
		t.Errorf("%v of %d decisions explored, the share is %v", chance, rounds, share)
	}
	s, _ := e.Stats("home")
	expect.Equal(t, s.ExplorationShare, chance/rounds, "the share is")
}

// knowing knows the probability of all its sets.
type knowing struct {
	*always
	law map[string]float64
}

func (l knowing) Policy() vitrine.Policy { return l }

func (l knowing) Propensity(_ *vitrine.Context, s vitrine.Assortment) float64 {
	return l.law[fmt.Sprint(s)]
}

// The propensity of a random policy's set is the mixture's if the policy can evaluate its law, also at a set that it
// did not draw. Otherwise all propensities are unknown.
func TestExplorePropensityOfRandomPolicies(t *testing.T) {
	for _, c := range []struct {
		own   float64
		law   map[string]float64 // nil: the policy knows only the propensity of the set that it drew
		first float64            // the propensity of the set of the first item
		other float64            // and of another set
	}{
		{0.5, nil, 0, 0},
		{0.5, map[string]float64{"[0]": 0.5, "[1]": 0.3, "[2]": 0.3, "[3]": 0.3}, 0.5*0.1 + 0.5*0.5, 0.5*0.1 + 0.5*0.3},
		{0, map[string]float64{"[0]": 0.5}, 0, 0}, // for this request there is no closed form
		{1, nil, 0.5*0.1 + 0.5*1, 0.5 * 0.1},
	} {
		e := opened(t, engine.Options{Store: new(memlog.Store), Build: func(setup.Spec) (vitrine.Learner, error) {
			a := &always{offer: func(*vitrine.Context) vitrine.Offer {
				return vitrine.Offer{Assortment: vitrine.Assortment{0}, Propensity: c.own}
			}}
			if c.law == nil {
				return a, nil
			}
			return knowing{a, c.law}, nil
		}})
		put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":"explore","explore_share":0.5}`)
		seen := 0
		for range 50 {
			a := decide(t, e, "home", stock("", 4), 0)
			want := c.other
			switch {
			case slices.Equal(a.IDs(), []string{"sku0"}):
				want = c.first
			case len(a.IDs()) == 2:
				continue
			default:
				seen++
			}
			if math.Abs(a.Propensity-want) > 1e-12 {
				t.Errorf("propensity %v of %v, want %v where the policy's is %v", a.Propensity, a.IDs(), want, c.own)
			}
			if a.Probability != nil {
				t.Error("probabilities without an estimate")
			}
		}
		if seen == 0 {
			t.Error("no other set was drawn")
		}
	}
}

// If every set is drawn uniformly its propensity is known, for any policy.
func TestUniformPropensity(t *testing.T) {
	for _, own := range []float64{0, 0.5, 1} {
		e := opened(t, engine.Options{Store: new(memlog.Store), Build: func(setup.Spec) (vitrine.Learner, error) {
			return &always{offer: func(*vitrine.Context) vitrine.Offer {
				return vitrine.Offer{Assortment: vitrine.Assortment{0}, Propensity: own}
			}}, nil
		}})
		put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":"explore","explore_share":1}`)
		for range 20 {
			a := decide(t, e, "home", stock("", 4), 0)
			if math.Abs(a.Propensity-0.1) > 1e-12 || a.Mode != offer.ByChance {
				t.Errorf("propensity %v of %v, the policy's is %v", a.Propensity, a.IDs(), own)
			}
		}
	}
}

// The gain over chance is the mean of (x − m)(A/P − B/Q), in cohorts: here of one after the other, with m = 0 in the
// first.
func TestGain(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":"explore","explore_share":0.25}`)
	sum := 0.0
	for i := range 200 {
		r := stock("", 3)
		earning(r, 1, 2, 4)
		a := decide(t, e, "home", r, 0)
		item, revenue := "", 0.0
		if i%3 > 0 {
			item = a.IDs()[0]
			revenue = *r.Items[item[len("sku")]-'0'].Revenue
		}
		fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, item, 1))
		if a.Mode == offer.ByPolicy {
			sum += revenue * 4 / 3
		} else {
			sum -= revenue * 4
		}
	}
	if s := fatal.Or(e.Stats("home"))(t); len(s.Gains) != 0 || s.ByPolicy.Rounds+s.ByChance.Rounds != 200 {
		t.Errorf("before the cohort is over there are the gains %+v", s.Gains)
	}
	decide(t, e, "home", stock("", 3), 3600*second)
	s := fatal.Or(e.Stats("home"))(t)
	if len(s.Gains) != 1 || s.Gains[0].Decisions != 200 || math.Abs(s.Gains[0].Total.Estimate-sum) > 1e-9 ||
		math.Abs(s.Gains[0].PerDecision.Estimate-sum/200) > 1e-12 {
		t.Errorf("the gains are %+v, want %v", s.Gains, sum)
	}
}

// Under a capacity one item is drawn, so there is no gain over uniform sets.
func TestNoGainUnderACapacity(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", `{"max_size":2,"capacity":2,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":"explore","explore_share":0.25}`)
	for range 100 {
		a := decide(t, e, "home", stock("", 4), 0)
		fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, a.IDs()[0], 1))
	}
	decide(t, e, "home", stock("", 4), 3600*second)
	if s := fatal.Or(e.Stats("home"))(t); s.ByChance.Rounds == 0 || len(s.Gains) != 0 {
		t.Errorf("%d decisions by chance, and the gains %+v", s.ByChance.Rounds, s.Gains)
	}
}

// A caller may send a baseline before a mode that needs it begins, without effect.
func TestBaselineAhead(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	for name, mode := range map[string]string{"learns": "", "explores": `,"mode":"explore","explore_share":0.5`,
		"falls-back": `,"fallback":"version"`} {
		put(t, e, name, `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{}`+mode+`}`)
		put(t, e, name+"-ahead", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{}`+mode+`}`)
		for range 50 {
			want := decide(t, e, name, stock("", 4), 0)
			r := stock("", 4)
			r.Baseline = []string{"sku3", "sku2"}
			have := decide(t, e, name+"-ahead", r, 0)
			if !slices.Equal(have.IDs(), want.IDs()) || have.Mode != want.Mode || have.Propensity != want.Propensity {
				t.Fatalf("%s: %+v, want %+v", name, have, want)
			}
		}
		r := stock("", 4)
		r.Baseline = []string{"sku9"}
		expect.Message(e.Decide(t.Context(), name, r, 0))(t, `/baseline/0: "sku9" is not among the items`, name)
	}
}

// In the mode "shadow" the baseline is shown in its order and learned from, and the policy predicts its own earnings.
func TestShadow(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":"shadow"}`)
	r := stock("a", 4) // features 0, 0.1, 0.2, 0.3: the toy would show the first two
	r.Baseline = []string{"sku3", "sku1"}
	earning(r, 1, 2, 3, 4)
	a := decide(t, e, "home", r, 0)
	v := []float64{1, math.Exp(-0.1), math.Exp(-0.2), math.Exp(-0.3)}
	revenue := (v[3]*4 + v[1]*2) / (1 + v[3] + v[1])
	if !slices.Equal(a.IDs(), r.Baseline) || a.Mode != offer.ByBaseline || a.Propensity != 0 ||
		math.Abs(a.Expected-revenue) > 1e-12 {
		t.Errorf("answer %+v, the revenue is %v", a, revenue)
	}
	if want := v[1] / (1 + v[3] + v[1]); math.Abs(a.Probability[1]-want) > 1e-12 {
		t.Errorf("p(sku1|S) = %v, want %v", a.Probability[1], want)
	}
	fatal.If(t, e.Outcome(t.Context(), "home", "a", "sku3", 1))
	wait(t, e)
	s, _ := e.Stats("home")
	own := (v[0]*1 + v[1]*2) / (1 + v[0] + v[1])
	if s.Learned != 1 || s.Shadow.Rounds != 1 || s.Shadow.Agreements != 0 || s.ByBaseline.Revenue != 4 ||
		math.Abs(s.Shadow.Policy-own) > 1e-12 || math.Abs(s.Shadow.Baseline-revenue) > 1e-12 {
		t.Errorf("stats %+v, the policy's own set is worth %v", s, own)
	}
	if b := s.Calibration.Bins[int(10*(1-a.Outside))]; b.Rounds != 1 || b.Purchases != 1 ||
		s.Calibration.Revenue != 4 || s.Calibration.Predicted != a.Expected {
		t.Errorf("calibration %+v", s.Calibration)
	}
	if again, err := e.Decide(t.Context(), "home", r, 0); err != nil ||
		fmt.Sprint(again.Probability) != fmt.Sprint(a.Probability) {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// A request's rules hold for the policy's pages and for drawn ones.
func TestConstraints(t *testing.T) {
	const place = `{"max_size":3,"features":[{"name":"price","kind":"number"},{"name":"brand","kind":"category"}],"policy":{"name":"onl-mnl","warmup":5},"mode":"explore","explore_share":0.3,"limits":[{"feature":"brand","max":2}]}`
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: setup.NewLearner})
	put(t, e, "home", place)
	brand := []string{"a", "a", "a", "b", "b", "c"}
	seen := map[int]bool{}
	for i := range 200 {
		r := &api.Request{}
		for i, b := range brand {
			r.Items = append(r.Items, api.Item{ID: itemID(i), Features: api.Values{api.Number("price", float64(i%3)/3),
				api.Text("brand", b)}})
		}
		r.Include, r.Exclude = []string{"sku1"}, []string{"sku5"}
		r.Limits = []api.Limit{{Items: []string{"sku0", "sku2"}, Max: new(0)}}
		if i%2 == 0 {
			r.MaxSize, r.Limits = 2, []api.Limit{{Feature: "brand", Max: new(1)}}
		}
		a := decide(t, e, "home", r, 0)
		shown := " " + strings.Join(a.IDs(), " ") + " "
		brands := map[string]int{}
		for _, id := range a.IDs() {
			brands[brand[id[3]-'0']]++
		}
		maximum := 2 - (i+1)%2
		if !strings.Contains(shown, " sku1 ") || strings.Contains(shown, " sku5 ") ||
			strings.Contains(shown, " sku0 ") || strings.Contains(shown, " sku2 ") || brands["a"] > maximum ||
			brands["b"] > maximum || len(a.IDs()) > 3-(i+1)%2 {
			t.Fatalf("round %d shows %v", i, a.IDs())
		}
		seen[len(a.IDs())] = true
		fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, a.IDs()[0], 1))
		if i < 10 {
			wait(t, e)
		}
	}
	if len(seen) < 2 {
		t.Errorf("sets of the sizes %v alone were shown", seen)
	}
}

// A change of the policy starts a new learner, which ignores decisions still open; other changes leave it alone.
func TestChanges(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: setup.NewLearner})
	put(t, e, "home", shop)
	if created, err := e.Put(t.Context(), "home", []byte(" "+shop), 5); created || err != nil || e.Sequence() != 1 {
		t.Errorf("the same again: %v, %v, at entry %d", created, err, e.Sequence())
	}
	one(t, e, "home", "a", 1)
	decide(t, e, "home", stock("b", 3), 0)
	put(t, e, "home", strings.Replace(shop, `"memory_bytes":200000`, `"memory_bytes":300000,"attribution_window":"1h"`,
		1))
	wait(t, e)
	if s, _ := e.Stats("home"); s.Learned != 1 {
		t.Errorf("another window: %+v", s)
	}
	put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"},{"name":"size","kind":"number","default":0}],"policy":{"name":"ucb-mnl"}}`)
	expect.Error(t, e.Outcome(t.Context(), "home", "b", "", 20*minute), nil, "an outcome of before")
	one2 := &api.Request{Decision: "c", Items: []api.Item{{ID: "i", Features: api.Values{api.Number("x", 1)}}}}
	decide(t, e, "home", one2, 0)
	wait(t, e)
	if s, _ := e.Stats("home"); s.Learned != 0 || s.Stale != 1 || s.Pending != 1 || s.Decisions != 3 {
		t.Errorf("another schema: %+v", s)
	}
	live := snapshot(t, e)
	if string(live) != string(replayed(t, engine.Options{Store: store})) ||
		string(live) != string(replayed(t, engine.Options{Store: store, Snapshot: live})) {
		t.Error("a replay has another state")
	}
}

// The log holds no revenues for an empty baseline, whatever was decided before it.
func TestEmptyBaseline(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", `{"max_size":2,"mode":"shadow","features":`+numbers(1)+`,"policy":{"name":"uniform"}}`)
	for _, baseline := range [][]string{{itemID(0), itemID(1)}, {}} {
		r := stock("", 4)
		r.Baseline = baseline
		earning(r, 1, 2, 3, 4)
		a, err := e.Decide(t.Context(), "home", r, 0)
		if err != nil || len(a.IDs()) != len(baseline) {
			t.Errorf("of the baseline %q are shown %+v, error %v", baseline, a, err)
		}
	}
}

// checkPropensities compares how often each set was seen with its propensity.
func checkPropensities(t *testing.T, seen, propensity map[string]float64, rounds float64) {
	t.Helper()
	total := 0.0
	for set, p := range propensity {
		total += p
		if z := (seen[set] - rounds*p) / math.Sqrt(rounds*p*(1-p)); math.Abs(z) > 4 {
			t.Errorf("%s: shown %v times of %v, the propensity is %v", set, seen[set], rounds, p)
		}
	}
	if math.Abs(total-1) > 1e-9 {
		t.Errorf("propensities sum to %v", total)
	}
}
