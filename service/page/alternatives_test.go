package page_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// reasoned is a placement with a rule.
func reasoned(rule string) string {
	return `{"max_size":3,"features":[{"name":"x","kind":"number"},{"name":"brand","kind":"category","values":["a","b"]}],"policy":{"name":"ucb-mnl"}` + rule + `}`
}

// asking is a request of six items, whose values are by slot.
func asking(rng *rand.Rand) *api.Request {
	r := new(api.Request)
	for i := range 6 {
		r.Items = append(r.Items, api.Item{ID: fmt.Sprint("sku", i),
			Features: api.Values{api.Number("x", rng.NormFloat64()), api.Text("brand",
				[]string{"a", "b"}[rng.IntN(2)])}})
	}
	return r
}

// The best other set and what each rule costs are those of an exhaustive search.
func TestAlternatives(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 8))
	for trial := range 600 {
		rule := []string{"", `,"limits":[{"feature":"brand","max":1}]`}[trial%2]
		if trial >= 300 {
			rule += `,"include":["sku4","sku1"],"exclude":["sku5"]`
		}
		c := fatal.Or(setup.Parse([]byte(reasoned(rule))))(t)
		r := asking(rng)
		switch trial / 2 % 6 {
		case 1:
			r.Include = []string{"sku1"}
		case 2:
			r.Exclude, r.MaxSize = []string{"sku0", "sku2", "gone"}, 2
		case 3:
			if len(c.Limits) == 0 {
				r.Limits = []api.Limit{{Items: []string{"sku3", "sku4", "sku5"}, Max: new(1)}}
				if trial%24 < 12 { // no other set obeys the bound without it
					r.Limits[0].Items, r.Limits[0].Min = []string{"sku3"}, 1
				}
			}
		case 4:
			if len(c.Limits) == 0 {
				r.Slots = []api.Slot{{Exclude: []string{"sku0"}}, {}}
			}
		case 5:
			if len(c.Limits) == 0 {
				r.Limits = []api.Limit{{Feature: "brand", Max: new(1)}}
			}
		}
		u, revenue := make([]float64, 6), make([]float64, 6)
		for i := range u {
			u[i], revenue[i] = 2*rng.NormFloat64(), rng.Float64()*rng.Float64()
		}
		best, with, all := search(t, c, r, u, revenue, nil)
		shown := best
		if trial%3 == 0 { // a set that was drawn
			shown = all[rng.IntN(len(all))]
		}
		_, want, _ := search(t, c, r, u, revenue, shown)
		next, earns, ok, rules, _ := page.Alternatives(c, r, shown, u, revenue)
		if ok != (len(all) > 1) || ok && (math.Abs(earns-want) > 1e-12 || slices.Equal(next, shown)) {
			t.Errorf("trial %d: other than %v the best set is %v with %v, %v: an exhaustive search has %v", trial,
				shown, next, earns, ok, want)
		}
		for _, rule := range rules {
			loose, config := *r, *c
			switch rule.Rule {
			case "max_size":
				loose.MaxSize = 0
			case "include":
				loose.Include = nil
			case "exclude":
				loose.Exclude = slices.DeleteFunc(slices.Clone(r.Exclude),
					func(id string) bool { return id == rule.Item })
			case "limit":
				if len(r.Limits) > 0 && (rule.On == "0" || len(c.Limits) == 0) {
					loose.Limits = nil
				} else {
					config.Limits = nil
				}
			case "pinned":
				config.Include = slices.DeleteFunc(slices.Clone(c.Include),
					func(id string) bool { return id == rule.Item })
			case "excluded":
				config.Exclude = nil
			case "slot":
				loose.Slots = []api.Slot{{}, {}}
			}
			if _, without, _ := search(t, &config, &loose, u, revenue,
				nil); math.Abs(rule.Cost-max(0, without-with)) > 1e-12 {
				t.Errorf("trial %d: %+v, an exhaustive search has %v", trial, rule, without-with)
			}
		}
		pinned := len(c.Include)
		if r.Slots != nil {
			pinned = 0
		}
		if n := pinned + len(c.Exclude) + len(r.Include) + len(r.Limits) + len(c.Limits) + min(r.MaxSize, 1) +
			len(r.Exclude)/3*2 + len(r.Slots)/2; len(rules) != n {
			t.Errorf("trial %d: there are %d rules: %+v", trial, n, rules)
		}
	}
}

// search returns the best set of the rules other than one, and all sets, by their number.
func search(t *testing.T, c *setup.Config, r *api.Request, u, revenue []float64,
	other vitrine.Assortment) (best vitrine.Assortment, earns float64, all []vitrine.Assortment) {
	t.Helper()
	_, _, _, _, family := page.Alternatives(c, r, other, u, revenue)
	earns = math.Inf(-1)
	for bits := range 1 << len(u) {
		s := vitrine.Assortment{}
		for i := range u {
			if bits>>i&1 == 1 {
				s = append(s, i)
			}
		}
		if family.Contains(s) {
			all = append(all, s)
			if e := vitrine.ExpectedRevenue(s, u, revenue); e > earns && !(other != nil && slices.Equal(s, other)) {
				best, earns = s, e
			}
		}
	}
	return best, earns, all
}

// A catalogue with more candidates than a trial compares is refused with a remedy, and its trial takes no more memory
// than the largest.
func TestTrialOfAHugeCatalogue(t *testing.T) {
	v := viewOf(t, `{"max_size":2,"policy":{"name":"ucb-mnl"},"features":[{"name":"x","kind":"number"}]}`)
	s := v.Config.Schema()
	var records []string
	for i := range 100_001 {
		item := &api.CatalogueItem{ID: fmt.Sprint("sku", i), Features: api.Values{api.Number("x", 1)}}
		records = append(records, fatal.Or(catalogue.Encode(item, s, ""))(t))
	}
	v.Catalogue = fatal.Or(catalogue.Restore(s, 1, slices.Values(records)))(t)
	_, err := try(t.Context(), v, &api.Request{})
	expect.Message(err)(t, "/candidates: 100001 items of the catalogue are candidates, and at most 100000 can be tried: "+
		"set a filter that leaves fewer, or name fewer candidates")
	all, decision := v.TrialSize(&api.Request{}), v.CatalogueSize(&api.Request{})
	v.Catalogue = fatal.Or(catalogue.Restore(s, 1, slices.Values(records[:100_000])))(t)
	largest := v.TrialSize(&api.Request{}) - v.CatalogueSize(&api.Request{})
	expect.Equal(t, all-decision, largest)
}
