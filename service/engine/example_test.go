package engine_test

import (
	"context"
	"fmt"
	"time"

	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// A placement that shows one of two items, a decision and its outcome.
func Example() {
	ctx := context.Background()
	engine, err := engine.Open(ctx, engine.Options{Store: new(memlog.Store), Build: setup.NewLearner})
	if err != nil {
		panic(err)
	}
	defer engine.Close()
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC).UnixNano()
	config := `{"max_size": 1, "features": [{"name": "price", "kind": "number"}], "policy": {"name": "ucb-mnl"}}`
	if _, err := engine.Put(ctx, "home", []byte(config), now); err != nil {
		panic(err)
	}
	answer, err := engine.Decide(ctx, "home", &api.Request{Decision: "d1", Items: []api.Item{
		{ID: "tea", Features: api.Values{api.Number("price", 1)}},
		{ID: "coffee", Features: api.Values{api.Number("price", 3)}},
	}}, now)
	if err != nil {
		panic(err)
	}
	if err := engine.Outcome(ctx, "home", "d1", answer.IDs()[0], now+int64(time.Second)); err != nil {
		panic(err)
	}
	decided, err := engine.Decision(ctx, "home", "d1")
	if err != nil {
		panic(err)
	}
	fmt.Println(len(answer.IDs()), "item shown,", decided.Status, decided.Choice == answer.IDs()[0])
	// Output: 1 item shown, chosen true
}
