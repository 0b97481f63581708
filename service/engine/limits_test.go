package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/long"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
)

// shelf returns n items with brands, one of them on half of the items, with an attribute and in groups.
func shelf(n int, equal bool) []api.CatalogueItem {
	rng := rand.New(rand.NewPCG(7, 7))
	items := goods(1, n)
	for i := range items {
		items[i].Features[2] = api.Text("brand", fmt.Sprint("b", rng.IntN(2)*rng.IntN(50)))
		items[i].Attributes = map[string]any{"shop": float64(rng.IntN(3))}
		if rng.IntN(5) == 0 {
			items[i].Attributes = nil
		}
		if rng.IntN(2) == 0 {
			items[i].Groups = []string{"sale", "new"}
		}
		if equal {
			items[i].Revenue = nil
		}
	}
	return items
}

// limited returns the items of a shelf in groups, as a request that carries the items must name them.
func limited(items []api.CatalogueItem, most int, group func(i int) any) (limits []api.Limit) {
	ids := map[any][]string{}
	for i := range items {
		if g := group(i); g != nil {
			ids[g] = append(ids[g], items[i].ID)
		}
	}
	for _, list := range ids {
		limits = append(limits, api.Limit{Items: list, Max: new(most)})
	}
	return limits
}

// A limit by a category, an attribute or a group of the catalogue means the same as one by ids, of a request or of the
// placement.
func TestLimitsOfACatalogue(t *testing.T) {
	sizes := []int{60, 3000}
	if long.Wanted() {
		sizes = append(sizes, 12_000)
	}
	for _, n := range sizes {
		for _, policy := range []string{`{"name":"ucb-mnl"}`, `{"name":"greedy","warmup":0}`, `{"name":"auto"}`,
			`{"name":"uniform"}`} {
			for _, equal := range []bool{true, false} {
				items := shelf(n, equal)
				config := strings.Replace(strings.Replace(window, `{"name":"ucb-mnl"}`, policy, 1), "9000", "12000", 1)
				engines := map[string]*engine.Engine{}
				for name, more := range map[string]string{"items": "", "ids": "",
					"placement": `,"limits":[{"attribute":"shop","max":1}]`} {
					engines[name] = opened(t, engine.Options{Store: new(memlog.Store)})
					put(t, engines[name], "home", config+more+"}")
					if name != "items" {
						putItems(t, engines[name], "home", items)
					}
				}
				shop := func(i int) any { return items[i].Attributes["shop"] }
				for round, c := range []struct {
					by     []api.Limit
					groups []api.Limit
				}{
					{[]api.Limit{{Attribute: "shop", Max: new(1)}}, limited(items, 1, shop)},
					{[]api.Limit{{Attribute: "shop", Max: new(1)}}, limited(items, 1, shop)},
					{[]api.Limit{{Feature: "brand", Max: new(1)}}, limited(items, 1,
						func(i int) any { return items[i].Features[2].Text })},
					{[]api.Limit{{Group: "sale", Max: new(0)}}, limited(items, 0, func(i int) any {
						if items[i].Groups != nil {
							return 1
						}
						return nil
					})},
				} {
					full := &api.Request{Decision: fmt.Sprint("d", round), User: aged(0.3), Limits: c.groups,
						Exclude: []string{items[5].ID, items[2].ID}}
					for _, item := range items {
						full.Items = append(full.Items, api.Item{ID: item.ID, Features: item.Features,
							Revenue: item.Revenue})
					}
					byID := &api.Request{Decision: full.Decision, User: full.User, Limits: c.by, Exclude: full.Exclude}
					want := decide(t, engines["items"], "home", full, 0)
					answers := map[string]*offer.Offer{"ids": decide(t, engines["ids"], "home", byID, 0)}
					if c.by[0].Attribute != "" { // which the placement limits in the first rounds
						byID.Limits = nil
						answers["placement"] = decide(t, engines["placement"], "home", byID, 0)
					} else {
						delete(engines, "placement")
					}
					for name, got := range answers {
						if policy == `{"name":"uniform"}` {
							// the groups come in another order
							if ratio := got.Propensity / want.Propensity; !(ratio > 1-1e-9 && ratio < 1+1e-9) {
								t.Errorf("%d items: the propensity is %v times that of items", n, ratio)
							}
							continue
						}
						got.Catalogue, got.PolicyEntry = nil, want.PolicyEntry
						expect.Equal(fatal.T(t), asSeen(got), asSeen(want), n, "items", policy, "equal revenues",
							equal, c.by, name)
					}
					if policy == `{"name":"uniform"}` {
						continue
					}
					for _, e := range engines {
						fatal.If(t, e.Outcome(t.Context(), "home", full.Decision, want.IDs()[0], 0))
						wait(t, e)
					}
				}
			}
		}
	}
}

