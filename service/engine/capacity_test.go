package engine_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/long"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// cupboard is a shelf of items with spaces, in steps of a quarter; items without one take 1.
func cupboard(n int, equal bool) []api.CatalogueItem {
	rng := rand.New(rand.NewPCG(8, 8))
	items := shelf(n, equal)
	for i := range items {
		if rng.IntN(6) > 0 {
			items[i].Space = new(float64(rng.IntN(12)) / 4)
		}
	}
	return items
}

// inline returns catalogue items as a request's items.
func inline(items []api.CatalogueItem) (list []api.Item) {
	for _, item := range items {
		list = append(list, api.Item{ID: item.ID, Features: item.Features, Revenue: item.Revenue, Space: item.Space})
	}
	return list
}

func spaceOf(items []api.CatalogueItem, shown []string) (sum float64) {
	for i := range items {
		if slices.Contains(shown, items[i].ID) {
			if items[i].Space == nil {
				sum++
			} else {
				sum += *items[i].Space
			}
		}
	}
	return sum
}

// Spaces of items that do not fit need not be multiples of those that do. Sets of equal revenue leave no place for
// another item.
func TestSpacesWithoutACommonUnit(t *testing.T) {
	for _, policy := range []string{`{"name":"greedy","warmup":0}`, `{"name":"uniform"}`} {
		e := opened(t, engine.Options{Store: new(memlog.Store)})
		put(t, e, "home", strings.Replace(window, `{"name":"ucb-mnl"}`, policy, 1)+"}")
		items := cupboard(9, true)
		rng := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			space := map[string]float64{}
			q := &api.Request{User: aged(1), Capacity: new(float64(rng.IntN(40)) / 4), Items: inline(items)}
			for i := range q.Items {
				s := []float64{1.5, 2.5, 3.5, 4, 5.25, 7}[rng.IntN(6)]
				q.Items[i].Space, space[q.Items[i].ID] = &s, s
			}
			a := decide(t, e, "home", q, 0)
			left := *q.Capacity
			for _, id := range a.IDs() {
				left -= space[id]
				delete(space, id)
			}
			for id, s := range space {
				if s <= left && len(a.IDs()) < 3 && strings.Contains(policy, "greedy") {
					t.Errorf("capacity %v: %v are shown, and %q still fits", *q.Capacity, a.IDs(), id)
				}
			}
			if left < 0 {
				t.Fatalf("%s: capacity %v: %v are shown, which take %v more", policy, *q.Capacity, a.IDs(), -left)
			}
		}
	}
}

// An excluded item does not count for the unit of the spaces, also if it is named twice.
func TestUnitWithoutTheExcluded(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", window+"}")
	items := cupboard(9, true)
	for i := range items {
		items[i].Space = new(1.0)
	}
	items[5].Space = new(1.000001)
	putItems(t, e, "home", items)
	fine := []string{items[5].ID, items[5].ID}
	for _, q := range []api.Request{{}, {Items: inline(items)}, {Filter: "space > 0"},
		{Include: []string{items[0].ID}}} {
		q.User, q.Capacity = aged(1), new(2.5)
		expect.Part(e.Decide(t.Context(), "home", &q, 0))(t, "multiples of 1e-06", q)
		q.Exclude = fine
		if a := decide(t, e, "home", &q, 0); len(a.IDs()) != 2 || slices.Contains(a.IDs(), fine[0]) {
			t.Errorf("%+v shows %v", q, a.IDs())
		}
	}
}

// Loose limits do not make spaces too fine, though their table could be large.
func TestFineSpacesUnderLooseLimits(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", window+"}")
	q := &api.Request{User: aged(1), Capacity: new(2.401), Items: inline(cupboard(9, true))}
	for i := range q.Items {
		q.Items[i].Space = new(0.8 + float64(i)/1e4)
	}
	for _, n := range []int{8, 5, 3} {
		some := api.Limit{Max: new(3)}
		for _, item := range q.Items[:n] {
			some.Items = append(some.Items, item.ID)
		}
		q.Limits = append(q.Limits, some)
	}
	if a := decide(t, e, "home", q, 0); len(a.IDs()) != 3 {
		t.Errorf("%v are shown", a.IDs())
	}
}

