package engine_test

import (
	"errors"
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
	"vitrine/service/page"
)

// past returns a decision of another log that showed two items of three.
func past(id, choice string) *page.Imported {
	m := &page.Imported{Request: stock(id, 3), Shown: []string{"sku2", "sku0"}, Time: 5, Propensity: 0.25}
	if choice != "" {
		m.Choices = []api.Choice{{Item: choice}}
	}
	return m
}

// An imported decision teaches the learner what the placement's own decision with the same rows
// teaches, and a replay of the log gives the same state.
func TestImportTeachesAsDecisionsDo(t *testing.T) {
	const home = `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"},"log_items":"all","seed":3}`
	store, own := new(memlog.Store), new(memlog.Store)
	imported, lived := opened(t, engine.Options{Store: store}), opened(t, engine.Options{Store: own})
	put(t, imported, "home", home)
	put(t, lived, "home", home)
	for k := range 300 {
		a := decide(t, lived, "home", stock(fmt.Sprint("d", k), 3), 5)
		choice := ""
		if k%3 > 0 {
			choice = a.IDs()[0]
		}
		fatal.If(t, lived.Outcome(t.Context(), "home", a.Decision, choice, 5))
		m := past(a.Decision, choice)
		m.Shown = a.IDs()
		fatal.If(t, imported.Import(t.Context(), "home", m))
		wait(t, lived) // so that both learned the same when the next page is found
	}
	wait(t, imported)
	ask := func(e *engine.Engine) string {
		a := decide(t, e, "home", stock("last", 3), 6)
		return fmt.Sprint(a.IDs(), a.Probability, a.Outside)
	}
	if got, want := ask(imported), ask(lived); got != want {
		t.Errorf("after an import %s, after the same decisions %s", got, want)
	}
	s, err := imported.Stats("home")
	if err != nil || s.Learned != 300 || s.ByPolicy.Rounds+s.ByChance.Rounds+s.ByBaseline.Rounds != 0 {
		t.Errorf("learned %d, arms %+v, %v", s.Learned, s.ByPolicy, err)
	}
	again := opened(t, engine.Options{Store: store})
	wait(t, again)
	if a, b := snapshot(t, imported), snapshot(t, again); string(a) != string(b) {
		t.Error("a replay gives another state")
	}
	d, err := again.Decision(t.Context(), "home", "d1")
	if err != nil || d.Offer.Mode != offer.ByImport || d.Status != "chosen" || d.Offer.Propensity != 0.25 ||
		d.Time != 5 {
		t.Errorf("%+v %+v, %v", d, d.Offer, err)
	}
}

// An import waits for a learner that is behind.
func TestImportWaits(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", `{"max_size":2,"max_request_items":3,"features":[{"name":"x","kind":"number"}],"policy":{},"memory_bytes":20000,"log_items":"all"}`)
	var all []*page.Imported
	for k := range 500 {
		all = append(all, past(fmt.Sprint("d", k), "sku0"))
	}
	fatal.If(t, e.Import(t.Context(), "home", all...))
	wait(t, e)
	if s, _ := e.Stats("home"); s.Learned != 500 || s.Unlearned != 0 {
		t.Errorf("learned %d of 500, unlearned %d", s.Learned, s.Unlearned)
	}
}

