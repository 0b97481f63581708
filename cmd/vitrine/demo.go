package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"vitrine"
	"vitrine/env"
	"vitrine/internal/hint"
	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/client"
	"vitrine/service/decision"
	"vitrine/service/host"
	"vitrine/utility"
)

// The demonstration: shoppers of a simulated world. Each visits a placement that learns and one that shows
// uniformly drawn sets.
const (
	demoSeed  = 1
	demoItems = 30
	demoSize  = 4
	demoWidth = 5
	demoPace  = 50 * time.Millisecond // between shoppers
)

var demoPolicies = map[string]map[string]any{
	"home":    {"name": "onl-mnl", "warmup": 100},
	"uniform": {"name": "uniform"},
}

// shoppers visit over HTTP. They are the customers of an experiment: with the same seed, world and learner
// the regret is that of the figures.
type shoppers struct {
	service *client.Client
	env.Shoppers
}

func newShoppers(url string, seed uint64, world env.Environment) *shoppers {
	return &shoppers{&client.Client{Base: url}, env.Shoppers{World: world, Seed: seed}}
}

func demoWorld() env.Environment {
	return &env.World{
		Items: demoItems, Contexts: env.Gaussian{}, Revenues: env.UniformRevenue{Low: 0.5, High: 1},
		Truth: env.NewFamily(utility.NewLinear(demoWidth, false), -1, 1, stream.New(demoSeed, 0, stream.World)),
	}
}

// open makes a placement, unless it exists, and returns how many shoppers it has had.
func (s *shoppers) open(ctx context.Context, name string, policy map[string]any, size, width int) (met int, err error) {
	if _, err := s.service.Put(ctx, name, shopConfig(s.Seed, policy, size, width)); err != nil {
		return 0, err
	}
	stats, err := s.service.Stats(ctx, name)
	if err != nil {
		return 0, err
	}
	return int(stats.Decisions), nil
}

func shopConfig(seed uint64, policy map[string]any, size, width int) *api.Placement {
	config := &api.Placement{MaxSize: size, Policy: policy, Seed: seed}
	for j := range width {
		config.Features = append(config.Features, api.Feature{Name: featureName(j), Kind: "number"})
	}
	return config
}

func featureName(j int) string { return fmt.Sprintf("x%d", j) }

// visit sends the shopper of a round to a placement, and returns the shopper and the items shown.
func (s *shoppers) visit(ctx context.Context, placement string, round int) (p env.Shopper, shown vitrine.Assortment, err error) {
	if err := s.Meet(&p, round); err != nil {
		return p, nil, err
	}
	x := p.Context
	request := &api.Request{Decision: fmt.Sprintf("%s-%d", placement, round)}
	at := map[string]int{}
	for i := range x.NumItems() {
		item := api.Item{ID: fmt.Sprintf("sku%d", i)}
		for j, v := range x.Features.RawRowView(i) {
			item.Features = append(item.Features, api.Number(featureName(j), v))
		}
		if x.Revenue != nil {
			item.Revenue = &x.Revenue[i]
		}
		at[item.ID] = i
		request.Items = append(request.Items, item)
	}
	answer, err := s.service.Decide(ctx, placement, request)
	if err != nil {
		return p, nil, err
	}
	for _, id := range answer.Items() {
		shown = append(shown, at[id])
	}
	slices.Sort(shown)
	taken := ""
	if c := p.Choose(shown); c > 0 {
		taken = request.Items[shown[c-1]].ID
	}
	return p, shown, s.service.Outcome(ctx, placement, answer.Decision, taken)
}

// demonstration adds simulated shoppers to a service with its log in data. If the placements were changed
// since, the demonstration ends when the log is opened again; the service goes on.
func demonstration(data string, o *host.Options) {
	over, again, logger := false, false, o.Logger
	o.Opened = func(engine *decision.Engine) error {
		err := mayDemonstrate(engine, data)
		if err != nil && again {
			logger.Warn("the demonstration is over", "cause", err.Error())
			over, err = true, nil
		}
		again = true
		return err
	}
	o.Serving = func(ctx context.Context, address string) {
		if !over {
			demonstrate(ctx, "http://"+address, logger)
		}
	}
}

// mayDemonstrate refuses to overwrite placements that are not from an earlier demonstration.
func mayDemonstrate(engine *decision.Engine, data string) error {
	for name, policy := range demoPolicies {
		there, err := engine.Config(name)
		if err != nil {
			continue // it does not exist
		}
		text, err := json.Marshal(shopConfig(demoSeed, policy, demoSize, demoWidth))
		if err != nil {
			return err
		}
		ours, err := decision.ParseConfig(text)
		if err != nil {
			return err
		}
		if !bytes.Equal(there.Canonical(), ours.Canonical()) {
			return hint.New(fmt.Errorf("--demo: the demonstration would overwrite the placement %[2]q of %[1]s, which is not its own", data, name), "leave --data out, or name another directory")
		}
	}
	return nil
}

// demonstrate sends shoppers until ctx ends.
func demonstrate(ctx context.Context, url string, logger *slog.Logger) {
	s := newShoppers(url, demoSeed, demoWorld())
	defer s.service.CloseIdleConnections()
	round := 0
	for name, policy := range demoPolicies {
		met, err := s.open(ctx, name, policy, demoSize, demoWidth)
		if err != nil {
			logger.Error("the demonstration cannot start", "cause", err.Error())
			return
		}
		round = max(round, met)
	}
	ticker := time.NewTicker(demoPace)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		round++
		for name := range demoPolicies {
			if _, _, err := s.visit(ctx, name, round); err != nil && ctx.Err() == nil {
				logger.Warn("a shopper went away", "round", round, "placement", name, "cause", err.Error())
			}
		}
	}
}
