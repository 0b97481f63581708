package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"

	"vitrine/service/api"
	"vitrine/service/client"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/server"
	"vitrine/service/setup"
)

func Example() {
	// A service: yours is vitrine serve.
	e, err := engine.Open(context.Background(), engine.Options{Store: new(memlog.Store), Build: setup.NewLearner})
	if err != nil {
		panic(err)
	}
	defer e.Close()
	service := httptest.NewServer(server.New(server.Options{Engine: e}))
	defer service.Close()

	ctx := context.Background()
	c := &client.Client{Base: service.URL}
	defer c.CloseIdleConnections()
	if _, err := c.Put(ctx, "home", &api.Placement{
		MaxSize:  1,
		Features: []api.Feature{{Name: "price", Kind: "number"}},
		Policy:   map[string]any{"name": "ucb-mnl"},
	}); err != nil {
		panic(err)
	}
	answer, err := c.Decide(ctx, "home", &api.Request{Items: []api.Item{
		{ID: "sku1", Features: api.Values{api.Number("price", 1.2)}, Revenue: new(2.5)},
		{ID: "sku2", Features: api.Values{api.Number("price", 0.7)}, Revenue: new(1.5)},
	}})
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Items())
	if err := c.Outcome(ctx, "home", answer.Decision, answer.Items()[0]); err != nil {
		panic(err)
	}
	err = c.Outcome(ctx, "home", answer.Decision, "")
	var p *api.Problem
	if errors.As(err, &p) {
		fmt.Println(p.Status, p.Kind())
	}

	// The cheaper of two items sells three times as often, which the placement learns.
	rng := rand.New(rand.NewPCG(1, 2))
	cheap := 0 // shown to the last hundred of 300 shoppers; by chance half of the time
	for shopper := range 300 {
		answer, err := c.Decide(ctx, "home", &api.Request{Items: []api.Item{
			{ID: "expensive", Features: api.Values{api.Number("price", 1.2)}},
			{ID: "cheap", Features: api.Values{api.Number("price", 0.4)}},
		}})
		if err != nil {
			panic(err)
		}
		item, share := answer.Items()[0], 0.2
		if item == "cheap" {
			share = 0.6
			if shopper >= 200 {
				cheap++
			}
		}
		if rng.Float64() > share {
			item = "" // the shopper goes away
		}
		if err := c.Outcome(ctx, "home", answer.Decision, item); err != nil {
			panic(err)
		}
	}
	fmt.Println("sells more than chance:", cheap > 80)
	// Output:
	// [sku1]
	// 409 conflict
	// sells more than chance: true
}
