package decision_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
	"vitrine/service/variants"
)

// fixed is a learner whose policy always shows item K, with the utility K + 1/2 of all items; it counts its rounds.
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

const fourVariants = `{"name":"summer","holdout":0.1,"variants":[
	{"name":"shop","show":"baseline","share":0.4},{"name":"own","show":"policy","share":0.3},
	{"name":"rival","show":"policy","policy":{"name":"1"},"share":0.2},{"name":"chance","show":"uniform","share":0.1}]}`

// boutique is a shop with an experiment. Item k sells with the probability sells[k]; its baseline is the last item.
type boutique struct {
	t     *testing.T
	e     *decision.Engine
	sells []float64
	price float64
	now   int64
	n     int
	rng   *rand.Rand

	groups   map[string]*api.Group // by variant, of what has closed
	variants map[string]string     // of each unit
}

func newBoutique(t *testing.T, e *decision.Engine, sells ...float64) *boutique {
	return &boutique{t: t, e: e, sells: sells, price: 2, now: 1e18, rng: rand.New(rand.NewPCG(5, 6)), groups: map[string]*api.Group{}, variants: map[string]string{}}
}

// serve answers the requests of a number of shoppers, one a minute. What is not sold expires.
func (s *boutique) serve(requests, shoppers int) {
	s.t.Helper()
	for range requests {
		s.n++
		s.now += minute
		r := stock(fmt.Sprint("d", s.n), len(s.sells))
		for i := range r.Items {
			r.Items[i].Revenue = &s.price
		}
		r.Unit, r.Baseline = fmt.Sprint("shopper-", s.rng.IntN(shoppers)), []string{itemID(len(s.sells) - 1)}
		a := fatal.Or(s.e.Decide(s.t.Context(), "home", r, s.now))(s.t)
		if before := s.variants[r.Unit]; before != "" && before != a.Variant {
			s.t.Fatalf("%s is shown %q after %q", r.Unit, a.Variant, before)
		}
		s.variants[r.Unit] = a.Variant
		g := s.groups[a.Variant]
		if g == nil {
			g = new(api.Group)
			s.groups[a.Variant] = g
		}
		g.Rounds++
		for i, p := range s.sells {
			if itemID(i) == a.Shown[0] && s.rng.Float64() < p {
				g.Purchases++
				g.Revenue += s.price
				g.Squares += s.price * s.price
				fatal.If(s.t, s.e.Outcome(s.t.Context(), "home", a.Decision, a.Shown[0], s.now))
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

// Each unit keeps its variant and is shown what the variant says; what the variants earn is counted; the state is
// that of a replay, bit for bit, from every snapshot; and the log is lawful.
func TestExperiment(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, decision.Options{Store: store, Build: buildFixed})
	put(t, e, "home", strings.Replace(onTrial(fourVariants), `"mode"`, `"learn_in_alarm":true,"mode"`, 1)) // item 0 sells less than its policy predicts
	s := newBoutique(t, e, 0.05, 0.6, 0.05, 0.2)
	s.serve(1000, 600)
	middle := snapshot(t, e)
	s.serve(1000, 600)
	s.settle()

	r := s.report()
	if r.Name != "summer" || r.Control != "shop" || r.Learn != api.LearnOwn || len(r.Variants) != 4 || r.HeldOut == nil {
		t.Fatalf("%+v", r)
	}
	units := map[string]uint64{}
	for _, v := range s.variants {
		units[v]++
	}
	total := uint64(0)
	for _, v := range append(r.Variants, *r.HeldOut) {
		if diff := cmp.Diff(*s.groups[v.Name], v.Group); diff != "" {
			t.Errorf("%s (-want +got):\n%s", v.Name, diff)
		}
		if v.Units < units[v.Name]-1 || v.Units > units[v.Name] { // the last decision may be of a new one
			t.Errorf("%s has %d units, want %d", v.Name, v.Units, units[v.Name])
		}
		if mean, _ := v.Group.Mean(); math.Abs(v.Mean.Estimate-mean) > 1e-9 || !(v.Mean.Low <= mean && mean <= v.Mean.High) {
			t.Errorf("%s earns %+v a decision, want %v", v.Name, v.Mean, mean)
		}
		if (v.Difference == nil) != (v.Name == "shop" || v.Name == api.Holdout) {
			t.Errorf("%s has the difference %v", v.Name, v.Difference)
		}
		if v.Name != api.Holdout {
			total += v.Group.Rounds
		}
	}
	if r.Decisions != total {
		t.Errorf("%d decisions count, want %d", r.Decisions, total)
	}
	if len(r.Pairs) != 3 {
		t.Errorf("%d pairs besides those with the control, want 3", len(r.Pairs))
	}
	earned := map[string]api.Interval{}
	for _, v := range r.Variants {
		if v.Difference != nil {
			earned[v.Name] = *v.Difference
		}
	}
	for _, p := range r.Pairs {
		want := earned[p.Variant].Estimate - earned[p.Over].Estimate
		if d := p.Difference; d.Estimate < 0 || math.Abs(d.Estimate-want) > 1e-9 || d.Low >= d.Estimate || d.High <= d.Estimate {
			t.Errorf("%q earns %+v more than %q, want about %v", p.Variant, d, p.Over, want)
		}
	}
	if r.Verdict.Rule != api.Ship || r.Verdict.Variant != "rival" || r.Ratio.Mismatch || len(r.Points) == 0 {
		t.Errorf("the verdict is %+v, the ratio %+v, after %d points", r.Verdict, r.Ratio, len(r.Points))
	}
	for name, learned := range map[string]uint64{"own": s.groups["own"].Rounds, "rival": s.groups["rival"].Rounds} {
		for _, v := range r.Variants {
			if v.Name == name && (v.Learner == nil || v.Learner.Learned != learned || v.Learner.Own != (name == "rival")) {
				t.Errorf("%s has the learner %+v, want %d rounds", name, v.Learner, learned)
			}
		}
	}

	now := snapshot(t, e)
	for name, from := range map[string][]byte{"the beginning": nil, "the middle": middle, "now": now} {
		if again := replayed(t, decision.Options{Store: store, Build: buildFixed, Snapshot: from}); !bytes.Equal(again, now) {
			t.Errorf("a replay from %s on gives another state", name)
		}
		a := fatal.Or(decision.NewAudit(buildFixed, from))(t)
		if faults := audited(t, a, store); faults != nil {
			t.Errorf("an audit from %s on finds %q", name, faults)
		}
		a.Close()
	}
}

// Of a changed snapshot of an experiment nothing panics.
func TestDamagedExperiments(t *testing.T) {
	store := unnamed{new(memlog.Store)}
	e := opened(t, decision.Options{Store: store, Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	newBoutique(t, e, 0.1, 0.5, 0.1).serve(60, 30)
	body := withoutSum(snapshot(t, e))
	rng := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 300 {
		changed := slices.Clone(body)
		changed[rng.IntN(len(body))] ^= 1 << rng.IntN(8)
		e, err := decision.Open(t.Context(), decision.Options{Store: store, Build: buildFixed, Snapshot: withSum(changed)})
		if err != nil {
			continue
		}
		taken++
		if _, err := e.Experiments("home"); err != nil {
			t.Error(err)
		}
		if again := snapshot(t, e); !bytes.Equal(again, withSum(changed)) {
			t.Error("a snapshot is written otherwise than it was read")
		}
		e.Close()
	}
	if taken == 0 {
		t.Error("no snapshot was taken")
	}
}

// What each variant shows.
func TestWhatVariantsShow(t *testing.T) {
	e := opened(t, decision.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	shown, by := map[string]map[string]bool{}, map[string]map[uint8]bool{}
	for i := range 400 {
		r := stock("", 4)
		r.Unit, r.Baseline = fmt.Sprint(i), []string{"sku3"}
		a := decide(t, e, "home", r, 0)
		if shown[a.Variant] == nil {
			shown[a.Variant], by[a.Variant] = map[string]bool{}, map[uint8]bool{}
		}
		shown[a.Variant][a.Shown[0]], by[a.Variant][a.By] = true, true
		if a.Variant == "chance" && math.Abs(a.Propensity-0.25) > 1e-12 {
			t.Errorf("a uniform set has the propensity %v", a.Propensity)
		}
	}
	want := map[string]map[string]bool{
		"shop": {"sku3": true}, api.Holdout: {"sku3": true}, "own": {"sku0": true}, "rival": {"sku1": true},
		"chance": {"sku0": true, "sku1": true, "sku2": true, "sku3": true},
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantBy := map[string]map[uint8]bool{
		"shop": {offer.ByBaseline: true}, api.Holdout: {offer.ByBaseline: true}, "own": {offer.ByPolicy: true}, "rival": {offer.ByPolicy: true},
		"chance": {offer.ByChance: true},
	}
	if diff := cmp.Diff(wantBy, by); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A change of the shares moves only units of variants that shrink, and is a phase of its own; what was learned and
// counted stays.
func TestChangeOfShares(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, decision.Options{Store: store, Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	s := newBoutique(t, e, 0.1, 0.5, 0.1)
	s.serve(300, 200)
	before := maps.Clone(s.variants)
	changed := strings.NewReplacer(`"holdout":0.1`, `"holdout":0.15`, `"share":0.4`, `"share":0.2`, `"share":0.3`, `"share":0.5`).Replace(fourVariants)
	fatal.Or(e.Put(t.Context(), "home", []byte(onTrial(changed)), s.now))(t)
	clear(s.variants)
	s.serve(400, 200)
	moved := 0
	for unit, v := range s.variants {
		if was := before[unit]; was != "" && was != v {
			moved++
			if was != "shop" && v != api.Holdout || was == api.Holdout {
				t.Errorf("%s moves from %q to %q", unit, was, v)
			}
		}
	}
	s.settle()
	r := s.report()
	if moved == 0 || len(r.Phases) != 2 || r.Phases[1].Moved != 0.2 || r.Phases[1].Holdout != 0.15 || !slices.Equal(r.Phases[1].Shares, []float64{0.2, 0.5, 0.2, 0.1}) {
		t.Errorf("%d units moved, the phases are %+v", moved, r.Phases)
	}
	for _, v := range r.Variants {
		if diff := cmp.Diff(*s.groups[v.Name], v.Group); diff != "" {
			t.Errorf("%s (-want +got):\n%s", v.Name, diff)
		}
	}
	replays(t, e, decision.Options{Store: store, Build: buildFixed})
}

// With learn "all" each learner learns from all outcomes. A placement's learner that is that of no variant does so always.
func TestWhatVariantsLearnFrom(t *testing.T) {
	for name, c := range map[string]struct {
		experiment string
		want       func(groups map[string]*api.Group) (own, rival uint64)
	}{
		"all": {strings.Replace(fourVariants, `"name":"summer"`, `"name":"summer","learn":"all"`, 1), func(g map[string]*api.Group) (own, rival uint64) {
			for _, v := range g {
				own += v.Rounds
			}
			return own, own
		}},
		"aside": {`{"name":"a","variants":[{"name":"shop","show":"baseline","share":0.5},{"name":"rival","show":"policy","policy":{"name":"1"},"share":0.5}]}`, func(g map[string]*api.Group) (own, rival uint64) {
			return g["shop"].Rounds + g["rival"].Rounds, g["rival"].Rounds
		}},
	} {
		t.Run(name, func(t *testing.T) {
			store := new(memlog.Store)
			e := opened(t, decision.Options{Store: store, Build: buildFixed})
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
				if v.Name == "rival" && v.Learner.Learned != rival {
					t.Errorf("the rival has learned %d rounds, want %d", v.Learner.Learned, rival)
				}
			}
			replays(t, e, decision.Options{Store: store, Build: buildFixed})
		})
	}
}

// An experiment ends with another mode. What its learners have learned is not lost by mistake: the placement takes over the
// learner whose policy it gets, with a version of its own one; otherwise the end must be asked for.
func TestEndOfAnExperiment(t *testing.T) {
	const learning = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"%d"},"attribution_window":"30m"}`
	begun := func(t *testing.T) (*decision.Engine, *memlog.Store, *boutique) {
		store := new(memlog.Store)
		e := opened(t, decision.Options{Store: store, Build: buildFixed})
		put(t, e, "home", onTrial(fourVariants))
		s := newBoutique(t, e, 0.1, 0.5, 0.1)
		s.serve(300, 200)
		return e, store, s
	}
	ended := func(t *testing.T, e *decision.Engine, store *memlog.Store) api.ExperimentReport {
		all, err := e.Experiments("home")
		if err != nil || all.Experiment != nil || len(all.Past) != 1 || all.Past[0].Ended == nil || all.Past[0].Name != "summer" {
			t.Fatalf("%+v, %v", all, err)
		}
		replays(t, e, decision.Options{Store: store, Build: buildFixed})
		a := fatal.Or(decision.NewAudit(buildFixed, nil))(t)
		defer a.Close()
		if faults := audited(t, a, store); faults != nil {
			t.Errorf("an audit finds %q", faults)
		}
		return all.Past[0]
	}
	t.Run("adopted", func(t *testing.T) {
		e, store, s := begun(t)
		rounds := s.report().Variants[2].Learner.Learned
		if v, err := e.Preview(t.Context(), "home", fmt.Appendf(nil, learning, 1), decision.Change{}); err != nil || v.Change != api.PreviewAdopt || v.Lost != nil {
			t.Errorf("the preview is %+v, %v", v, err)
		}
		fatal.Or(e.Put(t.Context(), "home", fmt.Appendf(nil, learning, 1), s.now))(t)
		stats, err := e.Stats("home")
		if err != nil || stats.Learned != rounds || rounds == 0 {
			t.Errorf("the learner has %d rounds, it had %d; %v", stats.Learned, rounds, err)
		}
		a, err := e.Decide(t.Context(), "home", stock("", 3), s.now)
		if err != nil || a.Shown[0] != "sku1" || a.Variant != "" {
			t.Errorf("%+v, %v", a, err)
		}
		if past := ended(t, e, store); past.Variants[1].Learner.Policy["name"] != "0" {
			t.Errorf("the report has the policy %v", past.Variants[1].Learner.Policy)
		}
		versions, err := e.Versions("home")
		if err != nil || len(versions) != 1 || !versions[0].OtherLearner || versions[0].Note != `before variant "rival" of the experiment "summer"` {
			t.Fatalf("the versions are %+v, %v", versions, err)
		}
		fatal.If(t, e.RollBack(t.Context(), "home", versions[0].Version, nil, s.now))
		if c, _ := e.Config("home"); c.Mode != api.Learn || c.Policy["name"] != "0" {
			t.Errorf("after a roll back the placement is %s", c.Canonical())
		}
		replays(t, e, decision.Options{Store: store, Build: buildFixed})
	})
	t.Run("not by mistake", func(t *testing.T) {
		e, store, s := begun(t)
		wait(t, e)
		var loss *decision.LossError
		_, err := e.Put(t.Context(), "home", fmt.Appendf(nil, learning, 0), s.now)
		if !errors.As(err, &loss) || loss.Experiment != "summer" || !slices.Equal(loss.Variants, []string{"rival"}) || loss.Rounds != s.report().Variants[2].Learner.Learned {
			t.Fatalf("%+v, %v", loss, err)
		}
		if v, err := e.Preview(t.Context(), "home", fmt.Appendf(nil, learning, 0), decision.Change{}); err != nil || v.Change != api.PreviewEnd || v.Lost == nil || v.Lost.Rounds != loss.Rounds {
			t.Errorf("the preview is %+v, %v", v, err)
		}
		put(t, e, "home", fmt.Sprintf(learning, 0))
		ended(t, e, store)
		if stats, err := e.Stats("home"); err != nil || stats.Learned == 0 {
			t.Errorf("the placement's learner has %d rounds, %v", stats.Learned, err)
		}
	})
	t.Run("another one", func(t *testing.T) {
		e, store, _ := begun(t)
		put(t, e, "home", onTrial(strings.Replace(fourVariants, "summer", "autumn", 1)))
		all, err := e.Experiments("home")
		if err != nil || all.Experiment == nil || all.Experiment.Name != "autumn" || len(all.Past) != 1 || all.Experiment.Decisions != 0 || all.Experiment.Variants[2].Learner.Learned != 0 {
			t.Errorf("%+v, %v", all, err)
		}
		replays(t, e, decision.Options{Store: store, Build: buildFixed})
	})
	t.Run("with another policy", func(t *testing.T) {
		e, store, _ := begun(t)
		put(t, e, "home", strings.Replace(onTrial(fourVariants), `"policy":{"name":"0"}`, `"policy":{"name":"2"}`, 1))
		all, err := e.Experiments("home")
		if err != nil || all.Experiment == nil || len(all.Past) != 1 || all.Experiment.Decisions != 0 {
			t.Errorf("%+v, %v", all, err)
		}
		versions, err := e.Versions("home")
		if err != nil || len(versions) != 1 {
			t.Fatalf("the versions are %+v, %v", versions, err)
		}
		if err := e.RollBack(t.Context(), "home", versions[0].Version, nil, 0); !errors.Is(err, decision.ErrExperiment) {
			t.Errorf("a roll back to another learner: %v", err)
		}
		if _, err := e.Change(t.Context(), "home", fmt.Appendf(nil, learning, 3), decision.Change{Relearn: true}, 0); !errors.Is(err, decision.ErrExperiment) {
			t.Errorf("a relearning: %v", err)
		}
		replays(t, e, decision.Options{Store: store, Build: buildFixed})
	})
}

// What is wrong with an experiment, and what must not change while it runs, is named.
func TestBadExperiments(t *testing.T) {
	const a, b = `{"name":"a","show":"policy","share":0.5}`, `{"name":"b","show":"baseline","share":0.5}`
	of := func(fields string) string { return onTrial(`{"name":"x",` + fields + `}`) }
	for text, want := range map[string]string{
		strings.Replace(onTrial(fourVariants), `"mode":"experiment"`, `"mode":"learn"`, 1): `/experiment: is for the mode "experiment", and the mode is "learn": leave it out`,
		`{"max_size":1,"features":[{"name":"x","kind":"number"}],"mode":"experiment"}`:     `/experiment: is missing: in the mode "experiment" it says what is compared`,
		onTrial(`{"variants":[` + a + `,` + b + `]}`):                                      `/experiment/name: "": must have from 1 to 100 bytes`,
		of(`"variants":[` + a + `]`):                                                       `/experiment/variants: has 1 variants: must have from 2 to 20`,
		of(`"variants":[` + a + `,{"name":"b","show":"baseline","share":0.4}]`):            `/experiment/variants: the shares sum to 0.9: must sum to 1`,
		of(`"variants":[` + a + `,{"name":"b","show":"baseline","share":0.6}]`):            `/experiment/variants: the shares sum to 1.1: must sum to 1`,
		of(`"variants":[` + a + `,` + a + `]`):                                             `/experiment/variants/1/name: "a" is the name of variant 0 too`,
		of(`"variants":[` + a + `,{"name":"b c","show":"baseline","share":0.5}]`):          `/experiment/variants/1/name: "b c": must have from 1 to 64 letters`,
		of(`"variants":[` + a + `,{"name":"holdout","show":"baseline","share":0.5}]`):      `/experiment/variants/1/name: "holdout": is the name of the units that take no part`,
		of(`"variants":[` + a + `,{"name":"b","show":"magic","share":0.5}]`):               `/experiment/variants/1/show: "magic": unknown: must be one of policy, baseline, uniform`,
		of(`"variants":[` + a + `,{"name":"b","show":"uniform","share":-0.5}]`):            `/experiment/variants/1/share: -0.5: must be from 0 to 1, in steps of 0.0001`,
		of(`"variants":[` + a + `,{"name":"b","show":"uniform","share":0.50001}]`):         `/experiment/variants/1/share: 0.50001: must be from 0 to 1, in steps of 0.0001`,
		of(`"variants":[` + a + `,{"name":"b","show":"uniform","share":0.5,"policy":{}}]`): `/experiment/variants/1/policy: is for variants that show "policy", and this one shows "uniform"`,
		of(`"variants":[` + a + `,` + b + `],"control":"c"`):                               `/experiment/control: "c": is no variant: must be one of a, b`,
		of(`"variants":[` + a + `,` + b + `],"learn":"none"`):                              `/experiment/learn: "none": unknown: must be one of own, all`,
		of(`"variants":[` + a + `,` + b + `],"holdout":0.6`):                               `/experiment/holdout: 0.6: must be from 0 to 0.5, in steps of 0.0001`,
		of(`"variants":[` + a + `,` + b + `],"worth":-1`):                                  `/experiment/worth: -1: must not be negative`,
		of(`"variants":[` + a + `,` + b + `],"arms":2`):                                    `/experiment/arms: unknown key`,
	} {
		_, err := setup.Parse([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
	e := opened(t, decision.Options{Store: new(memlog.Store), Build: setup.NewLearner, Size: setup.LearnerSize})
	real := strings.NewReplacer(`{"name":"0"}`, `{"name":"ucb-mnl"}`, `{"name":"1"}`, `{"name":"ts-mnl"}`).Replace(onTrial(fourVariants))
	for from, want := range map[string][2]string{
		`{"name":"ts-mnl"}`: {`{"name":"ts-mnl","lambda":-3}`, `/experiment/variants/2/policy: `},
		`"name":"ts-mnl"`:   {`"name":"tsmnl"`, `/experiment/variants/2/policy: `},
	} {
		_, err := e.Put(t.Context(), "home", []byte(strings.Replace(real, from, want[0], 1)), 0)
		if err == nil || !strings.HasPrefix(err.Error(), want[1]) || !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%s: %v, want %s", want[0], err, want[1])
		}
	}
	put(t, e, "home", real)
	const end = ` cannot change while the experiment "summer" runs: end it with another mode, or begin another one under another name`
	for from, want := range map[string][2]string{
		`"name":"rival"`:                  {`"name":"other"`, `/experiment/variants: the variants are ["shop" "own" "rival" "chance"], not ["shop" "own" "other" "chance"], and` + end},
		`"show":"uniform"`:                {`"show":"policy"`, `/experiment/variants/3/show: is "uniform", not "policy", and` + end},
		`"policy":{"name":"ts-mnl"}`:      {`"policy":{"name":"onl-mnl"}`, `/experiment/variants/2/policy: of variant "rival"` + end},
		`"name":"summer"`:                 {`"name":"summer","control":"own"`, `/experiment/control: is "shop", not "own", and` + end},
		`"name":"summer",`:                {`"name":"summer","learn":"all",`, `/experiment/learn: is "own", not "all", and` + end},
		`"attribution_window":"30m"`:      {`"attribution_window":"20m"`, `/attribution_window: is 30m0s, not 20m0s, and` + end},
		`{"name":"chance","show":"unifor`: {`{"name":"more","show":"baseline","share":0},{"name":"chance","show":"unifor`, `/experiment/variants: the variants are`},
	} {
		_, err := e.Put(t.Context(), "home", []byte(strings.Replace(real, from, want[0], 1)), 0)
		if err == nil || !strings.HasPrefix(err.Error(), want[1]) || !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%s: %v, want %s", want[0], err, want[1])
		}
	}
	for name, c := range map[string]struct {
		change func(*api.Request)
		want   string
	}{
		"no unit":     {func(r *api.Request) { r.Unit = "" }, `/unit: is missing: in the mode "experiment" it says who is shown the same variant each time`},
		"a long unit": {func(r *api.Request) { r.Unit = strings.Repeat("u", 201) }, `/unit: "uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu…": must have at most 200 bytes of UTF-8`},
		"no UTF-8":    {func(r *api.Request) { r.Unit = "\xff" }, `/unit: "\xff": must have at most 200 bytes of UTF-8`},
		"no baseline": {func(r *api.Request) { r.Baseline = nil }, `/baseline: is missing: the experiment shows it to some units`},
	} {
		r := stock("", 3)
		r.Unit, r.Baseline = "u", []string{"sku1"}
		c.change(r)
		if _, err := e.Decide(t.Context(), "home", r, 0); err == nil || !strings.HasPrefix(err.Error(), c.want) || !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if _, err := e.Experiments("cart"); !errors.Is(err, decision.ErrNotFound) {
		t.Errorf("an unknown placement: %v", err)
	}
}

// A request is another one with another unit, in every mode; other modes ignore it.
func TestUnitsElsewhere(t *testing.T) {
	e := opened(t, decision.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", toys)
	r := stock("d", 3)
	r.Unit = "ann"
	for _, repeated := range []bool{false, true} {
		if a, err := e.Decide(t.Context(), "home", r, 0); err != nil || a.Repeated != repeated || a.Variant != "" {
			t.Errorf("%+v, %v", a, err)
		}
	}
	r.Unit = "ben"
	if _, err := e.Decide(t.Context(), "home", r, 0); !errors.Is(err, decision.ErrConflict) {
		t.Errorf("the decision of another unit: %v", err)
	}
}

// A variant whose pages are shown less often than they are asked for is a mismatch, and stops the experiment.
func TestMismatch(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, decision.Options{Store: store, Build: buildFixed})
	put(t, e, "home", onTrial(`{"name":"x","variants":[{"name":"a","show":"policy","share":0.5},{"name":"b","show":"policy","policy":{"name":"1"},"share":0.5}]}`))
	s := newBoutique(t, e, 0, 0)
	for i := range 800 {
		s.now += minute
		r := stock("", 2)
		r.Unit, r.Defer = fmt.Sprint(i), true
		a, err := e.Decide(t.Context(), "home", r, s.now)
		if err == nil && (a.Variant == "a" || i%2 == 0) { // half of b's pages are never seen
			err = e.Activate(t.Context(), "home", a.Decision, s.now)
		}
		fatal.If(t, err)
		s.expire()
	}
	s.now += 40 * minute
	s.expire()
	r := s.report()
	restarted := opened(t, decision.Options{Store: store, Build: buildFixed, Snapshot: snapshot(t, e)})
	if again, err := restarted.Experiments("home"); err != nil || again.Experiment.Ratio != r.Ratio {
		t.Errorf("after a restart the ratio is %+v, %v", again.Experiment.Ratio, err)
	}
	if !r.Ratio.Mismatch || r.Verdict.Rule != api.Stop || !strings.Contains(r.Verdict.Reason, "do not trust") {
		t.Errorf("%+v, %+v, %+v", r.Ratio, r.Verdict, r.Variants)
	}
}

// The stop rule, for differences that are certain, are not, and are too small.
func TestStopRule(t *testing.T) {
	for name, c := range map[string]struct {
		sells []float64 // of items 0, the policy's, and 1, the baseline
		worth float64
		rule  string
	}{
		"gains":             {[]float64{0.8, 0.1}, 0, api.Ship},
		"loses":             {[]float64{0.1, 0.8}, 0, api.Stop},
		"equal":             {[]float64{0.5, 0.5}, 0, api.KeepGoing},
		"not worth its way": {[]float64{0.5, 0.5}, 1.5, api.Stop},
	} {
		t.Run(name, func(t *testing.T) {
			e := opened(t, decision.Options{Store: new(memlog.Store), Build: buildFixed})
			put(t, e, "home", onTrial(fmt.Sprintf(`{"name":"x","worth":%v,"variants":[{"name":"own","show":"policy","share":0.5},{"name":"shop","show":"baseline","share":0.5}]}`, c.worth)))
			s := newBoutique(t, e, c.sells...)
			if r := s.report(); r.Verdict.Rule != api.KeepGoing || r.Counts != nil {
				t.Errorf("before the first decision the verdict is %+v, counted from %v on", r.Verdict, r.Counts)
			}
			s.serve(500, 500)
			if r := s.report(); r.Verdict.Rule != c.rule || r.Control != "shop" || (r.Verdict.Variant == "own") != (c.rule == api.Ship) {
				t.Errorf("the verdict is %+v", r.Verdict)
			}
		})
	}
}

// While no decision counts, the report says when the first ones will: when the last decision that may join their cohort has
// expired. At that time they count.
func TestFirstDecisionsCount(t *testing.T) {
	e := opened(t, decision.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(`{"name":"x","variants":[{"name":"own","show":"policy","share":0.5},{"name":"shop","show":"baseline","share":0.5}]}`))
	s := newBoutique(t, e, 0, 0)
	s.serve(2, 2)
	r := s.report()
	length := int64(30*minute) / 16
	want := (1e18+minute)/length*length + length + 30*minute // the first decision is made after a minute
	if r.Decisions != 0 || r.Counts == nil || r.Counts.UnixNano() != want {
		t.Fatalf("%d decisions count, the first at %v, want %v", r.Decisions, r.Counts, time.Unix(0, want).UTC())
	}
	s.now = want
	s.expire()
	if r := s.report(); r.Decisions == 0 || r.Counts != nil {
		t.Errorf("when the first decisions count, %d do, and the first do at %v", r.Decisions, r.Counts)
	}
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"},"attribution_window":"30m"}`)
	if all, err := e.Experiments("home"); err != nil || all.Past[0].Counts != nil {
		t.Errorf("an experiment that has ended counts decisions from %v on, %v", all.Past[0].Counts, err)
	}
}

// The points stay few, and are in order.
func TestPointsStayFew(t *testing.T) {
	e := opened(t, decision.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", strings.Replace(onTrial(`{"name":"x","variants":[{"name":"own","show":"policy","share":0.5},{"name":"shop","show":"baseline","share":0.5}]}`), "30m", "1m", 1))
	s := newBoutique(t, e, 0.3, 0.3)
	s.serve(700, 50)
	r := s.report()
	if n := len(r.Points); n < 100 || n > 256 {
		t.Fatalf("%d points", n)
	}
	gap := func(at int) time.Duration { return r.Points[at+1].Time.Sub(r.Points[at].Time) }
	for _, at := range []int{20, 60, len(r.Points) - 10} {
		if gap(at) != gap(10) || gap(at) < 2*time.Minute {
			t.Errorf("point %d is %v before the next one, and point 10 %v", at, gap(at), gap(10))
		}
	}
	for i := range r.Points[1:] {
		if !r.Points[i].Time.Before(r.Points[i+1].Time) || r.Points[i].Decisions > r.Points[i+1].Decisions {
			t.Fatalf("point %d is at %v, and the one before at %v", i+1, r.Points[i+1].Time, r.Points[i].Time)
		}
	}
	if last := r.Points[len(r.Points)-1]; last.Means[0].High <= last.Means[0].Low || last.Differences[0].High <= 0 || last.Differences[1] != (api.Interval{}) {
		t.Errorf("the last point is %+v", last)
	}
}

// Each mode, and each learner that begins, is an era; a decision counts in the era in which it was made.
func TestEras(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, decision.Options{Store: store, Build: buildFixed})
	const config = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"%d"},"mode":"%s","explore_share":%v}`
	s := newBoutique(t, e, 0.5, 0.5)
	decide := func(id string, baseline bool) {
		t.Helper()
		r := stock(id, 2)
		if baseline {
			r.Baseline = []string{"sku1"}
		}
		decide(t, e, "home", r, s.now)
	}
	close := func(id, item string) {
		t.Helper()
		fatal.If(t, e.Outcome(t.Context(), "home", id, item, s.now))
	}
	put(t, e, "home", fmt.Sprintf(config, 0, "shadow", 0))
	decide("a", true)
	decide("b", true)
	close("a", "sku1")
	put(t, e, "home", fmt.Sprintf(config, 0, "explore", 1))
	close("b", "sku1") // of the era before
	decide("c", false)
	decide("d", false)
	close("c", "")
	close("d", "")
	put(t, e, "home", fmt.Sprintf(config, 0, "explore", 1)) // nothing changes
	put(t, e, "home", fmt.Sprintf(config, 1, "learn", 0))
	decide("e", false)
	stats := fatal.Or(e.Stats("home"))(t)
	have := [][]any{}
	for _, x := range stats.Eras {
		shadow := uint64(0)
		if x.Shadow != nil {
			shadow = x.Shadow.Rounds
		}
		have = append(have, []any{x.Began, x.Mode, x.Decisions, x.ByBaseline.Rounds, x.ByChance.Rounds, x.ByPolicy.Rounds, shadow})
	}
	want := [][]any{
		{api.BegunByCreation, "shadow", uint64(2), uint64(2), uint64(0), uint64(0), uint64(2)},
		{api.BegunByMode, "explore", uint64(2), uint64(0), uint64(2), uint64(0), uint64(0)},
		{api.BegunByReset, "learn", uint64(1), uint64(0), uint64(0), uint64(0), uint64(0)},
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if stats.Uplift != nil {
		t.Errorf("an era without exploration has the uplift %+v", stats.Uplift)
	}
	replays(t, e, decision.Options{Store: store, Build: buildFixed})
}

// An outcome that comes after the end of the experiment of its decision is learned by the placement's learner.
func TestOutcomesAfterTheEnd(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, decision.Options{Store: store, Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	for i := range 20 {
		r := stock(fmt.Sprint(i), 3)
		r.Unit, r.Baseline = fmt.Sprint(i), []string{"sku2"}
		decide(t, e, "home", r, 0)
	}
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"},"attribution_window":"30m"}`)
	for i := range 20 {
		fatal.If(t, e.Outcome(t.Context(), "home", fmt.Sprint(i), "", 1))
	}
	wait(t, e)
	if s, err := e.Stats("home"); err != nil || s.Learned != 20 {
		t.Errorf("%d rounds are learned, %v", s.Learned, err)
	}
	if d, err := e.Decision(t.Context(), "home", "3"); err != nil || d.Answer.Variant == "" {
		t.Errorf("%+v, %v", d, err)
	}
	replays(t, e, decision.Options{Store: store, Build: buildFixed})
}

// The shares that an experiment has are those of the buckets: of many units each variant gets its share.
func TestShares(t *testing.T) {
	e := opened(t, decision.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	have := map[string]float64{}
	const n = 5000
	for i := range n {
		r := stock("", 3)
		r.Unit, r.Baseline = fmt.Sprint("u", i), []string{"sku2"}
		a := decide(t, e, "home", r, 0)
		have[a.Variant]++
	}
	for name, p := range map[string]float64{"shop": 0.36, "own": 0.27, "rival": 0.18, "chance": 0.09, api.Holdout: 0.1} {
		if z := (have[name] - n*p) / math.Sqrt(n*p*(1-p)); math.Abs(z) > 4 {
			t.Errorf("%s has %v of %d units, want a share of %v", name, have[name], n, p)
		}
	}
	if variants.Buckets != 10_000 {
		t.Error("the documentation says that there are 10,000 buckets")
	}
}

// The evidence about the ratio is that of the units of each phase that count, and the sums by buckets those of the decisions of a
// bucket while it has a variant, also if shares and holdout change while decisions wait.
func TestSumsOfAnExperiment(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, decision.Options{Store: store, Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	s := newBoutique(t, e, 0.3, 0.5, 0.3)
	type asked struct {
		id, unit, variant string
		bucket, phase     int
		waits             bool // at the change
	}
	var all []asked
	serve := func(n, phase int, units string) {
		for range n {
			s.n++
			s.now += minute
			r := stock(fmt.Sprint("d", s.n), 3)
			r.Unit, r.Baseline = fmt.Sprint(units, s.rng.IntN(150)), []string{"sku2"}
			a, err := e.Decide(t.Context(), "home", r, s.now)
			if err == nil && s.rng.IntN(2) == 0 {
				err = e.Outcome(t.Context(), "home", a.Decision, a.Shown[0], s.now)
			}
			fatal.If(t, err)
			all = append(all, asked{id: a.Decision, unit: r.Unit, variant: a.Variant, bucket: variants.Bucket(variants.Unit("home", r.Unit), 1), phase: phase})
			s.expire()
		}
	}
	units := func(r *api.ExperimentReport) (n []float64) {
		for _, v := range append(r.Variants, *r.HeldOut) {
			n = append(n, float64(v.Units))
		}
		return n
	}
	evidence := func(n, p []float64) (log float64) {
		lgamma := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
		total := 0.0
		for i := range n {
			total += n[i]
			log += lgamma(100*p[i]+n[i]) - lgamma(100*p[i]) - n[i]*math.Log(p[i])
		}
		return log + lgamma(100) - lgamma(100+total)
	}
	serve(300, 0, "u")
	first := units(s.report())
	want := evidence(first, []float64{0.36, 0.27, 0.18, 0.09, 0.1})
	if log, _, _ := e.Evidence("home"); math.Abs(log-want) > 1e-9 {
		t.Errorf("the evidence is %v, want %v", log, want)
	}
	for i := range all {
		d := fatal.Or(e.Decision(t.Context(), "home", all[i].id))(t)
		all[i].waits = d.Status == "open"
	}
	changed := strings.NewReplacer(`"holdout":0.1`, `"holdout":0.2`, `"share":0.4`, `"share":0.1`, `"share":0.3`, `"share":0.6`).Replace(fourVariants)
	fatal.Or(e.Put(t.Context(), "home", []byte(onTrial(changed)), s.now))(t)
	serve(200, 1, "u")
	serve(200, 1, "new")
	s.now += 40 * minute
	s.expire()
	serve(1, 1, "last")
	all = all[:len(all)-1] // it waits
	second := make([]float64, 5)
	names := map[string]int{"shop": 0, "own": 1, "rival": 2, "chance": 3, api.Holdout: 4}
	seen := map[string]bool{}
	for _, a := range all {
		if !seen[a.unit] && a.phase == 1 {
			second[names[a.variant]]++
		}
		seen[a.unit] = true
	}
	want += evidence(second, []float64{0.08, 0.48, 0.16, 0.08, 0.2})
	log, sums, table := e.Evidence("home")
	if math.Abs(log-want) > 1e-9 {
		t.Errorf("after the change the evidence is %v, want %v", log, want)
	}
	type cluster struct{ n, x float64 }
	clusters := map[string]*cluster{}
	for i, a := range all {
		key := fmt.Sprint(a.variant, a.bucket)
		if a.waits && int(table[a.bucket]) != names[a.variant] {
			key = fmt.Sprint(a.variant, " alone ", i) // it closed after its bucket had moved
		}
		if clusters[key] == nil {
			clusters[key] = new(cluster)
		}
		clusters[key].n++
		if d, _ := e.Decision(t.Context(), "home", a.id); d.Choice != "" {
			clusters[key].x++
		}
	}
	for v, is := range s.report().Variants {
		if is.Difference == nil {
			continue
		}
		lead := sums.Pairs[variants.PairCount(v)] // above variant 0, the control
		if is.Difference.Low > max(lead.Low(0.05/6/2), -2) || is.Difference.High < min(lead.High(0.05/6/2), 2) {
			t.Errorf("%s has the difference %+v, want one that holds together with five others", is.Name, is.Difference)
		}
	}
	for name, v := range names {
		if v == 4 {
			continue
		}
		var ss, nn float64
		for key, c := range clusters {
			if strings.HasPrefix(key, name) {
				ss, nn = ss+c.x*c.x, nn+c.n*c.n
			}
		}
		if q := sums.Variants[v].Sum; q.SS != ss || q.NN != nn {
			t.Errorf("%s has the sums of squares %v and %v, want %v and %v", name, q.SS, q.NN, ss, nn)
		}
	}
}

// A cohort counts once it is over, and not while decisions may still come into it: sales that are reported at once would come
// first.
func TestCohortsCountOnceTheyAreOver(t *testing.T) {
	e := opened(t, decision.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	for i := range 3 {
		r := stock(fmt.Sprint(i), 3)
		r.Unit, r.Baseline = fmt.Sprint(i), []string{"sku2"}
		now := int64(1e18) + int64(i)*int64(time.Minute)
		a, err := e.Decide(t.Context(), "home", r, now)
		if err == nil {
			err = e.Outcome(t.Context(), "home", a.Decision, a.Shown[0], now)
		}
		fatal.If(t, err)
		all, err := e.Experiments("home")
		want, cohort := uint64(0), int64(30*time.Minute)/16
		for j := range i {
			if (int64(1e18)+int64(j)*int64(time.Minute))/cohort < now/cohort {
				want++
			}
		}
		if err != nil || all.Experiment.Decisions+all.Experiment.HeldOut.Group.Rounds != want {
			t.Errorf("after %d decisions %d count, want %d; %v", i+1, all.Experiment.Decisions, want, err)
		}
	}
}

// The reports of the last ten experiments stay.
func TestPastExperiments(t *testing.T) {
	e := opened(t, decision.Options{Store: new(memlog.Store), Build: buildFixed})
	for i := range 13 {
		put(t, e, "home", onTrial(strings.Replace(fourVariants, "summer", fmt.Sprint("number ", i), 1)))
	}
	all, err := e.Experiments("home")
	if err != nil || len(all.Past) != 10 || all.Past[0].Name != "number 2" || all.Past[9].Name != "number 11" {
		t.Errorf("%d reports, %v", len(all.Past), err)
	}
	stats, err := e.Stats("home")
	if err != nil || len(stats.Eras) != 13 {
		t.Fatalf("%d eras, %v", len(stats.Eras), err)
	}
	for i := range 10 {
		put(t, e, "home", onTrial(strings.Replace(fourVariants, "summer", fmt.Sprint("more ", i), 1)))
	}
	if stats, err = e.Stats("home"); err != nil || len(stats.Eras) != 20 || stats.Eras[19].Experiment != "more 9" {
		t.Errorf("%d eras, %v", len(stats.Eras), err)
	}
}

// The guard and the calibration are about the placement's own policy: a rival that sells nothing raises no alarm.
func TestGuardInAnExperiment(t *testing.T) {
	e := opened(t, decision.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(`{"name":"x","variants":[{"name":"own","show":"policy","share":0.5},{"name":"rival","show":"policy","policy":{"name":"1"},"share":0.5}]}`))
	s := newBoutique(t, e, 1/(1+math.Exp(-0.5)), 0) // what both predict, and nothing
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

// An offer of another variant than that of its unit is unlawful, and so is one of a variant without an experiment.
func TestOffersOfOtherVariants(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, decision.Options{Store: store, Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	newBoutique(t, e, 0, 0, 0).serve(40, 40)
	for want, change := range map[string]string{
		"and its unit is shown":      strings.NewReplacer(`"share":0.4`, `"share":0.1`, `"share":0.1`, `"share":0.4`).Replace(onTrial(fourVariants)),
		"and there is no experiment": `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"},"attribution_window":"30m"}`,
	} {
		c := fatal.Or(setup.Parse([]byte(change)))(t)
		changed := new(memlog.Store)
		for entry, err := range store.Entries(t.Context(), 1) {
			fatal.If(t, err)
			event, err := eventlog.Decode(entry)
			fatal.If(t, err)
			if p, ok := event.Body.(*eventlog.PlacementPut); ok {
				p.Config = c.Canonical()
				if entry, err = event.Encode(nil); err != nil {
					t.Fatal(err)
				}
			}
			fatal.Or(changed.Append(t.Context(), entry))(t)
		}
		a := fatal.Or(decision.NewAudit(buildFixed, nil))(t)
		if faults := audited(t, a, changed); len(faults) == 0 || !strings.Contains(faults[0], want) {
			t.Errorf("%q, want %s", faults, want)
		}
		a.Close()
	}
}

// A placement is charged for the learners of its variants, and for the sums of the experiment.
func TestChargeOfAnExperiment(t *testing.T) {
	e := opened(t, decision.Options{Store: new(memlog.Store), Build: buildFixed, Size: func(setup.Spec) (setup.Size, error) {
		return setup.Size{Learner: 1000, State: 10}, nil
	}})
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"},"attribution_window":"30m","memory":8000000}`)
	before := fatal.Or(e.Stats("home"))(t)
	put(t, e, "home", strings.Replace(onTrial(fourVariants), `"mode"`, `"memory":8000000,"mode"`, 1))
	after, err := e.Stats("home")
	if want := int64(1<<20 + 1000 + 2*10 + 8000000/2); err != nil || after.Charged-before.Charged != want {
		t.Errorf("the experiment is charged %d bytes, want %d; %v", after.Charged-before.Charged, want, err)
	}
}

// A decision is explained by the learner of its variant, while its experiment runs.
func TestExplainAVariant(t *testing.T) {
	e := opened(t, decision.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	explain := func(id string) *api.Explanation {
		x := fatal.Or(e.Explain(t.Context(), "home", id))(t)
		return x
	}
	policy := map[string]string{"own": "0", "rival": "1"}
	asked := map[string]string{}
	for i := range 60 {
		r := stock(fmt.Sprint(i), 3)
		r.Unit, r.Baseline = fmt.Sprint(i), []string{"sku2"}
		a := decide(t, e, "home", r, 0)
		asked[a.Variant] = a.Decision
	}
	for name, want := range policy {
		if x := explain(asked[name]); x.Policy != want || !x.SamePolicy {
			t.Errorf("%s is explained by %+v", name, x)
		}
	}
	r := stock("", 3) // a request that is only tried shows what the placement's policy would
	if a, _, err := e.Try(t.Context(), "home", r, 0); err != nil || a.Shown[0] != "sku0" || a.Variant != "" {
		t.Errorf("%+v, %v", a, err)
	}
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"},"attribution_window":"30m"}`)
	if x := explain(asked["rival"]); !strings.Contains(strings.Join(x.Unknown, " "), `the experiment of the variant "rival" has ended`) {
		t.Errorf("after the end: %+v", x)
	}
}

// While nothing is certain, the verdict names the variant that is ahead, and not the one of which least is known.
func TestVerdictNamesTheVariantAhead(t *testing.T) {
	e := opened(t, decision.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	s := newBoutique(t, e, 0.6, 0.5, 0.5)
	s.serve(300, 300)
	if r := s.report(); r.Verdict.Rule != api.KeepGoing || !strings.HasPrefix(r.Verdict.Reason, `no gain is certain yet: "own" earns between -`) {
		t.Errorf("the verdict is %+v of %+v", r.Verdict, r.Variants)
	}
}
