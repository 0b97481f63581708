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

const three = `{"max_size":3,"features":[{"name":"x","kind":"number"}],"policy":{}}`

// without returns slots that exclude items.
func without(exclude ...[]string) []api.Slot {
	slots := make([]api.Slot, len(exclude))
	for k := range slots {
		slots[k].Exclude = exclude[k]
	}
	return slots
}

// Each slot gets an item that it takes, the first ones the most probable items that leave the others fillable.
func TestSlots(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", three)
	for _, c := range []struct {
		slots   []api.Slot
		exclude []string
		want    []string // the toy likes low numbers
	}{
		{without(nil), nil, []string{"sku0"}},
		{without([]string{"sku0"}), nil, []string{"sku1"}},
		{without(nil, nil, nil), nil, []string{"sku0", "sku1", "sku2"}},
		{without([]string{"sku0", "sku1"}, nil, nil), nil, []string{"sku2", "sku0", "sku1"}},
		{without([]string{"sku0"}, []string{"sku0"}), nil, []string{"sku1", "sku2"}},
		{without(nil, []string{"sku1", "sku2", "sku3"}), nil, []string{"sku1", "sku0"}}, // the second takes only sku0
		{without(nil, nil), []string{"sku0"}, []string{"sku1", "sku2"}},
	} {
		r := stock("", 4)
		r.Slots, r.Exclude = c.slots, c.exclude
		a := decide(t, e, "home", r, 0)
		if !slices.Equal(a.IDs(), c.want) || !a.Certain || a.Propensity != 1 {
			t.Errorf("%+v without %v: %+v, want %v", c.slots, c.exclude, a, c.want)
		}
		sum, v := 1.0, func(id string) float64 { return math.Exp(-float64(id[3]-'0') / 10) }
		for _, id := range a.IDs() {
			sum += v(id)
		}
		for k, id := range a.IDs() {
			if p := v(id) / sum; math.Abs(a.Probability[k]-p) > 1e-12 {
				t.Errorf("p(%s) = %v, want %v", id, a.Probability[k], p)
			}
		}
	}
}

func TestSlotsThatAreRefused(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", three)
	for want, change := range map[string]func(*api.Request){
		"/slots: must have at least one":               func(r *api.Request) { r.Slots = []api.Slot{} },
		"/slots: 4 slots, the placement shows at most": func(r *api.Request) { r.Slots = without(nil, nil, nil, nil) },
		"/slots: slot 2 takes none of the 2 items": func(r *api.Request) {
			r.Slots = without(nil, []string{"sku0", "sku1"})
		},
		"/slots: slot 1, slot 2 and slot 3: together they take 2 items": func(r *api.Request) {
			r.Slots = without(nil, nil, nil)
		},
		"/max_size: does not go together": func(r *api.Request) { r.Slots, r.MaxSize = without(nil), 1 },
		"/include: does not go together":  func(r *api.Request) { r.Slots, r.Include = without(nil), []string{"sku0"} },
		"/limits: does not go together": func(r *api.Request) {
			r.Slots, r.Limits = without(nil), []api.Limit{{Items: []string{"sku0"}}}
		},
		"/slots/1/id: all slots have an id": func(r *api.Request) { r.Slots = []api.Slot{{ID: "hero"}, {}} },
		`/slots/1/id: "hero" is the id of an`: func(r *api.Request) {
			r.Slots = []api.Slot{{ID: "hero"}, {ID: "hero"}}
		},
		"/slots/0/id: must have at most 1024 b": func(r *api.Request) {
			r.Slots = []api.Slot{{ID: strings.Repeat("x", 1025)}}
		},
		"/slots: the ids take more than 16384": func(r *api.Request) {
			r.Slots = make([]api.Slot, 3)
			for k := range r.Slots {
				r.Slots[k].ID = strings.Repeat("\x00", 1000) + fmt.Sprint(k) // six bytes each in JSON
			}
		},
		"/slots/0/id: must have at most 1024 ": func(r *api.Request) { r.Slots = []api.Slot{{ID: "\xff"}} },
	} {
		r := stock("", 2)
		change(r)
		expect.Prefix(e.Decide(t.Context(), "home", r, 0))(t, want)
	}
}

