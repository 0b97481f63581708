package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"vitrine/internal/hint"
	"vitrine/service/demo"
	"vitrine/service/engine"
	"vitrine/service/host"
	"vitrine/service/setup"
)

// demonstration adds the shop of the demonstration to a service with its log in data. If the placements were changed
// since, the demonstration ends when the log is opened again; the service goes on.
func demonstration(data string, o *host.Options) {
	over, again, logger, shop := false, false, o.Logger, demo.New(o.Logger)
	o.Demo = shop.Routes()
	o.Opened = func(e *engine.Engine) error {
		err := mayDemonstrate(e, data)
		if err != nil && again {
			logger.Warn("the demonstration is over", "cause", err.Error())
			over, err = true, nil
		}
		again = true
		return err
	}
	o.Serving = func(ctx context.Context, address string) {
		if over {
			return
		}
		if err := shop.Run(ctx, "http://"+address); err != nil && ctx.Err() == nil {
			logger.Error("the demonstration cannot start", "cause", err.Error())
		}
	}
}

// mayDemonstrate refuses to overwrite placements that are not from an earlier demonstration.
func mayDemonstrate(e *engine.Engine, data string) error {
	for name, config := range demo.Placements(demo.Seed, demo.Compare) {
		there, err := e.Config(name)
		if err != nil {
			continue // it does not exist
		}
		text, err := json.Marshal(config)
		if err != nil {
			return err
		}
		ours, err := setup.Parse(text)
		if err != nil {
			return err
		}
		if !bytes.Equal(there.Canonical(), ours.Canonical()) {
			return hint.New(fmt.Errorf("--demo: the demonstration would overwrite the placement %[2]q of %[1]s, "+
				"which is not its own", data, name), "leave --data out, or name another directory")
		}
	}
	return nil
}
