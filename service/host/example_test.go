package host_test

import (
	"context"
	"fmt"
	"os"

	"vitrine/service/api"
	"vitrine/service/client"
	"vitrine/service/host"
)

// A service with its log in a directory, which ends after its caller put a placement.
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
		fmt.Println("created:", created, err)
	}
	if err := host.Run(ctx, config, host.Options{Serving: serving}); err != nil {
		panic(err)
	}
	// Output: created: true <nil>
}
