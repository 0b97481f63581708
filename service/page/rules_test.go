package page_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// viewOf is a placement whose learner has learned nothing.
func viewOf(t *testing.T, config string) *page.View {
	t.Helper()
	c := fatal.Or(setup.Parse([]byte(config)))(t)
	l := fatal.Or(setup.NewLearner(c.Spec()))(t)
	return &page.View{Name: "home", Config: c, Policy: page.Policy{Policy: l.Policy(), Config: c}}
}

func try(ctx context.Context, v *page.View, r *api.Request) (*offer.Offer, error) {
	o, _, err := page.Try(ctx, v, r, 0, nil, func() uint64 { return 1 })
	return o, err
}

// stalls are limited by brand and by category, whose groups cross.
const stalls = `{"max_size":6,"features":[{"name":"x","kind":"number"},{"name":"brand","kind":"category"},{"name":"kind","kind":"category"}],
	"limits":[{"feature":"brand","max":1},{"feature":"kind","max":2}],"policy":{"name":"ucb-mnl"},"mode":"explore","explore":"sets","explore_share":0.5}`

// stand is a request with n items.
func stand(n int) *api.Request {
	rng := rand.New(rand.NewPCG(3, uint64(n)))
	r := new(api.Request)
	for i := range n {
		r.Items = append(r.Items, api.Item{ID: fmt.Sprint("sku", i), Revenue: new(1 + rng.Float64()),
			Features: api.Values{
				api.Number("x", rng.Float64()), api.Text("brand", fmt.Sprint("b", rng.IntN(5))),
				api.Text("kind", fmt.Sprint("k", rng.IntN(4))),
			}})
	}
	return r
}

// A page that must be full shows as many items as size and the rules allow. By exhaustive search, its sets are the
// largest sets of the same rules without fill.
func TestFilledPages(t *testing.T) {
	const n = 7
	rng := rand.New(rand.NewPCG(8, 1))
	u, revenue := make([]float64, n), make([]float64, n)
	for trial := range 60 {
		c := fatal.Or(setup.Parse([]byte(
			`{"max_size":4,"features":[{"name":"x","kind":"number"},{"name":"brand","kind":"category"},{"name":"kind","kind":"category"}],"policy":{"name":"uniform"}}`)))(t)
		r := stand(n)
		if rng.IntN(2) == 0 {
			c.Limits = append(c.Limits, api.Limit{Feature: "brand", Max: new(1)})
		}
		if rng.IntN(2) == 0 {
			r.Limits = []api.Limit{{Feature: "kind", Max: new(1)}}
		}
		if rng.IntN(2) == 0 {
			r.Exclude = []string{"sku1", "sku4"}
		}
		if rng.IntN(2) == 0 {
			r.Include = []string{"sku2"}
		}
		r.MaxSize = rng.IntN(5)
		sets := func() (all []vitrine.Assortment) {
			_, _, _, _, family := page.Alternatives(c, r, nil, u, revenue)
			for bits := range 1 << n {
				var s vitrine.Assortment
				for i := range n {
					if bits>>i&1 == 1 {
						s = append(s, i)
					}
				}
				if family.Contains(s) {
					all = append(all, s)
				}
			}
			return all
		}
		loose := sets()
		largest := 0
		for _, s := range loose {
			largest = max(largest, len(s))
		}
		want := slices.DeleteFunc(loose, func(s vitrine.Assortment) bool { return len(s) < largest })
		if trial%2 == 0 {
			r.MinSize = cmp.Or(r.MaxSize, c.MaxSize)
		} else {
			c.MinSize = c.MaxSize
		}
		if have := sets(); !slices.EqualFunc(have, want, slices.Equal) {
			t.Fatalf("%+v of the rules %+v: %v, want %v", r, c.Limits, have, want)
		}
	}
}

