package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"vitrine/internal/fatal"
)

// asked is the JSON of a request.
type asked struct {
	Items      []askedItem    `json:"items"`
	MinSize    *int           `json:"min_size,omitzero"`
	MaxSize    *int           `json:"max_size,omitzero"`
	AtLeast    map[string]int `json:"at_least,omitzero"`
	AtMost     map[string]int `json:"at_most,omitzero"`
	BrandMost  map[string]int `json:"brand_at_most,omitzero"`
	Include    []string       `json:"include,omitzero"`
	Exclude    []string       `json:"exclude,omitzero"`
	Space      *int           `json:"capacity,omitzero"`
	MinRevenue *float64       `json:"min_revenue,omitzero"`
}

type askedItem struct {
	ID      string   `json:"id"`
	Utility float64  `json:"utility"`
	Revenue *float64 `json:"revenue,omitzero"`
	Group   string   `json:"group,omitzero"`
	Brand   string   `json:"brand,omitzero"`
	Space   int      `json:"weight"`
}

// drawRequest draws a request of a few items, some of whose rules contradict
// each other.
func drawRequest(rng *rand.Rand) *asked {
	r := &asked{AtLeast: map[string]int{}, AtMost: map[string]int{}}
	groups := []string{"", "x", "x/y", "x/y/z", "x/w", "xx", "v"}
	some := func(chance float64, maximum int) *int {
		if rng.Float64() >= chance {
			return nil
		}
		n := rng.IntN(maximum + 1)
		return &n
	}
	n := rng.IntN(10)
	unit := []int{1, 1, 7, 10_000_019}[rng.IntN(4)]
	width := []float64{1, 10, 190}[rng.IntN(3)]
	coarse := rng.IntN(2) == 0
	r.Items = make([]askedItem, n)
	bound := map[string]bool{}
	for i := range r.Items {
		item := &r.Items[i]
		item.ID = fmt.Sprint("item ", i)
		item.Utility = width * (2*rng.Float64() - 1)
		item.Space = unit * rng.IntN(7)
		if rng.IntN(6) > 0 {
			v := 10 * rng.Float64()
			if coarse {
				v = math.Floor(v / 3)
			}
			item.Revenue = &v
		}
		item.Group = groups[rng.IntN(len(groups))]
		for end := range len(item.Group) + 1 {
			if end == len(item.Group) || item.Group[end] == '/' {
				bound[item.Group[:end]] = true
			}
		}
		switch rng.IntN(14) {
		case 0:
			r.Include = append(r.Include, item.ID)
		case 1:
			r.Exclude = append(r.Exclude, item.ID)
		}
	}
	r.MinSize, r.MaxSize = some(0.3, 4), some(0.5, 6)
	for _, name := range groups[1:] {
		if !bound[name] {
			continue
		}
		if n := some(0.2, 2); n != nil {
			r.AtLeast[name] = *n
		}
		if n := some(0.3, 3); n != nil {
			r.AtMost[name] = *n
		}
	}
	if s := some(0.4, 20); s != nil {
		*s *= unit
		r.Space = s
	}
	if f := some(0.2, 4); f != nil {
		v := float64(*f)
		r.MinRevenue = &v
	}
	if rng.IntN(3) == 0 {
		r.cross(rng)
	}
	return r
}

// cross gives the items brands with bounds, and leaves only rules that go with these.
func (r *asked) cross(rng *rand.Rand) {
	r.AtLeast, r.Space = nil, nil
	r.BrandMost = map[string]int{"acme": rng.IntN(3)}
	if rng.IntN(2) == 0 {
		r.BrandMost["bolt"] = rng.IntN(3)
	}
	for i := range r.Items {
		r.Items[i].Brand = []string{"", "acme", "bolt"}[rng.IntN(3)]
	}
}

// earns returns the expected revenue of a set of items, by the definition, and whether it obeys the rules.
func (r *asked) earns(set int) (revenue float64, obeys bool) {
	size, space, denominator := 0, 0, 1.0
	in, of := map[string]int{}, map[string]int{}
	obeys = true
	for i, item := range r.Items {
		shown := set>>i&1 == 1
		for _, id := range r.Include {
			obeys = obeys && (id != item.ID || shown)
		}
		if !shown {
			continue
		}
		for _, id := range r.Exclude {
			obeys = obeys && id != item.ID
		}
		v := 1.0
		if item.Revenue != nil {
			v = *item.Revenue
		}
		obeys = obeys && (r.MinRevenue == nil || v >= *r.MinRevenue)
		size++
		of[item.Brand]++
		space += item.Space
		weight := math.Exp(item.Utility)
		denominator += weight
		revenue += weight * v
		for group := item.Group; group != ""; {
			in[group]++
			group = group[:max(0, strings.LastIndexByte(group, '/'))]
		}
	}
	obeys = obeys && (r.MinSize == nil || size >= *r.MinSize) && (r.MaxSize == nil || size <= *r.MaxSize) && (r.Space == nil || space <= *r.Space)
	for group, n := range r.AtLeast {
		obeys = obeys && in[group] >= n
	}
	for group, n := range r.AtMost {
		obeys = obeys && in[group] <= n
	}
	for brand, n := range r.BrandMost {
		obeys = obeys && of[brand] <= n
	}
	return revenue / denominator, obeys
}

// Whatever the rules, the answer is the best of all sets that obey them, and a request is refused exactly if
// no set does.
func TestAnswersAreTheBestOfAllSets(t *testing.T) {
	for seed := range uint64(2000) {
		r := drawRequest(rand.New(rand.NewPCG(seed, 1)))
		text := fatal.Or(json.Marshal(r))(t)
		best, sets := math.Inf(-1), 0
		for set := range 1 << len(r.Items) {
			if v, obeys := r.earns(set); obeys {
				best, sets = max(best, v), sets+1
			}
		}
		request, err := decodeJSON("x", text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var out, words bytes.Buffer
		err = optimizeCmd{}.answer(terminal{&out, &words}, request, &demand{})
		if err != nil {
			if sets > 0 && !strings.Contains(err.Error(), "too large for the exact program") {
				t.Fatalf("%s\nrefused though %d sets obey: %v", text, sets, err)
			}
			continue
		}
		var got struct {
			Assortment []string `json:"assortment"`
			Revenue    float64  `json:"expected_revenue"`
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", &out, err)
		}
		set := 0
		for _, id := range got.Assortment {
			var i int
			fmt.Sscanf(id, "item %d", &i)
			set |= 1 << i
		}
		v, obeys := r.earns(set)
		if !obeys || math.Abs(v-got.Revenue) > 1e-12*(v+got.Revenue) || v < best*(1-1e-12) {
			t.Fatalf("%s\n%s\nobeys %v, earns %v, the best of %d sets %v", text, &out, obeys, v, sets, best)
		}
	}
}
