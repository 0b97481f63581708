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
	"vitrine/service/api"
)

// asked is a request and its rules by name, from which the JSON is made.
type asked struct {
	request
	atLeast, atMost map[string]int
}

// json returns the request.
func (r *asked) json(t *testing.T) []byte {
	for name, n := range r.atLeast {
		if n == 0 {
			continue
		}
		r.Limits = append(r.Limits, api.Limit{Group: name, Min: n})
	}
	for name, n := range r.atMost {
		r.Limits = append(r.Limits, api.Limit{Group: name, Max: new(n)})
	}
	return fatal.Or(json.Marshal(r.request, json.Deterministic(true), json.OmitZeroStructFields(true)))(t)
}

// drawRequest draws a request of a few items, with rules that may contradict each other.
func drawRequest(rng *rand.Rand) *asked {
	r := &asked{atLeast: map[string]int{}, atMost: map[string]int{}}
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
	r.Items = make([]item, n)
	bound := map[string]bool{}
	for i := range r.Items {
		item := &r.Items[i]
		item.ID = fmt.Sprint("item ", i)
		item.Utility, item.Space = new(width*(2*rng.Float64()-1)), new(unit*rng.IntN(7))
		if rng.IntN(6) > 0 {
			v := 10 * rng.Float64()
			if coarse {
				v = math.Floor(v / 3)
			}
			item.Revenue = &v
		}
		group := groups[rng.IntN(len(groups))]
		item.Groups = []string{group}
		for end := range len(group) + 1 {
			if end == len(group) || group[end] == '/' {
				bound[group[:end]] = true
			}
		}
		switch rng.IntN(14) {
		case 0:
			r.Include = append(r.Include, item.ID)
		case 1:
			r.Exclude = append(r.Exclude, item.ID)
		}
	}
	if m := some(0.3, 4); m != nil {
		r.MinSize = *m
	}
	r.MaxSize = some(0.5, 6)
	for _, name := range groups[1:] {
		if !bound[name] {
			continue
		}
		if n := some(0.2, 2); n != nil {
			r.atLeast[name] = *n
		}
		if n := some(0.3, 3); n != nil {
			r.atMost[name] = *n
		}
	}
	if s := some(0.4, 20); s != nil {
		*s *= unit
		r.Capacity = s
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
	r.atLeast, r.Capacity = nil, nil
	r.atMost["acme"] = rng.IntN(3)
	if rng.IntN(2) == 0 {
		r.atMost["bolt"] = rng.IntN(3)
	}
	for i := range r.Items {
		r.Items[i].Groups = append(r.Items[i].Groups, []string{"", "acme", "bolt"}[rng.IntN(3)])
	}
}

// earns returns the expected revenue of a set of items, by the definition, and whether it obeys the rules.
func (r *asked) earns(set int) (revenue float64, obeys bool) {
	size, space, denominator := 0, 0, 1.0
	in := map[string]int{}
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
		space += *item.Space
		weight := math.Exp(*item.Utility)
		denominator += weight
		revenue += weight * v
		for _, group := range item.Groups {
			for group != "" {
				in[group]++
				group = group[:max(0, strings.LastIndexByte(group, '/'))]
			}
		}
	}
	obeys = obeys && size >= r.MinSize && (r.MaxSize == nil || size <= *r.MaxSize) &&
		(r.Capacity == nil || space <= *r.Capacity)
	for group, n := range r.atLeast {
		obeys = obeys && in[group] >= n
	}
	for group, n := range r.atMost {
		obeys = obeys && in[group] <= n
	}
	return revenue / denominator, obeys
}

// Under any rules, the answer is the best of all sets that obey them, and a request is refused exactly if no set does.
func TestAnswersAreTheBestOfAllSets(t *testing.T) {
	for seed := range uint64(2000) {
		r := drawRequest(rand.New(rand.NewPCG(seed, 1)))
		text := r.json(t)
		best, sets := math.Inf(-1), 0
		for set := range 1 << len(r.Items) {
			if v, obeys := r.earns(set); obeys {
				best, sets = max(best, v), sets+1
			}
		}
		request, err := decodeJSON(text)
		fatal.If(t, err, text)
		var out, words bytes.Buffer
		err = answer(terminal{&out, &words}, "x", request, &demand{})
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
		fatal.If(t, json.Unmarshal(out.Bytes(), &got), &out)
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
