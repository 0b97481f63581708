package host_test

import (
	"context"
	"fmt"
	"os"

	"vitrine/service/api"
	"vitrine/service/client"
	"vitrine/service/host"
)

// A program runs the service itself, with its log in a directory. Run returns after stop, once it answered the requests in
// progress and wrote a snapshot.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	config := host.Default()
	config.Listen, config.Data = "127.0.0.1:0", dir
	ctx, stop := context.WithCancel(context.Background())
	serving := func(ctx context.Context, address string) {
		defer stop()
		c := &client.Client{Base: "http://" + address}
		defer c.CloseIdleConnections()
		created, err := c.Put(ctx, "home",
			&api.Placement{MaxSize: 3, Features: []api.Feature{{Name: "price", Kind: "number"}}})
		if err != nil {
			panic(err)
		}
		fmt.Println("created:", created)
		answer, err := c.Decide(ctx, "home", &api.Request{Items: []api.Item{
			{ID: "sku1", Features: api.Values{api.Number("price", 1.2)}},
			{ID: "sku2", Features: api.Values{api.Number("price", 0.7)}},
		}})
		if err != nil {
			panic(err)
		}
		fmt.Println("reported:", c.Outcome(ctx, "home", answer.Decision, "") == nil)
	}
	if err := host.Run(ctx, config, host.Options{Serving: serving}); err != nil {
		panic(err)
	}
	// Output:
	// created: true
	// reported: true
}