// ruled draws the rules of a request, of at most 6.25 of space, and returns whether a set obeys them.
func ruled(rng *rand.Rand, user api.Values, capacity float64,
	items []api.CatalogueItem) (q *api.Request, obeys func(vitrine.Assortment) bool) {
	q = &api.Request{User: user, MaxSize: 1 + rng.IntN(4), Capacity: &capacity}
	if rng.IntN(2) == 0 {
		q.Exclude = []string{items[rng.IntN(len(items))].ID}
	}
	brand, shop := rng.IntN(3), rng.IntN(3) == 0
	if brand > 0 {
		q.Limits = []api.Limit{{Feature: "brand", Max: new(brand)}}
	}
	if shop {
		q.Limits = append(q.Limits, api.Limit{Items: []string{items[0].ID, items[1].ID, items[2].ID, items[3].ID,
			items[4].ID, items[5].ID, items[6].ID, items[7].ID, items[8].ID}, Max: new(2)})
	}
	if rng.IntN(3) == 0 {
		if id := items[rng.IntN(len(items))].ID; !slices.Contains(q.Exclude, id) &&
			spaceOf(items, []string{id}) <= min(capacity, 6.25) {
			q.Include = []string{id}
		}
	}
	obeys = func(s vitrine.Assortment) bool {
		var ids []string
		of := map[string]int{}
		for _, i := range s {
			ids = append(ids, items[i].ID)
			of[items[i].Features[2].Text]++
		}
		for _, number := range of {
			if brand > 0 && number > brand {
				return false
			}
		}
		for _, id := range q.Include {
			if !slices.Contains(ids, id) {
				return false
			}
		}
		return len(ids) <= q.MaxSize && !(shop && len(ids) > 2) && !slices.ContainsFunc(q.Exclude,
			func(id string) bool { return slices.Contains(ids, id) }) &&
			spaceOf(items, ids) <= min(capacity, 6.25)
	}
	return q, obeys
}

// The page is the best of all sets that obey the rules: by exhaustive search, with the policy's utilities of single
// items.
func TestCapacityIsExact(t *testing.T) {
	const n = 9
	for seed, equal := range []bool{true, false, true, false} {
		rng := rand.New(rand.NewPCG(uint64(seed), 9))
		items := cupboard(n, equal)
		e := opened(t, engine.Options{Store: new(memlog.Store)})
		config := strings.Replace(strings.Replace(window, `{"name":"ucb-mnl"}`, `{"name":"greedy","warmup":0}`, 1),
			`"max_size":3`, `"max_size":4`, 1)
		put(t, e, "home", config+`,"capacity":6.25}`)
		putItems(t, e, "home", items)
		for round := range 40 { // it learns something
			a := decide(t, e, "home", &api.Request{Decision: fmt.Sprint("l", round), User: aged(rng.Float64()),
				Items: inline(items)[:3]}, 0)
			fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, a.IDs()[rng.IntN(len(a.IDs()))], 0))
			wait(t, e)
		}
		for range 60 {
			user, capacity := aged(rng.Float64()), float64(rng.IntN(30))/4
			u, r := make([]float64, n), make([]float64, n)
			for i := range items {
				if r[i] = 1; items[i].Revenue != nil {
					r[i] = *items[i].Revenue
				}
				single := decide(t, e, "home", &api.Request{User: user,
					Items: []api.Item{{ID: items[i].ID, Features: items[i].Features, Revenue: items[i].Revenue,
						Space: new(0.0)}}, Include: []string{items[i].ID}}, 0)
				u[i] = math.Log(single.Probability[0] / single.Outside)
			}
			q, obeys := ruled(rng, user, capacity, items)
			want := 0.0
			for bits := range 1 << n {
				var s vitrine.Assortment
				for i := range n {
					if bits>>i&1 == 1 {
						s = append(s, i)
					}
				}
				if obeys(s) {
					want = max(want, vitrine.ExpectedRevenue(s, u, r))
				}
			}
			for name, items := range map[string][]api.Item{"catalogue": nil, "inline": inline(items)} {
				q.Items = items
				a := decide(t, e, "home", q, 0)
				if math.Abs(a.Expected-want) > 1e-9*want {
					t.Fatalf("%s: %+v shows %v, which earns %v; the best set %v", name, q, a.IDs(), a.Expected, want)
				}
			}
			q.Items = nil
			if a, x, err := try(t.Context(), e, "home", q, 0); err != nil || math.Abs(a.Expected-want) > 1e-9*want {
				t.Fatalf("%+v tries %v, %v; the best set earns %v", q, a, err, want)
			} else if x.Next != nil && x.Next.MissedBy < -1e-12 {
				t.Fatalf("the next-best set earns %v less", x.Next.MissedBy)
			}
		}
	}
}

