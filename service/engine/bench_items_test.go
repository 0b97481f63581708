//go:build unix

package engine_test

import (
	"fmt"
	"syscall"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// BenchmarkDecideByIDs decides among all items of a catalogue of 10 numbers each, for a user with 5, and shows 5.
func BenchmarkDecideByIDs(b *testing.B) {
	for _, n := range []int{1000, 100_000, 1_000_000} {
		for _, policy := range []string{"greedy", "ucb-mnl", "auto"} {
			for _, equal := range []bool{true, false} {
				b.Run(fmt.Sprintf("%d/%s/equal=%v", n, policy, equal),
					func(b *testing.B) { decideByIDs(b, n, policy, equal, &api.Request{}) })
			}
		}
	}
}

// pinned is the item in every set.
var pinned = itemID(7)

// BenchmarkLimitsByIDs shows at most two items of each of 5000 brands, without or with a limit of a group, and that
// with an item which must be shown.
func BenchmarkLimitsByIDs(b *testing.B) {
	limits := []api.Limit{{Attribute: "brand", Max: new(2)}, {Group: "sale", Max: new(4)}}
	rules := []api.Request{{}, {Limits: limits[:1]}, {Limits: limits}, {Limits: limits, Include: []string{pinned}}}
	for _, n := range []int{100_000, 1_000_000} {
		for _, policy := range []string{"ucb-mnl", "auto"} {
			for _, equal := range []bool{true, false} {
				for k, r := range rules {
					b.Run(fmt.Sprintf("%d/%s/equal=%v/%d", n, policy, equal, k),
						func(b *testing.B) { decideByIDs(b, n, policy, equal, &r) })
				}
			}
		}
	}
}

// BenchmarkCrossingByIDs shows up to 10 or 20 items, at most two of each of 5000 brands and three of each of 60 kinds.
func BenchmarkCrossingByIDs(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		for _, policy := range []string{"ucb-mnl", "auto"} {
			for _, equal := range []bool{true, false} {
				for _, size := range []int{10, 20} {
					b.Run(fmt.Sprintf("%d/%s/equal=%v/%d", n, policy, equal, size), func(b *testing.B) {
						decideByIDs(b, n, policy, equal, &api.Request{MaxSize: size,
							Limits: []api.Limit{{Attribute: "brand", Max: new(2)}, {Attribute: "kind", Max: new(3)}}})
					})
				}
			}
		}
	}
}

// BenchmarkCapacityByIDs shows up to five items of the spaces 1 to 20 that take at most 40, without or with a limit of
// a group.
func BenchmarkCapacityByIDs(b *testing.B) {
	for _, n := range []int{1000, 100_000, 1_000_000} {
		for _, policy := range []string{"greedy", "ucb-mnl", "auto"} {
			for _, equal := range []bool{true, false} {
				for k, limits := range [][]api.Limit{nil, {{Attribute: "brand", Max: new(2)}}} {
					b.Run(fmt.Sprintf("%d/%s/equal=%v/%d", n, policy, equal, k), func(b *testing.B) {
						decideByIDs(b, n, policy, equal, &api.Request{Capacity: new(40.0), Limits: limits})
					})
				}
			}
		}
	}
}

func decideByIDs(b *testing.B, n int, policy string, equal bool, request *api.Request) {
	e := opened(b, engine.Options{Store: new(memlog.Store)})
	features := numbers(10)[1:]
	for j := range 5 {
		features = fmt.Sprintf(`{"name":"u%d","kind":"number","from":"shopper"},`, j) + features
	}
	put(b, e, "home", fmt.Sprintf(`{"max_size":%d,"max_request_items":%d,"policy":{"name":%q%s},"features":[%s}`,
		max(request.MaxSize, 5), n, policy, map[string]string{"greedy": `,"warmup":0`}[policy], features))
	sim := newSimulator(1, n, 10)
	r, _ := sim.request(1)
	var items []api.CatalogueItem
	for i := range r.Items {
		item := api.CatalogueItem{ID: r.Items[i].ID, Features: r.Items[i].Features}
		if request.Limits != nil {
			brand := i * 7919 % 5000
			item.Attributes = map[string]any{"brand": fmt.Sprint("b", brand), "kind": fmt.Sprint("k", i*104729%60)}
			if brand%2 == 0 { // groups are nested
				item.Groups = []string{"sale"}
			}
		}
		if request.Capacity != nil {
			item.Space = new(float64(1 + i*31%20))
		}
		if !equal {
			item.Revenue = r.Items[i].Revenue
		}
		items = append(items, item)
	}
	putItems(b, e, "home", items)
	request.User = nil
	for j := range 5 {
		request.User = append(request.User, api.Number(fmt.Sprintf("u%d", 4-j), float64(j)/5))
	}
	few := newSimulator(2, 20, 10) // whose rounds the policy learns
	for round := range 300 {
		r, _ := few.request(round + 1)
		r.User = request.User
		a, err := e.Decide(b.Context(), "home", r, 0)
		fatal.If(b, err)
		item, _ := few.choose(a)
		fatal.If(b, e.Outcome(b.Context(), "home", a.Decision, item, 1))
	}
	wait(b, e)
	b.ReportAllocs()
	start := processor()
	for b.Loop() {
		fatal.Or(e.Decide(b.Context(), "home", request, 0))(b)
	}
	b.ReportMetric((processor()-start)*1e6/float64(b.N), "cpu-µs/op")
}

// processor returns this process's processor time in seconds.
func processor() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// BenchmarkPatchItems changes the price and the revenue of 100,000 items.
func BenchmarkPatchItems(b *testing.B) {
	e := opened(b, engine.Options{Store: &devNull{Store: new(memlog.Store)}})
	put(b, e, "home", window+"}")
	items := goods(1, 100_000)
	putItems(b, e, "home", items)
	price := 0.0
	for b.Loop() {
		price++
		patches := make([]api.CatalogueItem, len(items))
		for i := range items {
			patches[i] = api.CatalogueItem{ID: items[i].ID, Features: api.Values{api.Number("x", price/1000)},
				Revenue: new(price)}
		}
		if a, err := e.PatchItems(b.Context(), "home", patches, 0); err != nil || a.Changed != len(items) {
			b.Fatal(a, err)
		}
	}
}