// Requests that differ in a limit only are different; limits that cannot be meant are refused.
func TestLimitsOfARequest(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", window+"}")
	putItems(t, e, "home", shelf(40, true))
	ask := func(id string, limits ...api.Limit) error {
		_, err := e.Decide(t.Context(), "home", &api.Request{Decision: id, User: aged(1), Limits: limits}, 0)
		return err
	}
	lists := [][]api.Limit{nil, {{Group: "sale", Max: new(1)}}, {{Group: "new", Max: new(1)}},
		{{Attribute: "shop", Max: new(1)}}, {{Attribute: "shop", Max: new(2)}}}
	for k, limits := range lists {
		for j, others := range lists {
			id := fmt.Sprintf("d%d.%d", k, j)
			fatal.If(t, ask(id, limits...))
			if err := ask(id, others...); errors.Is(err, engine.ErrConflict) != (j != k) {
				t.Errorf("%v and then %v: %v", limits, others, err)
			}
		}
	}
	for want, limit := range map[string]api.Limit{
		`/limits/0/attribute: no item of the catalogue has the attribute "colour"`: {Attribute: "colour", Max: new(1)},
		"/limits/0: must have one of items, feature, attribute and group": {
			Attribute: "shop", Group: "sale", Max: new(1)},
		"/limits/0/max: -1: must not be negative":             {Group: "sale", Max: new(-1)},
		`/limits/0/feature: "x": must be a category of items`: {Feature: "x", Max: new(1)},
	} {
		expect.Message(ask("", limit))(t, want, limit)
	}
	expect.Error(t, ask("", api.Limit{Group: "toys", Max: new(0)}), nil, "a group without items")
}

// A trial obeys the limits of its catalogue: the answer, the next-best set and the costs of rules equal those under
// limits by ids, and the logged decision's.
func TestLimitsAreExplained(t *testing.T) {
	items := shelf(40, false)
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", window+`,"limits":[{"attribute":"shop","max":0}]}`)
	free := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, free, "home", window+"}")
	for _, e := range []*engine.Engine{e, free} {
		putItems(t, e, "home", items)
	}
	tried := func(e *engine.Engine, limits ...api.Limit) (*offer.Offer, *api.Explanation) {
		a, x, err := try(t.Context(), e, "home", &api.Request{User: aged(0.3), Limits: limits}, 0)
		fatal.If(t, err)
		return a, x
	}
	wanted, want := tried(free, limited(items, 0, func(i int) any { return items[i].Attributes["shop"] })...)
	byAttribute, why := tried(free, api.Limit{Attribute: "shop", Max: new(0)})
	byPlacement, whyToo := tried(e)
	for _, c := range []struct {
		*offer.Offer
		*api.Explanation
	}{{byAttribute, why}, {byPlacement, whyToo}} {
		expect.Equal(t, c.IDs(), wanted.IDs(), "shown")
		expect.Equal(t, c.Next, want.Next, "the next-best set")
		if len(c.Rules) != 1 || !(c.Rules[0].Cost > 0) {
			t.Errorf("the rules cost %+v, want one rule that costs something", c.Rules)
		}
	}
	expect.Part(try(t.Context(), free, "home",
		&api.Request{Limits: []api.Limit{{Attribute: "colour", Max: new(1)}}}, 0))(t, "/limits/0/attribute")
	decide(t, e, "home", &api.Request{Decision: "d", User: aged(0.3)}, 0)
	x, err := e.Explain(t.Context(), "home", "d", 0, nil)
	fatal.If(t, err)
	expect.Equal(t, x, whyToo, cmpopts.IgnoreFields(api.Explanation{}, "Decision"))
}
