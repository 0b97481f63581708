package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// A change of the shares moves only units of variants that shrink, and begins a phase of its own; knowledge and counts
// stay.
func TestChangeOfShares(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	s := newBoutique(t, e, 0.1, 0.5, 0.1)
	s.serve(300, 200)
	before := maps.Clone(s.variants)
	changed := strings.NewReplacer(`"holdout_share":0.1`, `"holdout_share":0.15`, `"share":0.4`, `"share":0.2`,
		`"share":0.3`, `"share":0.5`).Replace(fourVariants)
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
	if moved == 0 || len(r.Phases) != 2 || r.Phases[1].Moved != 0.2 ||
		!slices.Equal(r.Phases[1].Shares, []float64{0.2, 0.5, 0.2, 0.1}) {
		t.Errorf("%d units moved, the phases are %+v", moved, r.Phases)
	}
	for _, v := range r.Variants {
		expect.Equal(t, v.Group, *s.groups[v.Name], v.Name)
	}
	replays(t, e, engine.Options{Store: store, Build: buildFixed})
}

// An experiment ends with another mode. Its learners are not lost by mistake: the placement takes over the learner of
// the policy that it gets, and keeps a version of its own; otherwise the end must be asked for.
func TestEndOfAnExperiment(t *testing.T) {
	const learning = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"%d"},"attribution_window":"30m"}`
	memory := budget.New(1 << 40)
	size := func(setup.Spec) (setup.Size, error) { return setup.Size{Learner: 1000, State: 10}, nil }
	begun := func(t *testing.T) (*engine.Engine, *memlog.Store, *boutique) {
		store := new(memlog.Store)
		e := opened(t, engine.Options{Store: store, Build: buildFixed, Size: size, Budget: memory})
		put(t, e, "home", onTrial(fourVariants))
		s := newBoutique(t, e, 0.1, 0.5, 0.1)
		s.serve(300, 200)
		return e, store, s
	}
	ended := func(t *testing.T, e *engine.Engine, store *memlog.Store) api.ExperimentReport {
		all, err := e.Experiments("home")
		if err != nil || all.Experiment != nil || len(all.Past) != 1 || all.Past[0].Ended == nil ||
			all.Past[0].Left != nil || all.Past[0].Name != "summer" {
			t.Fatalf("%+v, %v", all, err)
		}
		for _, v := range all.Past[0].Variants {
			if v.Learner != nil && v.Learner.Learned != nil {
				t.Errorf("the report says that %s had learned %d rounds, which it does not know", v.Name, *v.Learner.Learned)
			}
		}
		replays(t, e, engine.Options{Store: store, Build: buildFixed})
		a := fatal.Or(engine.NewAudit(buildFixed, nil))(t)
		defer a.Close()
		if faults := audited(t, a, store); faults != nil {
			t.Errorf("an audit finds %q", faults)
		}
		return all.Past[0]
	}
	t.Run("adopted", func(t *testing.T) {
		e, store, s := begun(t)
		rounds := *s.report().Variants[2].Learner.Learned
		taken := memory.Placements() - memory.Usage().Placements - 1000
		fatal.If(t, memory.Hold(taken)) // the rest is too little for another placement
		defer memory.Charge(-taken)
		if v, err := e.Preview(t.Context(), "home", fmt.Appendf(nil, learning, 1), engine.Change{}, 1e18); err != nil ||
			v.Change != api.PreviewAdopt || v.Lost != nil {
			t.Errorf("the preview is %+v, %v", v, err)
		}
		fatal.Or(e.Put(t.Context(), "home", fmt.Appendf(nil, learning, 1), s.now))(t)
		stats, err := e.Stats("home")
		if err != nil || stats.Learned != rounds || rounds == 0 {
			t.Errorf("the learner has %d rounds, it had %d; %v", stats.Learned, rounds, err)
		}
		a, err := e.Decide(t.Context(), "home", stock("", 3), s.now)
		if err != nil || a.IDs()[0] != "sku1" || a.Variant != "" {
			t.Errorf("%+v, %v", a, err)
		}
		if past := ended(t, e, store); past.Variants[1].Learner.Policy["name"] != "0" {
			t.Errorf("the report has the policy %v", past.Variants[1].Learner.Policy)
		}
		versions, err := e.Versions("home", 0)
		if err != nil || len(versions) != 1 || !versions[0].OtherLearner ||
			versions[0].Note != `before variant "rival" of the experiment "summer"` {
			t.Fatalf("the versions are %+v, %v", versions, err)
		}
		fatal.If(t, e.RollBack(t.Context(), "home", versions[0].Version, nil, s.now))
		if c, _ := e.Config("home"); c.Mode != api.Learn || c.Policy["name"] != "0" {
			t.Errorf("after a roll back the placement is %s", c.Canonical())
		}
		replays(t, e, engine.Options{Store: store, Build: buildFixed})
	})
	t.Run("not by mistake", func(t *testing.T) {
		e, store, s := begun(t)
		wait(t, e)
		var loss *engine.LossError
		_, err := e.Put(t.Context(), "home", fmt.Appendf(nil, learning, 0), s.now)
		if !errors.As(err, &loss) || loss.Experiment != "summer" || !slices.Equal(loss.Variants, []string{"rival"}) ||
			loss.Rounds != *s.report().Variants[2].Learner.Learned {
			t.Fatalf("%+v, %v", loss, err)
		}
		if v, err := e.Preview(t.Context(), "home", fmt.Appendf(nil, learning, 0), engine.Change{}, 1e18); err != nil ||
			v.Change != api.PreviewEnd || v.Lost == nil || v.Lost.Rounds != loss.Rounds {
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
		if err != nil || all.Experiment == nil || all.Experiment.Name != "autumn" || len(all.Past) != 1 ||
			all.Experiment.Decisions != 0 || *all.Experiment.Variants[2].Learner.Learned != 0 {
			t.Errorf("%+v, %v", all, err)
		}
		replays(t, e, engine.Options{Store: store, Build: buildFixed})
	})
	t.Run("with another policy", func(t *testing.T) {
		e, store, _ := begun(t)
		put(t, e, "home", strings.Replace(onTrial(fourVariants), `"policy":{"name":"0"}`, `"policy":{"name":"2"}`, 1))
		all, err := e.Experiments("home")
		if err != nil || all.Experiment == nil || len(all.Past) != 1 || all.Experiment.Decisions != 0 {
			t.Errorf("%+v, %v", all, err)
		}
		versions, err := e.Versions("home", 0)
		if err != nil || len(versions) != 1 {
			t.Fatalf("the versions are %+v, %v", versions, err)
		}
		expect.Error(t, e.RollBack(t.Context(), "home", versions[0].Version, nil, 0), engine.ErrExperiment,
			"a roll back to another learner")
		expect.Fails(e.Change(t.Context(), "home", fmt.Appendf(nil, learning, 3), engine.Change{Relearn: true},
			0))(t, engine.ErrExperiment, "a relearning")
		replays(t, e, engine.Options{Store: store, Build: buildFixed})
	})
}

// An outcome that comes after the end of the experiment of its decision is learned by the placement's learner.
func TestOutcomesAfterTheEnd(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	for i := range 20 {
		r := stock(fmt.Sprint(i), 3)
		r.ShopperID, r.Baseline = fmt.Sprint(i), []string{"sku2"}
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
	if d, err := e.Decision(t.Context(), "home", "3"); err != nil || d.Offer.Variant == "" {
		t.Errorf("%+v, %v", d, err)
	}
	replays(t, e, engine.Options{Store: store, Build: buildFixed})
}

// The reports of the last ten experiments stay.
func TestPastExperiments(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	for i := range 13 {
		put(t, e, "home", onTrial(strings.Replace(fourVariants, "summer", fmt.Sprint("number ", i), 1)))
	}
	all, err := e.Experiments("home")
	if err != nil || len(all.Past) != 10 || all.Past[0].Name != "number 2" || all.Past[9].Name != "number 11" {
		t.Errorf("%d reports, %v", len(all.Past), err)
	}
}
