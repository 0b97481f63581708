package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/earnings/abtest"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// fixed is a learner with a policy that always shows item K, with the utility K + 1/2 for all items; it counts its
// rounds.
type fixed struct {
	toy
	item int
}

func (l *fixed) Observe(vitrine.Round) error { l.level++; return nil }

func (l *fixed) Policy() vitrine.Policy { return &shows{l.item, 0.5 + float64(l.item)} }

// buildFixed builds the learner of {"name": "K"}, which shows item K.
func buildFixed(s setup.Spec) (vitrine.Learner, error) {
	l := new(fixed)
	if n, _ := fmt.Sscanf(string(s.Policy), `{"name":"%d"}`, &l.item); n == 0 {
		return nil, errors.New("there is no such policy")
	}
	return l, nil
}

// onTrial is a configuration with an experiment; the placement's policy shows item 0.
func onTrial(experiment string) string {
	return `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"},"mode":"experiment","attribution_window":"30m","experiment":` + experiment + `}`
}

// fourVariants runs in a placement with a hold-out.
const fourVariants = `{"name":"summer","variants":[
	{"name":"shop","show":"baseline","share":0.4},{"name":"own","show":"policy","share":0.3},
	{"name":"rival","show":"policy","policy":{"name":"1"},"share":0.2},{"name":"chance","show":"uniform","share":0.1}]},"holdout_share":0.1`

// boutique is a shop with an experiment. Item k sells with the probability sells[k]; its baseline is the last item.
type boutique struct {
	t     *testing.T
	e     *engine.Engine
	sells []float64
	price float64
	now   int64
	n     int
	rng   *rand.Rand

	groups   map[string]*api.Totals // by variant, of closed decisions
	variants map[string]string      // of each unit
}

func newBoutique(t *testing.T, e *engine.Engine, sells ...float64) *boutique {
	return &boutique{t: t, e: e, sells: sells, price: 2, now: 1e18, rng: rand.New(rand.NewPCG(5, 6)),
		groups: map[string]*api.Totals{}, variants: map[string]string{}}
}

// serve answers the requests of a number of shoppers, one a minute. Decisions without a sale expire.
func (s *boutique) serve(requests, shoppers int) {
	s.t.Helper()
	for range requests {
		s.n++
		s.now += minute
		r := stock(fmt.Sprint("d", s.n), len(s.sells))
		for i := range r.Items {
			r.Items[i].Revenue = &s.price
		}
		r.ShopperID, r.Baseline = fmt.Sprint("shopper-", s.rng.IntN(shoppers)), []string{itemID(len(s.sells) - 1)}
		a := fatal.Or(s.e.Decide(s.t.Context(), "home", r, s.now))(s.t)
		if before := s.variants[r.ShopperID]; before != "" && before != a.Variant {
			s.t.Fatalf("%s is shown %q after %q", r.ShopperID, a.Variant, before)
		}
		s.variants[r.ShopperID] = a.Variant
		g := s.groups[a.Variant]
		if g == nil {
			g = new(api.Totals)
			s.groups[a.Variant] = g
		}
		g.Rounds++
		for i, p := range s.sells {
			if itemID(i) == a.IDs()[0] && s.rng.Float64() < p {
				g.Purchases++
				g.Revenue += s.price
				g.Squares += s.price * s.price
				fatal.If(s.t, s.e.Outcome(s.t.Context(), "home", a.Decision, a.IDs()[0], s.now))
			}
		}
		s.expire()
	}
}

func (s *boutique) expire() {
	s.t.Helper()
	fatal.Or(s.e.Expire(s.t.Context(), s.now))(s.t)
}

// settle lets all decisions end, and their cohorts too, with a decision two windows later.
func (s *boutique) settle() {
	s.now += 40 * minute
	s.expire()
	s.sells = make([]float64, len(s.sells))
	s.serve(1, 1)
	s.groups[s.variants["shopper-0"]].Rounds-- // which waits
}

func (s *boutique) report() *api.ExperimentReport {
	s.t.Helper()
	wait(s.t, s.e)
	all, err := s.e.Experiments("home")
	if err != nil || all.Experiment == nil {
		s.t.Fatal(all, err)
	}
	return all.Experiment
}

// Revenues with a square of 0 in floating point give a report in JSON, which the end of the experiment keeps.
func TestTinyRevenues(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildFixed})
	put(t, e, "home", onTrial(strings.Replace(fourVariants, `"variants"`,
		`"metrics":[{"name":"m","max":5e-324}],"variants"`, 1)))
	s := newBoutique(t, e, 0.5, 0.5, 0.5)
	s.price = 1e-170
	s.serve(100, 50)
	s.settle()
	fatal.Or(json.Marshal(s.report()))(t)
	fatal.Or(json.Marshal(fatal.Or(e.Stats("home"))(t)))(t)
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"}}`)
	replays(t, e, engine.Options{Store: store, Build: buildFixed})
}