// A capacity means the same for the catalogue's items and for the same items in the request, whoever sets it. No page
// exceeds it.
func TestCapacityOfACatalogue(t *testing.T) {
	for _, n := range []int{60, 3000} {
		if n > 1000 && !long.Wanted() {
			continue
		}
		for _, policy := range []string{`{"name":"ucb-mnl"}`, `{"name":"greedy","warmup":0}`, `{"name":"auto"}`,
			`{"name":"uniform"}`} {
			for _, equal := range []bool{true, false} {
				items := cupboard(n, equal)
				config := strings.Replace(window, `{"name":"ucb-mnl"}`, policy, 1)
				engines := map[string]*engine.Engine{}
				for name, more := range map[string]string{"items": "", "ids": "", "placement": `,"capacity":2.75`,
					"both": `,"capacity":9.5`} {
					engines[name] = opened(t, engine.Options{Store: new(memlog.Store)})
					put(t, engines[name], "home", config+more+"}")
					if name != "items" {
						putItems(t, engines[name], "home", items)
					}
				}
				for round := range 4 {
					q := api.Request{Decision: fmt.Sprint("d", round), User: aged(0.3), Capacity: new(2.75),
						Exclude: []string{items[5].ID}}
					if round%2 == 1 {
						q.Limits = []api.Limit{{Feature: "brand", Max: new(1)}}
					}
					full := q
					full.Items = inline(items)
					want := decide(t, engines["items"], "home", &full, 0)
					if taken := spaceOf(items, want.IDs()); taken > 2.75 || len(want.IDs()) == 0 {
						t.Fatalf("%v take %v", want.IDs(), taken)
					}
					for name, e := range engines {
						if name != "items" {
							byID := q
							if name == "placement" {
								byID.Capacity = nil
							}
							got := decide(t, e, "home", &byID, 0)
							got.Catalogue, got.PolicyEntry = nil, want.PolicyEntry
							expect.Equal(fatal.T(t), asSeen(got), asSeen(want), n, "items", policy, "equal revenues",
								equal, name, "(-items +", name)
						}
						if policy != `{"name":"uniform"}` {
							fatal.If(t, e.Outcome(t.Context(), "home", q.Decision, want.IDs()[0], 0))
							wait(t, e)
						}
					}
				}
			}
		}
	}
}

// Sets that are drawn fit, and their propensity is one over the number of sets that do.
func TestCapacityInEveryMode(t *testing.T) {
	items := cupboard(8, true)
	uniform := `,"mode":"experiment","experiment":{"name":"x","variants":[{"name":"a","show":"policy","share":0.5},{"name":"b","show":"uniform","share":0.5}]}`
	for name, more := range map[string]string{
		"sets": `,"mode":"explore","explore_share":1`, "slots": `,"mode":"explore","explore":"swaps","explore_share":1`,
		"experiment": uniform, "learn_from": "",
	} {
		for _, policy := range []string{"uniform", "ucb-mnl", "onl-mnl", "ts-mnl", "eps-greedy-mnl", "auto"} {
			store := new(memlog.Store)
			e := opened(t, engine.Options{Store: store})
			put(t, e, "home", strings.Replace(window, "ucb-mnl", policy, 1)+more+`,"capacity":3.5}`)
			putItems(t, e, "home", items)
			for k := range 40 {
				a := decide(t, e, "home", &api.Request{Decision: fmt.Sprint("d", k), User: aged(0.1),
					ShopperID: fmt.Sprint(k)}, 0)
				if taken := spaceOf(items, a.IDs()); taken > 3.5 {
					t.Fatalf("%s, %s: %v take %v", name, policy, a.IDs(), taken)
				}
				if (name == "sets" || name == "slots") && policy == "ucb-mnl" && !(a.Propensity > 0) {
					t.Fatalf("%s, %s: a propensity of %v", name, policy, a.Propensity)
				}
				if k == 20 {
					wait(t, e)
					e.Close()
					e = opened(t, engine.Options{Store: store})
				}
			}
		}
	}
}

