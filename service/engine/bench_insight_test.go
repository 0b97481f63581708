package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// BenchmarkInsight is an insight, an explanation and a trial of the policy auto after 500 decisions among a thousand
// items.
func BenchmarkInsight(b *testing.B) {
	e := opened(b, engine.Options{Store: new(memlog.Store)})
	put(b, e, "home", `{"max_size":4,"log_items":"all","features":[{"name":"a","kind":"number"},{"name":"b","kind":"number"},{"name":"c","kind":"number"},{"name":"d","kind":"number"},{"name":"kind","kind":"category","values":["x","y","z"]}]}`)
	rng := rand.New(rand.NewPCG(1, 1))
	r := &api.Request{}
	for range 500 {
		r = &api.Request{}
		for k := range 30 {
			r.Items = append(r.Items, api.Item{ID: fmt.Sprint("item", (k+rng.IntN(34)*30)%1000), Features: api.Values{
				api.Number("a", rng.NormFloat64()), api.Number("b", rng.NormFloat64()),
				api.Number("c", rng.NormFloat64()), api.Number("d", rng.NormFloat64()), api.Text("kind", "x")}})
			r.Items[k].ID += fmt.Sprint("-", k)
		}
		a := decide(b, e, "home", r, 0)
		fatal.If(b, e.Outcome(b.Context(), "home", a.Decision, a.IDs()[rng.IntN(4)], 0))
	}
	wait(b, e)
	a := decide(b, e, "home", r, 0)
	b.Run("insight", func(b *testing.B) {
		now := int64(0)
		for b.Loop() {
			now += 4e9
			insight(b, e, "home", now)
		}
	})
	b.Run("explain", func(b *testing.B) {
		for b.Loop() {
			fatal.Or(e.Explain(b.Context(), "home", a.Decision, 0, nil))(b)
		}
	})
	b.Run("try", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := try(b.Context(), e, "home", r, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}
