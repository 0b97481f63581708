package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine"
	"vitrine/env"
	"vitrine/internal/stream"
	"vitrine/utility"
)

// The demonstration: shoppers of a simulated world, each of whom comes to a
// placement that learns and to one that shows uniformly drawn sets.
const (
	demoSeed  = 1
	demoItems = 30
	demoSize  = 4
	demoWidth = 5
	demoPace  = 50 * time.Millisecond // between shoppers
)

var demoPolicies = map[string]string{
	"home":    `{"name":"onl-mnl","warmup":100}`,
	"uniform": `{"name":"uniform"}`,
}

// shoppers are customers who come over HTTP. They draw by the addresses of an
// experiment: with the same seed, world and learner, regret is that of the figures.
type shoppers struct {
	url       string
	client    *http.Client
	seed      uint64
	world     env.Environment
	contexts  stream.Stream
	customers stream.Stream
}

func newShoppers(url string, seed uint64, world env.Environment) *shoppers {
	return &shoppers{url: url, client: &http.Client{Timeout: 10 * time.Second}, seed: seed, world: world}
}

func demoWorld() env.Environment {
	return &env.World{
		Items: demoItems, Contexts: env.Gaussian{}, Revenues: env.UniformRevenue{Low: 0.5, High: 1},
		Truth: env.NewFamily(utility.NewLinear(demoWidth, false), -1, 1, stream.New(demoSeed, 0, stream.World)),
	}
}

type demoFeature struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// open makes a placement, unless it is there already, and returns how many shoppers it has had.
func (s *shoppers) open(ctx context.Context, name, policy string, size, width int) (met int, err error) {
	config := struct {
		Size     int           `json:"max_size"`
		Features []demoFeature `json:"features"`
		Policy   rawJSON       `json:"policy"`
		Seed     uint64        `json:"seed"`
	}{Size: size, Policy: rawJSON(policy), Seed: s.seed}
	for j := range width {
		config.Features = append(config.Features, demoFeature{fmt.Sprintf("x%d", j), "number"})
	}
	if err := s.ask(ctx, "PUT", "/v1/placements/"+name, config, nil); err != nil {
		return 0, err
	}
	var stats struct {
		Decisions int `json:"decisions"`
	}
	err = s.ask(ctx, "GET", "/v1/placements/"+name+"/stats", nil, &stats)
	return stats.Decisions, err
}

// rawJSON is JSON as it stands.
type rawJSON string

// MarshalJSON implements json.Marshaler.
func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// visit has the shopper of a round come to a placement, and returns what was shown and
// the world's utilities.
func (s *shoppers) visit(ctx context.Context, placement string, round int) (x *vitrine.Context, u []float64, shown vitrine.Assortment, err error) {
	x = s.world.Context(s.contexts.At(s.seed, round, stream.Contexts))
	u = make([]float64, x.NumItems())
	env.At(s.world, round).Utilities(u, x)
	shock := make([]float64, len(u)+1)
	rng := s.customers.At(s.seed, round, stream.Customers)
	for i := range shock {
		shock[i] = -math.Log(rng.ExpFloat64())
	}
	type item struct {
		ID       string             `json:"id"`
		Features map[string]float64 `json:"features,omitempty"`
		Revenue  float64            `json:"revenue"`
	}
	request := struct {
		Decision string `json:"decision_id"`
		Items    []item `json:"items"`
	}{Decision: fmt.Sprintf("%s-%d", placement, round)}
	at := map[string]int{}
	for i := range u {
		it := item{ID: fmt.Sprintf("sku%d", i), Features: map[string]float64{}, Revenue: 1}
		for j, v := range x.Features.RawRowView(i) {
			it.Features[fmt.Sprintf("x%d", j)] = v
		}
		if x.Revenue != nil {
			it.Revenue = x.Revenue[i]
		}
		at[it.ID] = i
		request.Items = append(request.Items, it)
	}
	var answer struct {
		Assortment []struct {
			ID string `json:"id"`
		} `json:"assortment"`
	}
	if err := s.ask(ctx, "POST", "/v1/placements/"+placement+"/decisions", request, &answer); err != nil {
		return nil, nil, nil, err
	}
	is := make([]bool, len(u))
	for _, a := range answer.Assortment {
		is[at[a.ID]] = true
	}
	for i := range is {
		if is[i] {
			shown = append(shown, i)
		}
	}
	outcome := struct {
		Choice *string `json:"choice"`
	}{}
	if c := vitrine.Choose(shown, u, shock); c > 0 {
		outcome.Choice = &request.Items[shown[c-1]].ID
	}
	return x, u, shown, s.ask(ctx, "POST", "/v1/decisions/"+request.Decision+"/outcome", outcome, nil)
}

// ask sends JSON and reads JSON.
func (s *shoppers) ask(ctx context.Context, method, path string, body, into any) error {
	text := []byte(nil)
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case answer.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	case into != nil:
		return json.Unmarshal(text, into)
	}
	return nil
}

// demonstrate sends shoppers until ctx ends.
func demonstrate(ctx context.Context, url string, logger *slog.Logger) {
	s := newShoppers(url, demoSeed, demoWorld())
	defer s.client.CloseIdleConnections()
	round := 0
	for name, policy := range demoPolicies {
		met, err := s.open(ctx, name, policy, demoSize, demoWidth)
		if err != nil {
			logger.Error("the demonstration cannot begin", "cause", err.Error())
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
			if _, _, _, err := s.visit(ctx, name, round); err != nil && ctx.Err() == nil {
				logger.Warn("a shopper went away", "round", round, "placement", name, "cause", err.Error())
			}
		}
	}
}