// Each unit keeps its variant and sees that variant's pages; the variants' earnings are counted; every snapshot and a
// replay lead to the same state, bit for bit; and the log is valid.
func TestExperiment(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildFixed})
	put(t, e, "home", strings.Replace(onTrial(fourVariants), `"mode"`, `"learn_in_alarm":true,"mode"`,
		1)) // item 0 sells less than its policy predicts
	s := newBoutique(t, e, 0.05, 0.6, 0.05, 0.2)
	s.serve(1000, 600)
	middle := snapshot(t, e)
	s.serve(1000, 600)
	s.settle()

	r, held := s.report(), fatal.Or(e.Experiments("home"))(t).Holdout
	if r.Name != "summer" || r.Control != "shop" || r.Learn != api.LearnOwn || len(r.Variants) != 4 || held == nil {
		t.Fatalf("%+v", r)
	}
	units := map[string]uint64{}
	for _, v := range s.variants {
		units[v]++
	}
	total := uint64(0)
	for _, v := range append(r.Variants, held.Variants[1]) {
		expect.Equal(t, v.Group, *s.groups[v.Name], v.Name)
		expect.Equal(t, v.Units, units[v.Name], v.Name)
		if mean, _ := v.Group.Mean(); math.Abs(v.Mean.Estimate-mean) > 1e-9 ||
			!(v.Mean.Low <= mean && mean <= v.Mean.High) {
			t.Errorf("%s earns %+v a decision, want %v", v.Name, v.Mean, mean)
		}
		if (v.Difference == nil) != (v.Name == "shop" || v.Name == api.Holdout) {
			t.Errorf("%s has the difference %v", v.Name, v.Difference)
		}
		if v.Name != api.Holdout {
			total += v.Group.Rounds
		}
	}
	expect.Equal(t, r.Decisions, total, "decisions count")
	expect.Equal(t, len(r.Pairs), 3, "pairs besides those with the control")
	earned := map[string]api.Interval{}
	for _, v := range r.Variants {
		if v.Difference != nil {
			earned[v.Name] = *v.Difference
		}
	}
	for _, p := range r.Pairs {
		want := earned[p.Variant].Estimate - earned[p.Over].Estimate
		if d := p.Difference; d.Estimate < 0 || math.Abs(d.Estimate-want) > 1e-9 || d.Low >= d.Estimate ||
			d.High <= d.Estimate {
			t.Errorf("%q earns %+v more than %q, want about %v", p.Variant, d, p.Over, want)
		}
	}
	if r.Verdict.Result != api.Ship || r.Verdict.Variant != "rival" || r.Ratio.Mismatch || len(r.Points) == 0 {
		t.Errorf("the verdict is %+v, the ratio %+v, after %d points", r.Verdict, r.Ratio, len(r.Points))
	}
	for name, learned := range map[string]uint64{"own": s.groups["own"].Rounds, "rival": s.groups["rival"].Rounds} {
		for _, v := range r.Variants {
			if v.Name == name && (v.Learner == nil || *v.Learner.Learned != learned ||
				v.Learner.Own != (name == "rival")) {
				t.Errorf("%s has the learner %+v, want %d rounds", name, v.Learner, learned)
			}
		}
	}

	now := snapshot(t, e)
	for name, from := range map[string][]byte{"the beginning": nil, "the middle": middle, "now": now} {
		if again := replayed(t, engine.Options{Store: store, Build: buildFixed, Snapshot: from}); !bytes.Equal(again,
			now) {
			t.Errorf("a replay from %s on gives another state", name)
		}
		a := fatal.Or(engine.NewAudit(buildFixed, from))(t)
		if faults := audited(t, a, store); faults != nil {
			t.Errorf("an audit from %s on finds %q", name, faults)
		}
		a.Close()
	}
}

// Each variant shows its own pages.
func TestWhatVariantsShow(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	shown, by := map[string]map[string]bool{}, map[string]map[uint8]bool{}
	for i := range 400 {
		r := stock("", 4)
		r.ShopperID, r.Baseline = fmt.Sprint(i), []string{"sku3"}
		a := decide(t, e, "home", r, 0)
		if shown[a.Variant] == nil {
			shown[a.Variant], by[a.Variant] = map[string]bool{}, map[uint8]bool{}
		}
		shown[a.Variant][a.IDs()[0]], by[a.Variant][a.Mode] = true, true
		if a.Variant == "chance" && math.Abs(a.Propensity-0.25) > 1e-12 {
			t.Errorf("a uniform set has the propensity %v", a.Propensity)
		}
	}
	want := map[string]map[string]bool{
		"shop": {"sku3": true}, api.Holdout: {"sku3": true}, "own": {"sku0": true}, "rival": {"sku1": true},
		"chance": {"sku0": true, "sku1": true, "sku2": true, "sku3": true},
	}
	expect.Equal(t, shown, want)
	wantBy := map[string]map[uint8]bool{
		"shop": {offer.ByBaseline: true}, api.Holdout: {offer.ByBaseline: true}, "own": {offer.ByPolicy: true},
		"rival":  {offer.ByPolicy: true},
		"chance": {offer.ByChance: true},
	}
	expect.Equal(t, by, wantBy)
}

