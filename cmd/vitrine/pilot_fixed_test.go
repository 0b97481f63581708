package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"vitrine/choice"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// fitModel leaves model.json in a new working directory: the utility x, of 300 customers with exp(x)/(1 + exp(x)).
// home.json is a placement of the given policy.
func fitModel(t *testing.T, policy string) {
	t.Helper()
	t.Chdir(t.TempDir())
	rng := rand.New(rand.NewPCG(1, 1))
	var table strings.Builder
	table.WriteString("id,x,took\n")
	for range 300 { // customers take an item with exp(x)/(1 + exp(x))
		x := rng.NormFloat64()
		took := "0"
		if rng.Float64() < 1/(1+math.Exp(-x)) {
			took = "1"
		}
		text, _ := json.Marshal(x)
		table.WriteString("i" + string(text) + "," + string(text) + "," + took + "\n")
	}
	for name, text := range map[string]string{
		"log.csv": table.String(),
		"spec.toml": "[data]\nform = \"long\"\nchoice = [\"id\"]\nchosen = \"took\"\noutside = " +
			"\"implicit\"\n[utility]\ngeneric = [\"x\"]\n",
		"home.json": `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"` + policy + `"}}`,
	} {
		fatal.If(t, os.WriteFile(name, []byte(text), 0o644))
	}
	shell(t, "vitrine fit log.csv spec.toml --out model.json")
}

// The model is the prior of auto: the first pages are its best ones, before anything is learned.
func TestPilotOfAuto(t *testing.T) {
	fitModel(t, "auto")
	config := []byte(shell(t, "vitrine pilot model.json home.json"))
	mentions(t, string(config), `"name": "auto"`, `"prior_mean"`, `"prior_covariance"`)
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: new(memlog.Store), Build: setup.NewLearner}))(t)
	defer e.Close()
	fatal.Or(e.Put(t.Context(), "home", config, 0))(t)
	best := 0
	for round := range 50 {
		r := &api.Request{Decision: fmt.Sprint("d", round),
			Items: []api.Item{{ID: "a", Features: api.Values{api.Number("x", -1)}},
				{ID: "b", Features: api.Values{api.Number("x", 1)}}}}
		a := fatal.Or(e.Decide(t.Context(), "home", r, 0))(t)
		if len(a.IDs()) == 1 && a.IDs()[0] == "b" {
			best++
		}
	}
	if best < 48 {
		t.Errorf("the better item is shown %d times of 50", best)
	}
}

// A placement with a fixed model shows the model's utilities before and after outcomes that speak
// against them.
func TestFixedPilot(t *testing.T) {
	fitModel(t, "ucb-mnl")
	config := []byte(shell(t, "vitrine pilot model.json home.json --no-learning"))
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: new(memlog.Store), Build: setup.NewLearner}))(t)
	defer e.Close()
	fatal.Or(e.Put(t.Context(), "home", config, 0))(t)
	var before float64
	for round := range 200 {
		r := &api.Request{Decision: fmt.Sprint("d", round),
			Items: []api.Item{{ID: "a", Features: api.Values{api.Number("x", 1)}},
				{ID: "b", Features: api.Values{api.Number("x", -1)}}}}
		a := fatal.Or(e.Decide(t.Context(), "home", r, 0))(t)
		if len(a.IDs()) != 1 || a.IDs()[0] != "a" || len(a.Probability) != 1 {
			t.Fatalf("round %d: %+v", round, a)
		}
		if round == 0 {
			before = a.Probability[0]
		}
		if math.Abs(a.Probability[0]-before) > 1e-9 {
			t.Fatalf("round %d: probability %v, at first %v", round, a.Probability[0], before)
		}
		fatal.If(t, e.Outcome(t.Context(), "home", r.Decision, "", 1))
	}
	if before < 0.6 || before > 0.85 {
		t.Errorf("probability %v, want about e/(1+e)", before)
	}
}

// The pessimistic placement is greedy with the model's covariance, and its errors say what to do.
func TestPessimisticPilot(t *testing.T) {
	fitModel(t, "auto")
	text := shell(t, "vitrine pilot model.json home.json --pessimistic 1.5")
	var config struct {
		Policy struct {
			Name       string    `json:"name"`
			Update     string    `json:"update"`
			Pessimism  float64   `json:"pessimism"`
			Weights    []float64 `json:"pilot_weights"`
			Covariance []float64 `json:"pilot_covariance"`
		} `json:"policy"`
	}
	fatal.If(t, json.Unmarshal([]byte(text), &config), text)
	model, err := choice.ReadModel("model.json")
	fatal.If(t, err)
	p := config.Policy
	if p.Name != "greedy" || p.Update != "none" || p.Pessimism != 1.5 ||
		!slices.Equal(p.Weights, []float64{model.Coefficients[0], 0}) ||
		!slices.Equal(p.Covariance, []float64{model.Covariance.At(0, 0), 0, 0, 0}) {
		t.Errorf("the policy is %+v", p)
	}
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: new(memlog.Store), Build: setup.NewLearner}))(t)
	defer e.Close()
	fatal.Or(e.Put(t.Context(), "home", []byte(text), 0))(t)
	expect.Equal(t, shell(t, "vitrine pilot model.json home.json --no-learning --pessimistic 0"),
		shell(t, "vitrine pilot model.json home.json --no-learning"), "a pessimism of 0 gives")
	for _, level := range []string{"-1", "NaN", "Inf"} {
		expect.Contains(t, shell(t, "vitrine pilot model.json home.json --pessimistic="+level),
			"must be a number of standard errors, at least 0", "--pessimistic", level)
	}
	whole := fatal.Or(os.ReadFile("model.json"))(t)
	var fields map[string]any
	fatal.If(t, json.Unmarshal(whole, &fields))
	delete(fields, "covariance")
	if whole, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	fatal.If(t, os.WriteFile("model.json", whole, 0o644))
	for _, flags := range []string{"--pessimistic 1", "--pessimistic 1 --no-learning", ""} {
		expect.Contains(t, shell(t, strings.TrimSpace("vitrine pilot model.json home.json "+flags)),
			"the model has no covariance", "without a covariance, flags", flags)
	}
	expect.Contains(t, shell(t, "vitrine pilot model.json home.json --no-learning"), `"update": "none"`)
}
