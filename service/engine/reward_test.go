package engine_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// rewarded reports rewards of the items shown in several decisions, call after call, and returns how often each place
// was chosen, and place 0, no item.
func rewarded(t *testing.T, rounds int, calls ...map[int]float64) [4]float64 {
	t.Helper()
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", three)
	var count [4]float64
	for i := range rounds {
		r := stock(fmt.Sprint(i), 4)
		r.Slots = without(nil, nil, nil)
		a := decide(t, e, "home", r, 0)
		for _, call := range calls {
			var rewards []api.Reward
			for place, v := range call {
				rewards = append(rewards, api.Reward{Item: a.IDs()[place-1], Value: v})
			}
			fatal.If(t, e.Reward(t.Context(), "home", a.Decision, rewards, 1))
		}
		d, err := e.Decision(t.Context(), "home", a.Decision)
		if err != nil || d.Status == "expired" {
			t.Fatalf("%+v, %v", d, err)
		}
		place := 0
		for k, id := range a.IDs() {
			if id == d.Choice {
				place = k + 1
			}
		}
		count[place]++
	}
	if i := rounds - 1; i > 0 {
		live := snapshot(t, e)
		if string(live) != string(replayed(t, engine.Options{Store: store, Build: buildToy})) {
			t.Error("a replay has another state")
		}
	}
	return count
}

// Choices equal rewards in expectation, whether these come at once or in parts; rewards of 0 and 1 are exact.
func TestRewards(t *testing.T) {
	const rounds = 1000
	type reported = map[int]float64
	for _, c := range []struct {
		calls []reported
		want  [4]float64
	}{
		{[]reported{{1: 0, 2: 0, 3: 0}}, [4]float64{1, 0, 0, 0}},
		{[]reported{{1: 0, 2: 1, 3: 0}}, [4]float64{0, 0, 1, 0}},
		{[]reported{{3: 1}}, [4]float64{0, 0, 0, 1}},
		{[]reported{{1: 0}, {3: 1}}, [4]float64{0, 0, 0, 1}},
		{[]reported{{1: 0}, {1: 1}, {2: 0, 3: 0}}, [4]float64{1, 0, 0, 0}}, // the first one of an item counts
		{[]reported{{1: 0.2, 2: 0.3, 3: 0.1}}, [4]float64{0.4, 0.2, 0.3, 0.1}},
		{[]reported{{1: 1, 2: 0.5, 3: 0.5}}, [4]float64{0, 0.5, 0.25, 0.25}},
		{[]reported{{2: 0.3}, {1: 0.2}, {3: 0.1}}, [4]float64{0.4, 0.2, 0.3, 0.1}},
		{[]reported{{2: 0.3, 1: 0.2}, {3: 0.5}}, [4]float64{0, 0.2, 0.3, 0.5}},
		{[]reported{{1: 0.6}, {2: 0.6}, {3: 0.6}}, [4]float64{0, 0.6, 0.4, 0}}, // the rest of the choice
		{[]reported{{1: 0.5}, {2: 1, 3: 1}}, [4]float64{0, 0.5, 0.25, 0.25}},
	} {
		have := rewarded(t, rounds, c.calls...)
		for place, p := range c.want {
			sd := math.Sqrt(rounds * p * (1 - p))
			if d := have[place] - rounds*p; math.Abs(d) > 4*sd+1e-9 {
				t.Errorf("rewards %v: place %d was chosen %v times of %d, want a share of %v", c.calls, place,
					have[place], rounds, p)
			}
		}
	}
}

