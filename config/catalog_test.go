package config_test

import (
	"fmt"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
	"vitrine/bandit/bandittest"
	"vitrine/config"
	"vitrine/env"
	"vitrine/env/envtest"
	"vitrine/experiment"
	"vitrine/internal/stream"
	"vitrine/utility"
	"vitrine/utility/utilitytest"
)

// The tests of this file run the contract batteries over the catalog: a new
// line in it is tested without a new test.

const features, size = 2, 3

// load loads a file with the given tables.
func load(t *testing.T, tables string) *experiment.Experiment {
	t.Helper()
	text := fmt.Sprintf("name = \"x\"\npool = \"camera\"\nrounds = 100\nitems = 12\nsize = %d\nfeatures = %d\nseeds = 1\n%s", size, features, tables)
	f, err := config.Load("x.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.UsePool(pool(features)); err != nil {
		t.Fatal(err)
	}
	e, err := f.Experiment(config.Selection{}, "")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// pool stands for the data that worlds of the kind "pool" are made of.
func pool(features int) *env.Pool {
	rng := stream.New(2, 0, stream.World)
	x := mat.NewDense(200, features, nil)
	env.Gaussian{}.Draw(x, rng)
	return &env.Pool{Features: x, Model: utility.NewLinear(features, false), Params: mat.Row(nil, 0, x)}
}

const plainWorld = "[contexts]\nkind = \"gaussian\"\n[truth]\nkind = \"cosine\"\n"

// short makes the phases of a learner short enough for the battery.
var short = map[string]string{
	"onl-mnl":        "warmup = 12\npilot_steps = 50\n",
	"greedy":         "warmup = 12\npilot_steps = 50\n",
	"eps-greedy-mnl": "steps = 20\n",
}

func TestPolicies(t *testing.T) {
	for _, entry := range config.Policies() {
		t.Run(entry.Name, func(t *testing.T) {
			table := "[[policy]]\nname = \"" + entry.Name + "\"\n" + short[entry.Name]
			if short[entry.Name] != "" {
				table += "utility = { kind = \"mlp\", hidden = [2] }\n"
			}
			e := load(t, plainWorld+table)
			bandittest.TestLearner(t, features, size, 40, func() vitrine.Learner {
				l, err := e.Policies[0].New(e.World(stream.New(1, 0, stream.World)), stream.New(1, 0, stream.Learner))
				if err != nil {
					t.Fatal(err)
				}
				return l
			})
		})
	}
}

func TestUtilities(t *testing.T) {
	for _, entry := range config.Utilities() {
		t.Run(entry.Name, func(t *testing.T) {
			utilitytest.TestModel(t, config.Model(t, entry.Name, features))
		})
	}
}

func TestEnvironments(t *testing.T) {
	for _, entry := range config.Environments() {
		t.Run(entry.Name, func(t *testing.T) {
			kinds := map[string]string{"contexts": "gaussian", "truth": "cosine", "revenue": "one"}
			table, kind, _ := strings.Cut(entry.Name, " ")
			kinds[table] = kind
			text := ""
			for table, kind := range kinds {
				text += "[" + table + "]\nkind = \"" + kind + "\"\n"
			}
			e := load(t, text+"[[policy]]\nname = \"uniform\"\n")
			var world env.Environment = e.World(stream.New(1, 0, stream.World))
			envtest.TestEnvironment(t, world, 12, features)
		})
	}
}

func TestConstraints(t *testing.T) {
	if n := len(config.Constraints()); n != 1 {
		t.Fatalf("%d constraints: judge the new ones here", n)
	}
	assortmenttest.TestConstraint(t, load(t, plainWorld+"[[policy]]\nname = \"uniform\"\n").Constraint)
	if c, ok := load(t, plainWorld+"[[policy]]\nname = \"uniform\"\n").Constraint.(assortment.AtMost); !ok || c != size {
		t.Errorf("the constraint is %v, want at most %d", c, size)
	}
}
