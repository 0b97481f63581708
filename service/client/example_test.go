package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"vitrine/service/api"
	"vitrine/service/client"
	"vitrine/service/decision"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/server"
)

func Example() {
	// A service: yours is vitrine serve.
	engine, err := decision.Open(context.Background(), decision.Options{Store: new(memlog.Store), Build: decision.NewLearner})
	if err != nil {
		panic(err)
	}
	defer engine.Close()
	service := httptest.NewServer(server.New(server.Options{Engine: engine}))
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
	// Output:
	// [sku1]
	// 409 conflict
}