func TestRewardsThatChangeNothing(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", three)
	a := decide(t, e, "home", stock("a", 4), 0)
	tell := func(id string, now int64, rewards ...api.Reward) error {
		return e.Reward(t.Context(), "home", id, rewards, now)
	}
	is(t, "unknown", tell("b", 1), engine.ErrNotFound)
	is(t, "not shown", tell("a", 1, api.Reward{Item: "sku9"}), engine.ErrNotShown)
	for _, v := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		is(t, "a value", tell("a", 1, api.Reward{Item: a.IDs()[0], Value: v}), api.ErrInvalid)
	}
	is(t, "more than any page has", tell("a", 1, slices.Repeat([]api.Reward{{Item: a.IDs()[0]}}, setup.MaxSize+1)...),
		api.ErrInvalid)
	before := e.Sequence()
	is(t, "none", tell("a", 1), nil)
	expect.Equal(t, e.Sequence(), before, "no reward is in the log")
	is(t, "a part", tell("a", 1, api.Reward{Item: a.IDs()[0]}), nil)
	is(t, "the same part", tell("a", 1, api.Reward{Item: a.IDs()[0], Value: 1}), nil)
	expect.Equal(t, e.Sequence(), before+1, e.Sequence()-before, "entries")
	is(t, "an outcome against it", e.Outcome(t.Context(), "home", "a", a.IDs()[0], 1), engine.ErrConflict)
	is(t, "an outcome", e.Outcome(t.Context(), "home", "a", a.IDs()[1], 1), nil)
	is(t, "after it", tell("a", 1, api.Reward{Item: a.IDs()[2], Value: 1}), nil)
	if d, _ := e.Decision(t.Context(), "home", "a"); d.Choice != a.IDs()[1] || e.Sequence() != before+2 {
		t.Errorf("decision %+v, %d entries", d, e.Sequence()-before)
	}
	c := decide(t, e, "home", stock("c", 4), 0)
	is(t, "late", tell("c", 31*minute, api.Reward{Item: c.IDs()[0], Value: 1}), nil)
	if d, _ := e.Decision(t.Context(), "home", "c"); d.Status != "expired" {
		t.Errorf("decision %+v", d)
	}
}

// An outcome in parts that no engine can have written is refused.
func TestUnlawfulParts(t *testing.T) {
	offer := &eventlog.Offered{
		Decision: "a", Candidates: 2, ItemIDs: []string{"i", "j"}, Width: 1, Features: []float64{1, 2},
		Shown: []int32{0, 1}, Mode: offer.ByPolicy, Answer: []byte{1, 0, 1},
	}
	pass := func(reward float64, items ...int32) eventlog.Body {
		return &eventlog.ItemsDeclined{Decision: "a", Items: items, Reward: reward}
	}
	deferred := *offer
	deferred.Answer = []byte{1, 8, 1}
	for want, bodies := range map[string][]eventlog.Body{
		`entry 3, placement "home": decision "a" is activated, and does not wait to be`: {
			offer, &eventlog.Activated{Decision: "a"}},
		`entry 4, placement "home": decision "a" is activated, and does not wait to be`: {
			&deferred, &eventlog.Activated{Decision: "a"}, &eventlog.Activated{Decision: "a"}},
		`entry 3, placement "home": decision "b": not found`: {
			offer, &eventlog.Activated{Decision: "b"}},
		`entry 4, placement "home": decision "a" has its outcome already`: {
			&deferred, &eventlog.Expired{Decision: "a"}, &eventlog.Activated{Decision: "a"}},
		`entry 3, placement "home": of the 2 items of decision "a" [1 2] are passed with a reward of 0, after`: {
			offer, pass(0, 1, 2)},
		`entry 3, placement "home": item 3 of the 2 of decision "a" is not there to be passed`: {
			offer, pass(0, 3)},
		`entry 4, placement "home": of the 2 items of decision "a" [2] are passed with a reward of 0.7, after 1`: {
			offer, pass(0.5, 1), pass(0.7, 2)},
		`entry 4, placement "home": item 1 of decision "a" was chosen after it was passed`: {
			offer, pass(0.5, 1), &eventlog.Chosen{Decision: "a", Choice: 1}},
	} {
		store := written(t, append([]eventlog.Body{&eventlog.PlacementPut{Config: []byte(three)}}, bodies...)...)
		_, err := engine.Open(t.Context(), engine.Options{Store: store, Build: buildToy})
		if err == nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