// Rules that cannot be obeyed together are refused, and the error names what to drop.
func TestCrossingLimitsThatAreRefused(t *testing.T) {
	v := viewOf(t, stalls)
	for want, change := range map[string]func(r *api.Request){
		"drop the capacity or one of these limits": func(r *api.Request) { r.Capacity = new(3.0) },
		"/limits: limit 0, ": func(r *api.Request) {
			r.Limits = []api.Limit{{Items: []string{"sku0", "sku1", "sku2", "sku3", "sku4", "sku5", "sku6"},
				Max: new(1)}}
		},
		"does not go together with slots": func(r *api.Request) { r.Slots = []api.Slot{{}, {}} },
		`/include: brand "b`: func(r *api.Request) {
			for _, i := range r.Items {
				if i.Features[1].Text == "b1" {
					r.Include = append(r.Include, i.ID)
				}
			}
		},
		`/include: size: at most 1, but 2 items are demanded`: func(r *api.Request) {
			r.Include, r.MaxSize = []string{"sku1", "sku2"}, 1
		},
		`item "sku1" is both included and excluded`: func(r *api.Request) {
			r.Include, r.Exclude = []string{"sku1"}, []string{"sku1"}
		},
	} {
		r := stand(40)
		change(r)
		expect.Part(try(t.Context(), v, r))(t, want)
	}
	v = viewOf(t, strings.Replace(stalls, `"limits":[`, `"limits":[{"group":"new","max":1},`, 1))
	var records []string
	for i, item := range stand(40).Items {
		stored := &api.CatalogueItem{ID: item.ID, Features: item.Features}
		if i%3 == 0 {
			stored.Groups = []string{"new"}
		}
		records = append(records, fatal.Or(catalogue.Encode(stored, v.Config.Schema(), ""))(t))
	}
	v.Catalogue = fatal.Or(catalogue.Restore(v.Config.Schema(), 1, slices.Values(records)))(t)
	for _, limits := range [][]api.Limit{nil, {{Items: []string{"sku0"}, Max: new(1)}},
		{{Items: []string{"sku0", "sku1"}, Min: 1}}} {
		_, err := try(t.Context(), v, &api.Request{Limits: limits})
		expect.Message(err)(t, `the placement's limits: kind "k0", group "new" and brand "b3" cross each other: items may be grouped `+
			"in two ways that cross, not in three; drop one of these limits")
	}
}

// A search that takes too many steps, or whose caller has gone, ends without an answer.
func TestCrossingSearchIsBounded(t *testing.T) {
	v := viewOf(t, stalls)
	page.SetMaxSteps(t, 500)
	expect.Part(try(t.Context(), v, stand(40)))(t, "takes too many "+
		"steps: set a filter", "a search of 500 steps")
	page.SetMaxSteps(t, 1<<30)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Fails(try(ctx, v, stand(40)))(t, context.Canceled, "a caller who has gone")
	if _, err := try(t.Context(), v, stand(40)); err != nil {
		t.Error(err)
	}
}

// The searches for the costs of a request's rules share their steps: few steps are enough for the best set, but not for
// the best set without each rule.
func TestRulesShareTheSteps(t *testing.T) {
	v, r := viewOf(t, stalls), stand(40)
	for k := range 8 {
		r.Exclude = append(r.Exclude, fmt.Sprint("sku", k))
	}
	u, revenue := make([]float64, len(r.Items)), make([]float64, len(r.Items))
	for i := range u {
		u[i], revenue[i] = float64(i%7)/7, 1+float64(i%3)
	}
	costs := func(steps int) (rules int, ok bool) {
		page.SetMaxSteps(t, steps)
		_, _, ok, list, _ := page.Alternatives(v.Config, r, nil, u, revenue)
		return len(list), ok
	}
	all, _ := costs(1 << 30)
	steps := 1
	for ok := false; !ok; steps *= 2 {
		_, ok = costs(steps)
	}
	if some, _ := costs(steps); all < 9 || some >= all {
		t.Errorf("with steps for a search or two, %d of %d rules have a cost", some, all)
	}
}