// Requests that differ only in a space or a capacity are different; nonsense is refused with the item's name.
func TestCapacityOfARequest(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", window+"}")
	items := cupboard(40, true)
	putItems(t, e, "home", items)
	few := func(spaces ...float64) (list []api.Item) {
		for i := range 3 {
			item := inline(items)[i]
			if item.Space = nil; i < len(spaces) {
				item.Space = &spaces[i]
			}
			list = append(list, item)
		}
		return list
	}
	requests := []api.Request{
		{Items: few()}, {Items: few(), Capacity: new(0.0)}, {Items: few(), Capacity: new(2.0)}, {Items: few(1)},
		{Items: few(1, 2)}, {Items: few(1, 2), Capacity: new(2.0)},
	}
	second := few()
	second[1].Space = new(1.0)
	requests = append(requests, api.Request{Items: second})
	for k, first := range requests {
		for j, second := range requests {
			first.Decision = fmt.Sprintf("d%d.%d", k, j)
			second.Decision, first.User, second.User = first.Decision, aged(1), aged(1)
			decide(t, e, "home", &first, 0)
			if _, err := e.Decide(t.Context(), "home", &second, 0); errors.Is(err, engine.ErrConflict) != (j != k) {
				t.Errorf("%d and then %d: %v", k, j, err)
			}
		}
	}
	id := items[0].ID
	for want, q := range map[string]api.Request{
		"/capacity: -1: must be finite and not negative":        {Capacity: new(-1.0)},
		"/capacity: NaN: must be finite and not negative":       {Capacity: new(math.NaN())},
		"/items/1/space: +Inf: must be finite and not negative": {Items: few(1, math.Inf(1))},
		"/items/1/space: 0.3333333333333333: must have at most 6 decimals, so that spaces can be summed exactly: " +
			"round a space up, a capacity down": {Items: few(1, 1.0/3)},
		"/capacity: 2e+09: must be at most 10⁹":      {Capacity: new(2e9)},
		"/capacity: does not go together with slots": {Items: few(), Capacity: new(2.0), Slots: []api.Slot{{}}},
		fmt.Sprintf("/include: these items do not fit into the capacity of 2.5: item %q takes 2, item %q takes 0.75",
			id, items[1].ID): {Items: few(2, 0.75), Include: []string{id, items[1].ID}, Capacity: new(2.5)},
		fmt.Sprintf("/include: these items do not fit into the capacity of 0: item %q takes 1",
			id): {Items: few(), Include: []string{id, id}, Capacity: new(0.0)},
		fmt.Sprintf("/include: limit 0: at most 1, but 2 items are demanded: item %q is included, item %q is included",
			id, items[1].ID): {Items: few(), Include: []string{id, items[1].ID},
			Capacity: new(5.0), Limits: []api.Limit{{Items: []string{id, items[1].ID}, Max: new(1)}}},
	} {
		q.User = aged(1)
		expect.Message(e.Decide(t.Context(), "home", &q, 0))(t, want)
	}
	fine := &api.Request{User: aged(1), Capacity: new(100.0)}
	for i := range 200 {
		fine.Items = append(fine.Items, api.Item{ID: fmt.Sprint(i), Features: items[0].Features,
			Space: new(50 + float64(i*i%7919)/1000)})
	}
	if _, err := e.Decide(t.Context(), "home", fine, 0); err != nil {
		t.Errorf("two of them fit: %v", err)
	}
	put(t, e, "wide", strings.Replace(window, `"max_size":3`, `"max_size":100`, 1)+"}")
	fine.Capacity = new(200.0)
	for i := range fine.Items {
		fine.Items[i].Space = new(3 + float64(i*i%7919)/1e6)
	}
	expect.Prefix(e.Decide(t.Context(), "wide", fine, 0))(t,
		"/capacity: 200: the spaces of the candidates are multiples of 1e-06, and")
	if a := decide(t, e, "home", &api.Request{User: aged(1), Items: few(3, 3, 3), Capacity: new(2.5)},
		0); len(a.IDs()) > 0 {
		t.Errorf("%v are shown, none fits", a.IDs())
	}
	a := decide(t, e, "home", &api.Request{User: aged(1), Items: few(0.1, 0.2, 5), Capacity: new(0.1 + 0.2),
		Include: []string{id, items[1].ID}}, 0)
	expect.Equal(t, len(a.IDs()), 2, a.IDs(), "are shown: 0.1 and 0.2 take 0.3")
	expect.Prefix(setup.Parse([]byte(window+`,"capacity":-2}`)))(t, "/capacity: -2: must be")
}

