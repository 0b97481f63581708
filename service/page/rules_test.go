package page_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/service/api"
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
	o, _, err := page.Try(ctx, v, r, 0, func() uint64 { return 1 })
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
		r.Items = append(r.Items, api.Item{ID: fmt.Sprint("sku", i), Revenue: new(1 + rng.Float64()), Features: api.Values{
			api.Number("x", rng.Float64()), api.Text("brand", fmt.Sprint("b", rng.IntN(5))), api.Text("kind", fmt.Sprint("k", rng.IntN(4))),
		}})
	}
	return r
}

// A page that must be full shows as many items as size and the rules allow. The family of its sets is that of the same rules
// without fill, by exhaustive search, less all smaller sets.
func TestFilledPages(t *testing.T) {
	const n = 7
	rng := rand.New(rand.NewPCG(8, 1))
	u, revenue := make([]float64, n), make([]float64, n)
	for trial := range 60 {
		c := fatal.Or(setup.Parse([]byte(`{"max_size":4,"features":[{"name":"x","kind":"number"},{"name":"brand","kind":"category"},{"name":"kind","kind":"category"}],"policy":{"name":"uniform"}}`)))(t)
		r := stand(n)
		if rng.IntN(2) == 0 {
			c.Limits = append(c.Limits, api.Limit{Feature: "brand", Max: 1})
		}
		if rng.IntN(2) == 0 {
			r.Limits = []api.Limit{{Feature: "kind", Max: 1}}
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
			r.Fill = true
		} else {
			c.Fill = true
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
		"drop one of these limits": func(r *api.Request) {
			r.Limits = []api.Limit{{Items: []string{"sku0", "sku1", "sku2", "sku3", "sku4", "sku5", "sku6"}, Max: 1}}
		},
		"does not go together with slots": func(r *api.Request) { r.Slots = []api.Slot{{}, {}} },
		`brand "b`: func(r *api.Request) {
			for _, i := range r.Items {
				if i.Features[1].Text == "b1" {
					r.Include = append(r.Include, i.ID)
				}
			}
		},
		`item "sku1" is both included and excluded`: func(r *api.Request) { r.Include, r.Exclude = []string{"sku1"}, []string{"sku1"} },
	} {
		r := stand(40)
		change(r)
		if _, err := try(t.Context(), v, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// A search that takes too many steps, or whose caller has gone, ends without an answer.
func TestCrossingSearchIsBounded(t *testing.T) {
	v := viewOf(t, stalls)
	page.SetMaxSteps(t, 500)
	if _, err := try(t.Context(), v, stand(40)); err == nil || !strings.Contains(err.Error(), "takes too many steps: set a filter") {
		t.Errorf("a search of 500 steps: %v", err)
	}
	page.SetMaxSteps(t, 1<<30)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := try(ctx, v, stand(40)); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who has gone: %v", err)
	}
	if _, err := try(t.Context(), v, stand(40)); err != nil {
		t.Error(err)
	}
}