// Sets that fill the slots are shown as often as their propensities say, which sum
// to 1, and the answer names the policy's own set.
func TestSlotsExplore(t *testing.T) {
	const share, rounds = 0.5, 4000
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", fmt.Sprintf(`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":"explore","explore_share":%v}`, share))
	seen, propensity := map[string]float64{}, map[string]float64{}
	for i := range rounds {
		r := stock("", 4)
		r.Slots = without([]string{"sku0"}, []string{"sku1", "sku2"}) // of the 6 pairs sku1 with sku2 does not fit
		if i < 20 {
			r.Decision = fmt.Sprint(i)
		}
		a := decide(t, e, "home", r, 0)
		if i < 20 {
			again, err := e.Decide(t.Context(), "home", r, 1)
			if err != nil || !again.Decoded {
				t.Fatalf("%+v, %v", again, err)
			}
			expect.Equal(fatal.T(t), asSeen(again), asSeen(a), "again")
		}
		if a.IDs()[0] == "sku0" || a.IDs()[1] == "sku1" || a.IDs()[1] == "sku2" || !a.Certain {
			t.Fatalf("answer %+v", a)
		}
		shown := a.IDs()
		slices.Sort(shown)
		if byPolicy := slices.Equal(shown, []string{"sku0", "sku1"}); byPolicy && a.Own != nil ||
			!byPolicy && !slices.Equal(a.Own, []string{"sku0", "sku1"}) {
			t.Fatalf("answer %+v", a)
		}
		set := fmt.Sprint(shown)
		seen[set]++
		propensity[set] = a.Propensity
	}
	expect.Equal(t, len(seen), 5, "sets")
	checkPropensities(t, seen, propensity, rounds)
}

// A policy that draws is not certain, and slots of too many kinds get no propensity.
func TestSlotsWithoutPropensity(t *testing.T) {
	build := func(setup.Spec) (vitrine.Learner, error) {
		return &always{offer: func(x *vitrine.Context) vitrine.Offer {
			return vitrine.Offer{Assortment: x.Feasible.MaxGain(nil, make([]float64, x.NumItems())), Propensity: 0.5}
		}}, nil
	}
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: build})
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":"explore","explore_share":0.5}`)
	for range 20 {
		r := stock("", 4)
		r.Slots = without(nil)
		if a, err := e.Decide(t.Context(), "home", r, 0); err != nil || a.Certain || a.Own != nil {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	e = opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", `{"max_size":8,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":"explore"}`)
	r := stock("", 60)
	exclude := make([][]string, 8)
	for j := range exclude {
		for i := range 60 {
			if uint64(i*(j+7))*2654435761>>(j+3)&1 == 1 {
				exclude[j] = append(exclude[j], itemID(i))
			}
		}
	}
	r.Slots = without(exclude...)
	a, err := e.Decide(t.Context(), "home", r, 0)
	if err != nil || a.Propensity != 0 || len(a.IDs()) != 8 {
		t.Errorf("%+v, %v", a, err)
	}
}

// In the mode "shadow" the baseline is shown, slot by slot.
func TestSlotsShadow(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", strings.Replace(three, `{}`, `{},"mode":"shadow"`, 1))
	r := stock("", 4)
	r.Slots, r.Baseline = without(nil, nil), []string{"sku3", "sku1"}
	a, err := e.Decide(t.Context(), "home", r, 0)
	if err != nil || !slices.Equal(a.IDs(), r.Baseline) || a.Certain {
		t.Errorf("%+v, %v", a, err)
	}
	r.Slots = []api.Slot{{ID: "left"}}
	expect.Message(e.Decide(t.Context(), "home", r, 0))(t, "/baseline: has 2 items, and "+
		"/slots has 1: the k-th item is in the k-th slot", "a baseline with more items than slots")
	r.Slots = append(r.Slots, api.Slot{ID: "middle"}, api.Slot{ID: "right"})
	if a, err := e.Decide(t.Context(), "home", r, 0); err != nil || !slices.Equal(a.IDs(), r.Baseline) ||
		!slices.Equal(offer.SlotIDs(a.Note)[:2], []string{"left", "middle"}) {
		t.Errorf("a baseline with fewer items than slots: %+v, %v", a, err)
	}
}

// The new fields of a request are part of its identity, and a note is returned.
func TestNotes(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", three)
	asked := func(change func(*api.Request)) (*offer.Offer, error) {
		r := stock("a", 4)
		r.Slots = []api.Slot{{ID: "left\x00"}, {ID: "right", Exclude: []string{"sku0"}}}
		change(r)
		return e.Decide(t.Context(), "home", r, 0)
	}
	for range 2 {
		a, err := asked(func(*api.Request) {})
		if err != nil || !slices.Equal(offer.SlotIDs(a.Note), []string{"left\x00", "right"}) {
			t.Errorf("%+v, %v", a, err)
		}
	}
	for what, change := range map[string]func(*api.Request){
		"another id":  func(r *api.Request) { r.Slots[0].ID = "left" },
		"deferred":    func(r *api.Request) { r.Defer = true },
		"other slots": func(r *api.Request) { r.Slots[1].Exclude = nil },
		"no slots":    func(r *api.Request) { r.Slots = nil },
	} {
		_, err := asked(change)
		is(t, what, err, engine.ErrConflict)
	}
	replays(t, e, engine.Options{Store: store, Build: buildToy})
}