// Items that change, or leave, count with their present space.
func TestCapacityFollowsTheCatalogue(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", strings.Replace(window, `{"name":"ucb-mnl"}`, `{"name":"uniform"}`, 1)+`,"capacity":2}`)
	items := cupboard(30, true)
	putItems(t, e, "home", items)
	rng := rand.New(rand.NewPCG(5, 5))
	for round := range 60 {
		k := rng.IntN(len(items))
		items[k].Space = new(float64(rng.IntN(9)) / 8)
		fatal.Or(e.PatchItems(t.Context(), "home", []api.CatalogueItem{{ID: items[k].ID, Space: items[k].Space}}, 0))(t)
		if round%3 == 0 {
			fatal.Or(e.DeleteItems(t.Context(), "home", []string{items[0].ID}, 0))(t)
			items = items[1:]
		}
		var want [3]*offer.Offer
		for j, q := range []api.Request{{}, {Filter: "space < 10"}, {Items: inline(items)}} {
			q.User = aged(1)
			want[j] = decide(t, e, "home", &q, 0)
			if taken := spaceOf(items, want[j].IDs()); taken > 2 || want[j].Propensity != want[0].Propensity {
				t.Fatalf("round %d: %v take %v, with propensities %v and %v", round, want[j].IDs(), taken,
					want[j].Propensity, want[0].Propensity)
			}
		}
	}
}

// Explanations know the capacity: of a request that is tried, of one in memory, and of one in a log with all
// candidates.
func TestCapacityIsExplained(t *testing.T) {
	items := cupboard(30, false)
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", window+`,"capacity":4}`)
	put(t, e, "all", window+`,"log_items":"all"}`)
	for _, name := range []string{"home", "all"} {
		q := &api.Request{Decision: "d", User: aged(0.3), Items: inline(items), Capacity: new(2.25)}
		_, want, err := try(t.Context(), e, name, q, 0)
		fatal.If(t, err)
		if want.Next == nil || spaceOf(items, want.Next.Items) > 2.25 {
			t.Errorf("the next-best set is %+v", want.Next)
		}
		costs := map[string]float64{}
		for _, r := range want.Rules {
			costs[r.Rule+" "+r.On] = r.Cost
		}
		if cost, ok := costs["capacity 2.25"]; !ok || !(cost > 0) {
			t.Errorf("the rules cost %+v", want.Rules)
		}
		if _, ok := costs["capacity 4"]; ok != (name == "home") {
			t.Errorf("the rules cost %+v", want.Rules)
		}
		decide(t, e, name, q, 0)
		x := fatal.Or(e.Explain(t.Context(), name, "d", 0, nil))(t)
		expect.Equal(t, x.Next, want.Next, name, "the next-best set")
		expect.Equal(t, x.Rules, want.Rules, name, "the rules")
	}
	many := &api.Request{Decision: "many", User: aged(0.3), Capacity: new(2.25)}
	for i := range 4000 { // with spaces that are too long for the log
		many.Items = append(many.Items, api.Item{ID: fmt.Sprint(i), Features: items[i%30].Features,
			Space: new(1.125 + float64(i%2)/16)})
	}
	put(t, e, "all", window+`,"log_items":"all","memory_bytes":1000000000}`)
	decide(t, e, "all", many, 0)
	x := fatal.Or(e.Explain(t.Context(), "all", "many", 0, nil))(t)
	if x.Next != nil || !strings.Contains(strings.Join(x.Unknown, "\n"), "a capacity bounds the spaces") {
		t.Errorf("%+v, want that the spaces are unknown", x.Unknown)
	}
}

func TestUnitsOfSpace(t *testing.T) {
	for space, want := range map[float64]int64{0: 0, 1: 1e6, 0.1 + 0.2: 3e5, 1e-6: 1, 2.5: 25e5, 1e9: 1e15,
		999999999.999999: 999999999999999, 123456.789012: 123456789012} {
		if units, ok := catalogue.SpaceUnits(space); !ok || units != want {
			t.Errorf("%v: %d units, %v", space, units, ok)
		}
	}
	for _, space := range []float64{-1, 1e-7, 1.0 / 3, 2e9, math.NaN(), math.Inf(1), 0.1234565, 123456789.1234565,
		999999999.0000005} {
		if units, ok := catalogue.SpaceUnits(space); ok {
			t.Errorf("%v: %d units", space, units)
		}
	}
}
