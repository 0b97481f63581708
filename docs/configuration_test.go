package docs_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"gonum.org/v1/gonum/mat"

	"vitrine/config"
	"vitrine/env"
	"vitrine/internal/fatal"
	"vitrine/paper/experiments"
	"vitrine/paper/geometry"
	"vitrine/paper/sessions"
	"vitrine/paper/theory"
	"vitrine/paper/tractability"
	"vitrine/utility"
)

// configuration is everything that a command plays for one result, without the version of the program: the description
// in run.json.
type configuration struct {
	Experiment string     `json:"experiment"`
	Settings   any        `json:"settings"`
	Seeds      []uint64   `json:"seeds"`
	Policies   []settings `json:"policies"`
}

type settings struct {
	Label    string `json:"label"`
	Settings any    `json:"settings"`
}

// labels returns the policies' labels.
func (c configuration) labels() (labels []string) {
	for _, p := range c.Policies {
		labels = append(labels, p.Label)
	}
	return labels
}

// fingerprint is short, and the same for configurations that are equal in JSON. It leaves out a pool's checksum,
// because not everyone holds the data.
func fingerprint(t *testing.T, configurations ...configuration) string {
	t.Helper()
	text, err := json.Marshal(configurations)
	fatal.If(t, err)
	var values []map[string]any
	fatal.If(t, json.Unmarshal(text, &values))
	for _, v := range values {
		if s, ok := v["settings"].(map[string]any); ok {
			if pool, ok := s["pool"].(map[string]any); ok {
				delete(pool, "checksum")
			}
		}
	}
	if text, err = json.Marshal(values); err != nil {
		t.Fatal(err)
	}
	return short(text)
}

// short returns the fingerprint of bytes.
func short(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text))[:12] }

// computed are the results without a file, and their settings. Their run.json stores them under a key of its own.
var computed = map[string]struct {
	key      string
	settings func(seeds []uint64) any
}{
	experiments.Theory:             {"study", func(seeds []uint64) any { return theory.Default(seeds) }},
	experiments.Sessions:           {"study", func(seeds []uint64) any { return sessions.Default(seeds) }},
	experiments.Rivers:             {"study", func(seeds []uint64) any { return sessions.Rivers(seeds) }},
	experiments.Tractability:       {"setting", func([]uint64) any { return tractability.Figure }},
	experiments.GeometricCondition: {"setting", func([]uint64) any { return geometry.Figure }},
}

// theorySeeds is the default number of seeds of the study of the theory.
const theorySeeds = 30

// configured returns what a command plays today:
//
//	vitrine reproduce NAME... [--baselines B] [--policies A,B] [--seeds N] [--first-seed N] [--data PATH]
func configured(t *testing.T, command string) (all []configuration) {
	t.Helper()
	words := strings.Fields(command)
	if len(words) < 3 || words[0] != "vitrine" || words[1] != "reproduce" {
		t.Fatalf("%q is not a command vitrine reproduce NAME...", command)
	}
	var names []string
	var sel config.Selection
	for i := 2; i < len(words); i++ {
		if !strings.HasPrefix(words[i], "--") {
			if slices.Contains(experiments.Groups(), words[i]) {
				names = append(names, experiments.Members(words[i])...)
			} else {
				names = append(names, words[i])
			}
			continue
		}
		if i+1 == len(words) {
			t.Fatalf("%q: %s has no value", command, words[i])
		}
		value, err := words[i+1], error(nil)
		switch words[i] {
		case "--baselines":
			sel.Baselines = value
		case "--policies":
			sel.Policies = strings.Split(value, ",")
		case "--seeds":
			sel.Seeds, err = strconv.Atoi(value)
		case "--first-seed":
			sel.FirstSeed, err = strconv.ParseUint(value, 10, 64)
		case "--data":
		default:
			t.Fatalf("%q: the test does not know %s", command, words[i])
		}
		fatal.If(t, err, command, words[i])
		i++
	}
	for _, name := range names {
		if c, ok := computed[name]; ok {
			all = append(all, configuration{Experiment: name, Settings: c.settings(seedsOf(sel))})
			continue
		}
		e, err := experimentFile(t, name).Experiment(sel, "")
		fatal.If(t, err, command)
		c := configuration{Experiment: e.Name, Settings: e.Settings, Seeds: e.Seeds}
		for _, p := range e.Policies {
			c.Policies = append(c.Policies, settings{p.Label, p.Settings})
		}
		all = append(all, c)
	}
	return all
}

func seedsOf(sel config.Selection) (seeds []uint64) {
	n := sel.Seeds
	if n == 0 {
		n = theorySeeds
	}
	for i := range uint64(n) {
		seeds = append(seeds, sel.FirstSeed+i)
	}
	return seeds
}

// experimentFile loads an embedded experiment. One of real items gets a pool of its shape: nothing is played.
func experimentFile(t *testing.T, name string) *config.File {
	t.Helper()
	text, err := experiments.Read(name)
	if err != nil {
		t.Fatalf("there is no experiment %s", name)
	}
	f := fatal.Or(config.Load(name+".toml", text))(t)
	if f.Pool == "" {
		return f
	}
	var shape struct{ Items, Features int }
	fatal.If(t, toml.Unmarshal(text, &shape))
	model := utility.NewLinear(shape.Features, false)
	pool := &env.Pool{Features: mat.NewDense(shape.Items, shape.Features, nil), Model: model,
		Params: make([]float64, model.NumParams())}
	fatal.If(t, f.UsePool(pool))
	return f
}

// recorded returns what run.json in dir says was played.
func recorded(t *testing.T, dir, name string) configuration {
	t.Helper()
	text := fatal.Or(os.ReadFile(filepath.Join(dir, name, "run.json")))(t)
	var c configuration
	fatal.If(t, json.Unmarshal(text, &c))
	if other, ok := computed[name]; ok {
		var record map[string]any
		fatal.If(t, json.Unmarshal(text, &record))
		return configuration{Experiment: name, Settings: record[other.key]}
	}
	return c
}

// union returns the labels of all configurations, each once, in their order.
func union(configurations []configuration) (labels []string) {
	for _, c := range configurations {
		for _, label := range c.labels() {
			if !slices.Contains(labels, label) {
				labels = append(labels, label)
			}
		}
	}
	return labels
}
