// Package rounds writes logs of decisions and outcomes, for timing their replay.
package rounds

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/setup"
)

// The size of a decision.
const (
	Items    = 20
	Features = 10 // numbers per item
	Shown    = 5
)

// Write writes rounds to an empty log as the service does: through the engine, with concurrent callers that each report
// an outcome before the next decision. It calls progress with each round's number.
func Write(ctx context.Context, store engine.Log, policy string, rounds, callers int, progress func(n int64)) error {
	e, err := engine.Open(ctx, engine.Options{Store: store, Build: setup.NewLearner})
	if err != nil {
		return err
	}
	defer e.Close()
	var features []string
	for j := range Features {
		features = append(features, fmt.Sprintf(`{"name":"x%d","kind":"number"}`, j))
	}
	placement := fmt.Sprintf(`{"max_size":%d,"max_request_items":%d,"horizon":%d,"policy":{"name":%q},"features":[%s]}`,
		Shown, Items, rounds, policy, strings.Join(features, ","))
	if _, err := e.Put(ctx, "home", []byte(placement), 1); err != nil {
		return err
	}
	var next atomic.Int64
	failures := make(chan error, callers)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(c)))
			for n := next.Add(1); n <= int64(rounds); n = next.Add(1) {
				if err := round(ctx, e, rng, n); err != nil {
					failures <- err
					return
				}
				progress(n)
			}
		})
	}
	all.Wait()
	close(failures)
	return <-failures
}

// round makes a decision and reports its outcome.
func round(ctx context.Context, e *engine.Engine, rng *rand.Rand, n int64) error {
	r := &api.Request{Decision: fmt.Sprintf("decision-%d", n)}
	for i := range Items {
		item := api.Item{ID: fmt.Sprintf("item-%d", i)}
		for j := range Features {
			item.Features = append(item.Features, api.Number(fmt.Sprintf("x%d", j), rng.NormFloat64()))
		}
		r.Items = append(r.Items, item)
	}
	a, err := e.Decide(ctx, "home", r, n)
	if err != nil {
		return err
	}
	if n%1000 == 0 { // lets the learner's queue drain
		if err := e.Wait(ctx); err != nil {
			return err
		}
	}
	return e.Outcome(ctx, "home", a.Decision, append(a.IDs(), "")[rng.IntN(len(a.Shown)+1)], n)
}