// Lower bounds of groups hold, and a bound that no page can meet is lowered and named. The family obeys the bounds
// reached, by exhaustive search, and a drawn page has the propensity of one of its sets.
func TestLowerBoundsOfGroups(t *testing.T) {
	const n = 7
	rng := rand.New(rand.NewPCG(9, 1))
	c := fatal.Or(setup.Parse([]byte(`{"max_size":4,"features":[{"name":"x","kind":"number"},{"name":"brand","kind":"category"},{"name":"kind","kind":"category"}],"policy":{"name":"uniform"}}`)))(t)
	l := fatal.Or(setup.NewLearner(c.Spec()))(t)
	v := &page.View{Name: "home", Config: c, Policy: page.Policy{Policy: l.Policy(), Config: c}}
	for range 150 {
		r := stand(n)
		r.MaxSize, r.MinSize = 4, rng.IntN(5)
		most := n
		if rng.IntN(2) == 0 {
			most = 1 + rng.IntN(2)
			r.Limits = []api.Limit{{Feature: "brand", Max: new(most)}}
		}
		groups := [2][]string{}
		for k := range groups {
			for i := range n {
				if rng.IntN(3) == 0 {
					groups[k] = append(groups[k], fmt.Sprint("sku", i))
				}
			}
			groups[k] = append(groups[k], "sold out")
			r.Limits = append(r.Limits, api.Limit{Items: groups[k], Min: 1 + rng.IntN(3)})
		}
		var sets [][]int
		for bits := range 1 << n {
			var s []int
			brands := map[string]int{}
			for i := range n {
				if bits>>i&1 == 1 {
					s = append(s, i)
					brands[r.Items[i].Features[1].Text]++
				}
			}
			if len(s) <= 4 && !slices.ContainsFunc(slices.Collect(maps.Values(brands)),
				func(k int) bool { return k > most }) {
				sets = append(sets, s)
			}
		}
		var unmet []api.Unmet
		lower := func(u api.Unmet, shown func(s []int) int) {
			for _, s := range sets {
				u.Reached = max(u.Reached, min(shown(s), u.Min))
			}
			sets = slices.DeleteFunc(sets, func(s []int) bool { return shown(s) < u.Reached })
			if u.Reached < u.Min {
				unmet = append(unmet, u)
			}
		}
		first := len(r.Limits) - 2
		for k := range groups {
			lower(api.Unmet{Rule: "limit", On: fmt.Sprint(first + k), Min: r.Limits[first+k].Min},
				func(s []int) (n int) {
					for _, i := range s {
						if slices.Contains(groups[k], fmt.Sprint("sku", i)) {
							n++
						}
					}
					return n
				})
		}
		lower(api.Unmet{Rule: "min_size", Min: r.MinSize}, func(s []int) int { return len(s) })
		o, why, err := page.Try(t.Context(), v, r, 0, nil, func() uint64 { return 1 })
		if slices.ContainsFunc(sets, func(s []int) bool { return len(s) == 0 }) {
			sets = sets[1:] // the uniform policy shows nonempty sets
		}
		var crossing *api.FieldError
		if errors.As(err, &crossing) && strings.Contains(err.Error(), "cross each other") {
			continue // three ways
		}
		if err != nil || !slices.Equal(o.Unmet, unmet) || !slices.Equal(why.Unmet, unmet) ||
			!slices.Equal(o.Reply().Unmet, unmet) {
			t.Fatalf("%+v: unmet %+v, %v, want %+v", r.Limits, o, err, unmet)
		}
		var shown []int
		for _, id := range o.IDs() {
			shown = append(shown, slices.IndexFunc(r.Items, func(i api.Item) bool { return i.ID == id }))
		}
		slices.Sort(shown)
		if len(sets) > 0 && !slices.ContainsFunc(sets, func(s []int) bool { return slices.Equal(s, shown) }) {
			t.Fatalf("%+v shows %v, and %v obey", r.Limits, shown, sets)
		}
		if p := o.Propensity; p != 0 && math.Abs(
			p*float64(max(len(sets), 1))-1) > 1e-12 { // 0: stated unknown, as the groups cross
			t.Fatalf("propensity %v of %d sets", p, len(sets))
		}
		r.Strict = true
		if _, err := try(t.Context(), v, r); (err != nil) != (len(unmet) > 0) {
			t.Fatalf("strict: %v, unmet %+v", err, unmet)
		}
	}
}

// Bounds that make no sense are refused, and the error names the field.
func TestLowerBoundsThatAreRefused(t *testing.T) {
	v := viewOf(t, stalls)
	many := make([]api.Limit, 33)
	for k := range many {
		many[k] = api.Limit{Items: []string{fmt.Sprint("sku", k)}, Min: 1}
	}
	for want, change := range map[string]func(r *api.Request){
		"/min_size: 7: must be from 0 to 6": func(r *api.Request) { r.MinSize = 7 },
		"/min_size: 3: must be from 0 to 2": func(r *api.Request) {
			r.MinSize, r.MaxSize = 3, 2
		},
		"/limits/0: needs a min above 0, a max or both": func(r *api.Request) {
			r.Limits = []api.Limit{{Items: []string{"sku1"}}}
		},
		"/limits/0/min: 2: must be at most the max, 1": func(r *api.Request) {
			r.Limits = []api.Limit{{Group: "new", Min: 2, Max: new(1)}}
		},
		"/limits/0/min: needs items or a group": func(r *api.Request) {
			r.Limits = []api.Limit{{Feature: "brand", Min: 1}}
		},
		"/limits/32/min: at most 32 limits may have a min": func(r *api.Request) {
			r.Limits = many
		},
		"/capacity: cannot be combined with min_size": func(r *api.Request) {
			r.Limits, r.Capacity = many[:1], new(3.0)
		},
		"/min_size: does not go together with slots": func(r *api.Request) {
			r.MinSize, r.Slots = 1, []api.Slot{{}}
		},
		"/min_size: 5: the candidates and the other rules leave at most 2": func(r *api.Request) {
			r.MinSize, r.Items, r.Strict = 5, r.Items[:2], true
		},
		"/limits/0/min: 1: the candidates and the other rules leave at most 0": func(r *api.Request) {
			r.Limits, r.Items, r.Strict = many[20:21], r.Items[:2], true
		},
	} {
		r := stand(40)
		change(r)
		expect.Prefix(try(t.Context(), v, r))(t, want)
	}
}