// With learn "all" each learner learns from all outcomes. A placement's learner that no variant uses always does.
func TestWhatVariantsLearnFrom(t *testing.T) {
	for name, c := range map[string]struct {
		experiment string
		want       func(groups map[string]*api.Totals) (own, rival uint64)
	}{
		"all": {strings.Replace(fourVariants, `"name":"summer"`, `"name":"summer","learn_from":"all"`, 1), func(g map[string]*api.Totals) (own, rival uint64) {
			for _, v := range g {
				own += v.Rounds
			}
			return own, own
		}},
		"aside": {`{"name":"a","variants":[{"name":"shop","show":"baseline","share":0.5},{"name":"rival","show":"policy","policy":{"name":"1"},"share":0.5}]}`, func(g map[string]*api.Totals) (own, rival uint64) {
			return g["shop"].Rounds + g["rival"].Rounds, g["rival"].Rounds
		}},
	} {
		t.Run(name, func(t *testing.T) {
			store := new(memlog.Store)
			e := opened(t, engine.Options{Store: store, Build: buildFixed})
			put(t, e, "home", onTrial(c.experiment))
			s := newBoutique(t, e, 0.1, 0.5, 0.1)
			s.serve(200, 100)
			s.settle()
			own, rival := c.want(s.groups)
			variants := s.report().Variants
			stats, err := e.Stats("home")
			if err != nil || stats.Learned != own {
				t.Errorf("the placement has learned %d rounds, want %d; %v", stats.Learned, own, err)
			}
			for _, v := range variants {
				if v.Name == "rival" && *v.Learner.Learned != rival {
					t.Errorf("the rival has learned %d rounds, want %d", *v.Learner.Learned, rival)
				}
			}
			replays(t, e, engine.Options{Store: store, Build: buildFixed})
		})
	}
}

// Among many units each variant gets its share.
func TestShares(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	have := map[string]float64{}
	const n = 5000
	for i := range n {
		r := stock("", 3)
		r.ShopperID, r.Baseline = fmt.Sprint("u", i), []string{"sku2"}
		a := decide(t, e, "home", r, 0)
		have[a.Variant]++
	}
	for name, p := range map[string]float64{"shop": 0.36, "own": 0.27, "rival": 0.18, "chance": 0.09,
		api.Holdout: 0.1} {
		if z := (have[name] - n*p) / math.Sqrt(n*p*(1-p)); math.Abs(z) > 4 {
			t.Errorf("%s has %v of %d units, want a share of %v", name, have[name], n, p)
		}
	}
	expect.Equal(t, abtest.Buckets, 10_000, "the documentation says that there are 10,000 buckets")
}

// The guard and the calibration concern the placement's own policy: a rival without sales raises no alarm.
func TestGuardInAnExperiment(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(`{"name":"x","variants":[{"name":"own","show":"policy","share":0.5},{"name":"rival","show":"policy","policy":{"name":"1"},"share":0.5}]}`))
	s := newBoutique(t, e, 1/(1+math.Exp(-0.5)), 0) // as both predict
	s.serve(2500, 2000)
	stats, err := e.Stats("home")
	if err != nil || stats.Guard.Alarm != nil || stats.Guard.Period == 0 {
		t.Fatalf("%+v, %v", stats.Guard, err)
	}
	rounds := uint64(0)
	for _, b := range stats.Calibration.Bins {
		rounds += b.Rounds
	}
	if own := s.groups["own"].Rounds; rounds > own || rounds < own-40 {
		t.Errorf("the calibration has %d rounds, and the placement's policy %d", rounds, own)
	}
}

