package docs_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// placements returns the placements that a page shows: the JSON objects with a max_size and features.
func placements(t *testing.T, path string) (found []map[string]any) {
	t.Helper()
	text := page(t, path)
	for _, at := range regexp.MustCompile(`\{\s*"max_size"`).FindAllStringIndex(text, -1) {
		var config map[string]any
		expect.Error(t, json.NewDecoder(strings.NewReader(text[at[0]:])).Decode(&config), nil, path,
			"shows a placement that is not JSON")
		if config["features"] != nil {
			found = append(found, config)
		}
	}
	return found
}

// window is a shop window with items of four levels, which every feature of theirs tells: the higher, the more they
// sell.
type window struct {
	features []api.Feature
	size     int
}

func (w window) request(id string, rng *rand.Rand) (r *api.Request, utilities map[string]float64) {
	r, utilities = &api.Request{Decision: id}, map[string]float64{}
	for i := range 4 * w.size {
		level := rng.IntN(4)
		item := api.Item{ID: fmt.Sprint("sku", i)}
		for _, f := range w.features {
			if f.Kind == "cross" || f.From == "shopper" {
				continue
			}
			item.Features = append(item.Features, valueOf(f, level))
		}
		r.Items = append(r.Items, item)
		utilities[item.ID] = 1.5*float64(level) - 3 - math.Log(float64(w.size))
	}
	for _, f := range w.features {
		if f.From == "shopper" {
			r.User = append(r.User, valueOf(f, rng.IntN(4)))
		}
	}
	return r, utilities
}

func valueOf(f api.Feature, level int) api.Value {
	switch {
	case f.Kind == "number":
		return api.Number(f.Name, f.Center+(float64(level)-1.5)**f.Scale)
	case f.Kind == "object":
		return api.Object(f.Name, fmt.Sprintf(`{"level":"of %d"}`, level))
	case f.Values != nil:
		return api.Text(f.Name, f.Values[level*len(f.Values)/4])
	}
	return api.Text(f.Name, fmt.Sprint("level", level))
}

// sales returns what a placement sells to 500 shoppers, in expectation, after 500 others.
func sales(t *testing.T, config map[string]any) (sold float64) {
	t.Helper()
	text := fatal.Or(json.Marshal(config))(t)
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: new(memlog.Store), Build: setup.NewLearner}))(t)
	defer e.Close()
	fatal.Or(e.Put(t.Context(), "home", text, 0))(t)
	c := fatal.Or(e.Config("home"))(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 1000 {
		r, utilities := window{c.Features, c.MaxSize}.request(fmt.Sprint(round), rng)
		a := fatal.Or(e.Decide(t.Context(), "home", r, int64(round)))(t)
		total := 1.0
		for _, id := range a.IDs() {
			total += math.Exp(utilities[id])
		}
		if round >= 500 {
			sold += 1 - 1/total
		}
		left, taken := rng.Float64()*total-1, ""
		for _, id := range a.IDs() {
			if left >= 0 {
				if left -= math.Exp(utilities[id]); left < 0 {
					taken = id
				}
			}
		}
		fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, taken, int64(round)))
		if round%10 == 0 {
			fatal.If(t, e.Wait(t.Context()))
		}
	}
	return sold
}

// Every placement that a page shows sells clearly more than chance.
func TestExamplesSell(t *testing.T) {
	seen := 0
	paths := []string{"README.md"}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") && !strings.HasPrefix(path, "adr") {
			paths = append(paths, filepath.Join("docs", path))
		}
		return err
	})
	fatal.If(t, err)
	for _, path := range paths {
		for _, config := range placements(t, path) {
			seen++
			config["mode"] = "learn" // without the share that explores
			delete(config, "explore")
			delete(config, "explore_share")
			delete(config, "experiment")
			sold := sales(t, config)
			config["policy"] = map[string]any{"name": "uniform"}
			if chance := sales(t, config); sold < 1.2*chance {
				t.Errorf("%s: the placement sells %.0f to 500 shoppers, and chance %.0f", path, sold, chance)
			}
		}
	}
	if seen < 3 {
		t.Errorf("%d placements found", seen)
	}
}