// The law of an imported page, of sets, pages or swaps, does not depend on the display order. Propensities are by hand.
func TestImportedLawsInAnyOrder(t *testing.T) {
	for _, c := range []struct {
		draw       offer.SamplingLaw
		propensity float64
	}{
		{offer.SamplingLaw{Kind: offer.DrawSets, Epsilon: 0.4, Size: 2, Page: []uint32{0, 2}}, 0.4/6 + 0.6},
		// one in 3 + 3 sets
		{offer.SamplingLaw{Kind: offer.DrawSets, Epsilon: 0.4, Size: 2, Page: []uint32{0, 1}}, 0.4 / 6},
		// another one
		{offer.SamplingLaw{Kind: offer.DrawPages, Epsilon: 0.3, Size: 2, Page: []uint32{0, 2}}, 0.3/3 + 0.7},
		// one in 3 pages
		{offer.SamplingLaw{Kind: offer.DrawSwaps, Epsilon: 0.4, Size: 2, Page: []uint32{0, 2}}, 0.6},
		{offer.SamplingLaw{Kind: offer.DrawSwaps, Epsilon: 0.4, Size: 2, Page: []uint32{0, 1}}, 0.4 / 2},
		// one in two swaps
	} {
		for _, shown := range [][]string{{"sku0", "sku2"}, {"sku2", "sku0"}} {
			store := new(memlog.Store)
			e := opened(t, engine.Options{Store: store, Build: buildToy})
			put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"log_items":"all"}`)
			m := past("d", "sku0")
			m.Shown, m.Draw, m.Propensity = shown, &c.draw, c.propensity
			if err := e.Import(t.Context(), "home", m); err != nil {
				t.Errorf("%+v, shown %v: %v", c.draw, shown, err)
				continue
			}
			o := offers(t, store)[0]
			if p := offer.LawOf(o).Propensity(vitrine.Assortment{0, 2}); math.Abs(p-c.propensity) > 1e-12 ||
				o.Propensity != c.propensity {
				t.Errorf("%+v, shown %v: the propensity is %v by its law, and %v in the log, want %v", c.draw, shown, p,
					o.Propensity, c.propensity)
			}
			d, err := e.Decision(t.Context(), "home", "d")
			if err != nil || !slices.Equal(d.Offer.IDs(), shown) || d.Choice != "sku0" {
				t.Errorf("%+v, %v", d, err)
			}
		}
	}
}

// A known decision is recognized under a later configuration, too, and refused if it differs from the logged one. The
// shop's own log may tell other times than live decisions.
func TestKnownDecisions(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	const home = `{"max_size":%d,"features":[{"name":"x","kind":"number"}%s],"policy":{},"log_items":"%s"}`
	put(t, e, "home", fmt.Sprintf(home, 2, "", "all"))
	fatal.If(t, e.Import(t.Context(), "home", past("d", "sku0")))
	shown := decide(t, e, "home", stock("live", 3), 5).IDs()
	fatal.If(t, e.Outcome(t.Context(), "home", "live", "", 5))
	known, _, err := engine.Recorded(t.Context(), store, "home")
	fatal.If(t, err)
	at := func(seconds float64) func(*page.Imported) {
		return func(m *page.Imported) { m.Time += int64(seconds * 1e9) }
	}
	for _, config := range []string{
		fmt.Sprintf(home, 2, "", "all"),
		fmt.Sprintf(home, 2, `,{"name":"y","kind":"number","default":1}`, "shown"),
	} {
		put(t, e, "home", config)
		c := fatal.Or(e.Config("home"))(t)
		for name, k := range map[string]struct {
			id     string
			change func(*page.Imported)
			want   string
		}{
			"equal":      {"d", at(0), ""},
			"rounded":    {"d", at(0.9), ""},
			"truncated":  {"d", at(-0.9), ""},
			"later":      {"d", at(1.1), "the time"},
			"earlier":    {"d", at(-1.1), "the time"},
			"order":      {"d", func(m *page.Imported) { slices.Reverse(m.Shown) }, "another page"},
			"propensity": {"d", func(m *page.Imported) { m.Propensity = 0.5 }, "another page"},
			"candidates": {"d", func(m *page.Imported) { m.Request = stock("d", 4) }, "another page"},
			"outcome":    {"d", func(m *page.Imported) { m.Choices = nil }, "another outcome"},
			"live":       {"live", func(m *page.Imported) { m.Shown = shown }, ""},
			"live time":  {"live", func(m *page.Imported) { m.Shown, m.Time = shown, 5e12 }, ""},
			"live page":  {"live", func(m *page.Imported) { m.Shown = shown[:1] }, "another page"},
		} {
			m := past(k.id, "sku0")
			if k.id == "live" {
				m.Choices = nil
			}
			k.change(m)
			if err := known[k.id].Is("home", c, m); (err == nil) != (k.want == "") ||
				err != nil && !strings.Contains(err.Error(), "the log contains this decision with "+k.want) {
				t.Errorf("%s: %v, want %q\n%s", name, err, k.want, config)
			}
		}
	}
	put(t, e, "home", fmt.Sprintf(home, 1, "", "all"))
	c := fatal.Or(e.Config("home"))(t)
	expect.Error(t, known["d"].Is("home", c, past("d", "sku0")), nil, "a page of two, and now pages show one")
}

func TestBadImports(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"log_items":"all"}`)
	c := fatal.Or(e.Config("home"))(t)
	for want, change := range map[string]func(m *page.Imported){
		"/decision_id: is missing":                  func(m *page.Imported) { m.Request.Decision = "" },
		"/decision_id: \"a b\": must be of letters": func(m *page.Imported) { m.Request.Decision = "a b" },
		"/shown: has 3 items, the placement shows": func(m *page.Imported) {
			m.Shown = []string{"sku0", "sku1", "sku2"}
		},
		"/shown/1: \"sku9\" is not among the items": func(m *page.Imported) { m.Shown[1] = "sku9" },
		"/shown/1: \"sku2\" is shown twice":         func(m *page.Imported) { m.Shown[1] = "sku2" },
		"/choices/0/item: \"sku1\" was not shown": func(m *page.Imported) {
			m.Choices = []api.Choice{{Item: "sku1"}}
		},
		"/choices/0/quantity: 0: must be from 1": func(m *page.Imported) {
			m.Choices = []api.Choice{{Item: "sku0", Quantity: new(0)}}
		},
		"/propensity: 1.5: must be in (0, 1]": func(m *page.Imported) { m.Propensity = 1.5 },
		"/items: must have at least one item": func(m *page.Imported) { m.Request.Items = nil },
		"/items/1/features/y: unknown key": func(m *page.Imported) {
			m.Request.Items[1].Features[0].Name = "y"
		},
		"/sampling_law: the policy's own set [7] is not one": func(m *page.Imported) {
			m.Draw = &offer.SamplingLaw{Kind: offer.DrawSets, Epsilon: 1, Size: 2, Page: []uint32{7}}
		},
		"/sampling_law: sets of kind 9 are not known": func(m *page.Imported) {
			m.Draw = &offer.SamplingLaw{Kind: 9, Epsilon: 1, Size: 2}
		},
		"/sampling_law: the share of drawn sets is 2": func(m *page.Imported) {
			m.Draw = &offer.SamplingLaw{Kind: offer.DrawSets, Epsilon: 2, Size: 2}
		},
		"/sampling_law: sets of 4 of 3 items cannot be drawn": func(m *page.Imported) {
			m.Draw = &offer.SamplingLaw{Kind: offer.DrawPages, Epsilon: 1, Size: 4}
		},
		"/sampling_law: 9 bytes of swaps for 0 items of 3": func(m *page.Imported) {
			m.Draw = &offer.SamplingLaw{Kind: offer.DrawSwaps, Epsilon: 1, Swaps: make([]byte, 9)}
		},
		"the propensity 0.333333": func(m *page.Imported) {
			m.Draw = &offer.SamplingLaw{Kind: offer.DrawPages, Epsilon: 1, Size: 2}
		},
	} {
		m := past("d", "")
		change(m)
		for _, err := range []error{engine.CheckImport("home", c, m), e.Import(t.Context(), "home", m)} {
			expect.Part(err)(t, want)
			if field := new(api.FieldError); !errors.As(err, &field) {
				t.Errorf("%v names no field", err)
			}
		}
	}
	expect.Equal(t, e.Sequence(), 1, "bad imports are in the log, up to entry")
	expect.Error(t, e.Import(t.Context(), "shelf", past("d", "")), engine.ErrNotFound, "no placement")
	fatal.If(t, e.Import(t.Context(), "home", past("d", "")))
	expect.Error(t, e.Import(t.Context(), "home", past("d", "sku0")), engine.ErrConflict, "twice")
	// Of several decisions those before a bad one are there, and those after it are not.
	expect.Error(t, e.Import(t.Context(), "home", past("e", ""), past("e", ""), past("h", "")), engine.ErrConflict,
		"one id twice")
	expect.Part(e.Import(t.Context(), "home", past("f", ""), past("g", "sku1"), past("h", "")))(t, "/choice",
		"a bad one")
	for id, want := range map[string]error{"e": nil, "f": nil, "g": engine.ErrNotFound, "h": engine.ErrNotFound} {
		expect.Fails(e.Decision(t.Context(), "home", id))(t, want, id)
	}
}