// The pages that an alarm's fallback shows to a variant are counted, and the verdict names them. A hold-out compares the
// placement as it is, with its alarms.
func TestFallbackInAnExperiment(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildFixed})
	put(t, e, "home", strings.Replace(onTrial(fourVariants), `"mode"`, `"fallback":"baseline","mode"`, 1))
	s := newBoutique(t, e, 0.05, 0.6, 0.05, 0.2)
	for s.n < 8000 && mustStats(t, e).Guard.Alarm == nil {
		s.serve(1, 600)
	}
	before := s.groups["own"].Rounds
	s.serve(1000, 600)
	shown := s.groups["own"].Rounds - before
	r := s.report()
	for _, v := range r.Variants {
		want := uint64(0)
		if v.Name == "own" {
			want = shown
		}
		expect.Equal(t, v.Fallback, want, v.Name)
	}
	clause := fmt.Sprintf(`; "own" showed your own pages in %d of its %d decisions, during an alarm`, shown,
		s.groups["own"].Rounds)
	if shown < 100 || !strings.HasSuffix(r.Verdict.Reason, clause) {
		t.Errorf("%+v, want %s", r.Verdict, clause)
	}
	if held := fatal.Or(e.Experiments("home"))(t).Holdout; strings.Contains(held.Verdict.Reason, "alarm") {
		t.Errorf("the hold-out: %+v", held.Verdict)
	}
	replays(t, e, engine.Options{Store: store, Build: buildFixed})
	data := snapshot(t, e)
	e.Close()
	s.e = opened(t, engine.Options{Store: store, Build: buildFixed, Snapshot: data})
	expect.Equal(t, s.report().Verdict, r.Verdict, "restored")
}

// Shoppers who return, and always buy or never, lengthen a plan, whether a hold-out or an experiment shows it.
func TestPlanOfReturningShoppers(t *testing.T) {
	need := map[string]float64{}
	for name, conf := range map[string]string{"none": "}", "hold-out": `,"holdout_share":0.5}`,
		"experiment": `,"mode":"experiment","experiment":{"name":"x","variants":[{"name":"shop","show":"baseline","share":0.5},{"name":"own","show":"policy","share":0.5}]}}`} {
		e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
		put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"},"attribution_window":"30m"`+conf)
		now := int64(1e18)
		for n := range 4000 {
			now += minute
			r := stock(fmt.Sprint("d", n), 2)
			r.ShopperID, r.Baseline = fmt.Sprint(n/20), []string{itemID(1)}
			a := fatal.Or(e.Decide(t.Context(), "home", r, now))(t)
			if n/20%2 == 0 {
				fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, a.IDs()[0], now))
			}
			fatal.Or(e.Expire(t.Context(), now))(t)
		}
		plan := fatal.Or(e.Plan("home", []float64{0.5, 0.5}, []float64{0.1}, now))(t)
		need[name] = *plan.Gains[0].Decisions
		if name == "hold-out" {
			need[name] /= 2 // without the decisions held out
		}
	}
	for _, name := range []string{"hold-out", "experiment"} {
		if r := need[name] / need["none"]; r < 10 || r > 30 {
			t.Errorf("the %s: %.3g times as many decisions as without one, want about 20", name, r)
		}
	}
}

// A placement is charged for the learners of its variants, and for the sums of the experiment.
func TestChargeOfAnExperiment(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed,
		Size: func(setup.Spec) (setup.Size, error) {
			return setup.Size{Learner: 1000, State: 10}, nil
		}})
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"},"attribution_window":"30m","memory_bytes":8000000}`)
	before := fatal.Or(e.Stats("home"))(t)
	put(t, e, "home", strings.Replace(onTrial(fourVariants), `"mode"`, `"memory_bytes":8000000,"mode"`, 1))
	after, err := e.Stats("home")
	if want := int64(2*6<<18 + 1000 + 2*10 + 8000000/2); err != nil || after.Charged-before.Charged != want {
		t.Errorf("the experiment is charged %d bytes, want %d; %v", after.Charged-before.Charged, want, err)
	}
}

// A decision is explained by the learner of its variant, while its experiment runs.
func TestExplainAVariant(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	explain := func(id string) *api.Explanation {
		x := fatal.Or(e.Explain(t.Context(), "home", id, 0, nil))(t)
		return x
	}
	policy := map[string]string{"own": "0", "rival": "1"}
	asked := map[string]string{}
	for i := range 60 {
		r := stock(fmt.Sprint(i), 3)
		r.ShopperID, r.Baseline = fmt.Sprint(i), []string{"sku2"}
		a := decide(t, e, "home", r, 0)
		asked[a.Variant] = a.Decision
	}
	for name, want := range policy {
		if x := explain(asked[name]); x.Policy != want || !x.SamePolicy {
			t.Errorf("%s is explained by %+v", name, x)
		}
	}
	r := stock("", 3) // a request that is only tried shows the placement's policy
	if a, _, err := try(t.Context(), e, "home", r, 0); err != nil || a.IDs()[0] != "sku0" || a.Variant != "" {
		t.Errorf("%+v, %v", a, err)
	}
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"},"attribution_window":"30m"}`)
	if x := explain(asked["rival"]); !strings.Contains(strings.Join(x.Unknown, " "),
		`the experiment of the variant "rival" has ended`) {
		t.Errorf("after the end: %+v", x)
	}
}
