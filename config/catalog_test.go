package config_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/assortmenttest"
	"vitrine/bandit/bandittest"
	"vitrine/config"
	"vitrine/env"
	"vitrine/env/envtest"
	"vitrine/experiment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/option"
	"vitrine/internal/stream"
	"vitrine/paper/tractability"
	"vitrine/utility"
	"vitrine/utility/utilitytest"
)

// The tests in this file run the contract batteries over the catalog: a new entry is tested without a new test.

const features, size = 3, 3

// load loads a file with the given tables.
func load(t *testing.T, tables string) *experiment.Experiment {
	t.Helper()
	return loadWide(t, features, tables)
}

// loadWide is load for items of another number of features.
func loadWide(t *testing.T, features int, tables string) *experiment.Experiment {
	t.Helper()
	text := fmt.Sprintf("name = \"x\"\npool = \"camera\"\nrounds = 100\nitems = 12\nsize = %d\nfeatures = "+
		"%d\nseeds = 1\n%s", size, features, tables)
	f := fatal.Or(config.Load("x.toml", []byte(text)))(t)
	fatal.If(t, f.UsePool(pool(features)))
	return fatal.Or(f.Experiment(config.Selection{}, ""))(t)
}

// pool stands in for the data behind worlds of the kind "pool".
func pool(features int) *env.Pool {
	rng := stream.New(2, 0, stream.World)
	x := mat.NewDense(200, features, nil)
	env.Gaussian{}.Draw(x, rng)
	var sets [][]int32 // as many alternatives as the tests' worlds have items
	for _, n := range []int32{4, 5, 12} {
		for range 500 {
			set := make([]int32, n)
			for k := range set {
				set[k] = rng.Int32N(200)
			}
			sets = append(sets, set)
		}
	}
	return &env.Pool{Features: x, Model: utility.NewLinear(features, false), Params: mat.Row(nil, 0, x), Sets: sets}
}

const plainWorld = "[contexts]\nkind = \"gaussian\"\n[truth]\nkind = \"cosine\"\n"

// short makes a learner's phases short enough for the battery.
var short = map[string]string{
	"onl-mnl":         "warmup = 12\npilot_steps = 50\n",
	"greedy":          "warmup = 12\npilot_steps = 50\n",
	"eps-greedy-mnl":  "steps = 20\n",
	"feel-good-ts":    "moves = 3\n",
	"log-barrier-mnl": "steps = 20\nlimit = 300\n",
}

// learners describes the policies with learners in this program. Package experiment tests the others.
func learners() []config.Description {
	return slices.DeleteFunc(config.Descriptions("policy"), func(d config.Description) bool {
		return d.Name == "process"
	})
}

func TestPolicies(t *testing.T) {
	for _, entry := range learners() {
		t.Run(entry.Name, func(t *testing.T) {
			table := "[[policy]]\nname = \"" + entry.Name + "\"\n" + short[entry.Name]
			if slices.ContainsFunc(entry.Options, func(o option.Option) bool {
				return o.Key == "utility" && o.Required
			}) {
				table += "utility = { kind = \"mlp\", hidden = [2] }\n"
			}
			e := load(t, plainWorld+table)
			bandittest.TestLearner(t, features, size, 40, func() vitrine.Learner {
				l := fatal.Or(e.Policies[0].New(e.World(stream.New(1, 0, stream.World)),
					stream.New(1, 0, stream.Learner)))(t)
				return l
			})
		})
	}
}

// Every policy comes with a description that fits a terminal's line, its cost, and advice on when to choose it.
func TestPoliciesAreExplained(t *testing.T) {
	const columns, names = 80, len("  log-barrier-mnl  ")
	for _, d := range config.Descriptions("policy") {
		if d.Doc == "" || d.Choose == "" || d.Offer == "" || d.Round == "" {
			t.Errorf("%s: its line in the catalog lacks something: %q",
				d.Name, []string{d.Doc, d.Choose, d.Offer, d.Round})
		}
		if n := names + utf8.RuneCountInString(d.Doc); n > columns || strings.Contains(d.Doc, "\n") {
			t.Errorf("%s: %d columns with the name, at most %d fit a terminal: %s", d.Name, n, columns, d.Doc)
		}
	}
}

// Every option comes with a line of description: give the field a tag doc:"…".
func TestOptionsAreExplained(t *testing.T) {
	for _, d := range config.Descriptions() {
		for _, o := range d.Options {
			words := len(strings.Fields(o.Doc))
			switch {
			case o.Doc == "":
				t.Errorf("%s %s: option %s has no doc tag beside its field", d.Table, d.Name, o.Key)
			case strings.HasPrefix(o.Range(), ","):
				t.Errorf("%s %s: option %s has a zero and no range: %q", d.Table, d.Name, o.Key, o.Range())
			case o.Key == "of" && !slices.Equal(o.Words, slices.Sorted(maps.Keys(env.ColumnKinds))):
				t.Errorf("%s %s: columns are %q", d.Table, d.Name, o.Words)
			case utf8.RuneCountInString(o.Doc) > 80 || strings.ContainsAny(o.Doc, "\n") ||
				strings.HasSuffix(o.Doc, ".") || words < 2:
				t.Errorf("%s %s: option %s: its doc must be a line of at most 80 columns without a full stop: %q",
					d.Table, d.Name, o.Key, o.Doc)
			}
		}
	}
}

// Values just outside an option's stated range are rejected by name. The default is inside.
func TestRangesAreEnforced(t *testing.T) {
	tried := 0
	for _, d := range config.Descriptions("policy") {
		for _, o := range d.Options {
			for _, v := range outside(o) {
				if err := loadOption(t, d, o, v); err == nil || !strings.Contains(err.Error(), o.Key+" = ") ||
					!strings.Contains(err.Error(), ": must be ") {
					t.Errorf("%s: %s = %v is outside %s, and the error is %v", d.Name, o.Key, v, o.Range(), err)
				}
				tried++
			}
			if o.Default == nil {
				continue
			}
			if key, _ := o.When(); key == "" {
				expect.Error(t, loadOption(t, d, o, o.Default), nil, d.Name, "the default", o.Key, o.Default,
					"is refused")
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d values were outside a range", tried)
	}
}

// outside returns values just outside the range, or none if every value is valid.
func outside(o option.Option) []any {
	if o.Words != nil {
		return []any{strings.Join(o.Words, "")}
	}
	if o.Legal == nil {
		return nil
	}
	var values []any
	for _, edge := range []struct {
		at, beyond float64
		open       bool
	}{{o.Legal.Low, -1, o.Legal.OpenLow}, {o.Legal.High, 1, o.Legal.OpenHigh}} {
		if math.IsInf(edge.at, 0) {
			continue
		}
		v := edge.at
		switch {
		case edge.open:
		case o.Legal.Float:
			v = math.Nextafter(v, math.Inf(int(edge.beyond)))
		default:
			v += edge.beyond
		}
		if v == 0 && strings.Contains(o.Range(), "or 0 for") {
			v = edge.beyond
		}
		if o.Legal.Float {
			values = append(values, v)
		} else {
			values = append(values, int(v))
		}
	}
	if o.Legal.Float {
		values = append(values, math.NaN(), math.Inf(1), math.Inf(-1))
	}
	return values
}

// loadOption loads a file with a policy that sets an option to v.
func loadOption(t *testing.T, d config.Description, o option.Option, v any) error {
	t.Helper()
	policy := map[string]any{"name": d.Name, o.Key: v}
	for _, other := range d.Options {
		switch {
		case other.Required && other.Key == "command":
			policy["command"] = []string{"true"}
		case other.Required:
			policy["utility"] = map[string]any{"kind": "linear"}
		}
	}
	if key, value := o.When(); key != "" {
		policy[key] = value
		for _, other := range d.Options { // the first one outside its range is reported
			if k, _ := other.When(); k != "" && other.Key != o.Key {
				policy[other.Key] = 0.1
			}
		}
	}
	text, err := toml.Marshal(map[string]any{
		"name": "x", "items": 8, "size": size, "features": features,
		"contexts": map[string]any{"kind": "gaussian"}, "truth": map[string]any{"kind": "cosine"},
		"policy": []any{policy},
	})
	fatal.If(t, err)
	_, err = config.Load("x.toml", text)
	return err
}

// The figure of algorithms' costs uses policies from the catalog, and ε-greedy twice.
func TestMeasuredAlgorithmsArePolicies(t *testing.T) {
	var known []string
	for _, entry := range config.Descriptions("policy") {
		known = append(known, entry.Name)
	}
	for _, a := range tractability.Algorithms() {
		if !slices.Contains(known, a.Policy) && a.Policy != "eps-greedy-online" {
			t.Errorf("tractability.Algorithms has %s, which is no policy", a.Policy)
		}
	}
}

func TestUtilities(t *testing.T) {
	for _, entry := range config.Descriptions("utility") {
		t.Run(entry.Name, func(t *testing.T) {
			utilitytest.TestModel(t, config.Model(t, entry.Name, features))
		})
	}
}

func TestEnvironments(t *testing.T) {
	for _, d := range config.Descriptions("contexts", "truth", "revenue", "drift") {
		t.Run(d.Table+" "+d.Name, func(t *testing.T) {
			kinds := map[string]string{"contexts": "gaussian", "truth": "cosine", "revenue": "one"}
			kinds[d.Table] = d.Name
			if d.Name == "ideals" {
				kinds["contexts"] = "priced"
			}
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

// The outside option's utility is subtracted from the items' utilities.
func TestTableOutside(t *testing.T) {
	of := func(outside string) []float64 {
		world := load(t, "[contexts]\nkind = \"table\"\n[truth]\nkind = \"table\"\n"+outside+
			"[[policy]]\nname = \"uniform\"\n").World(stream.New(1, 0, stream.World))
		u := make([]float64, 12)
		world.Utilities(u, world.Context(stream.New(1, 1, stream.Contexts)))
		return u
	}
	u, shifted := of(""), of("outside = 0.7\n")
	for i := range u {
		if math.Abs(shifted[i]-(u[i]-0.7)) > 1e-15 {
			t.Errorf("item %d: %v, want %v", i, shifted[i], u[i]-0.7)
		}
	}
}

// rules are keys of a constraint, for 12 items.
var rules = []string{
	"",
	"min_size = 2\ninclude = [3]\nexclude = [0, 11]\n",
	"min_size = 1\nexclude = [5]\nlimits = [{ items = [0, 1, 2, 3, 4], max = 2 }, { items = [1, 3], max = 1 }, { " +
		"items = [11, 10], min = 1, max = 1 }]\n",
	"spaces = [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]\ncapacity = 9\nmin_size = 1\nlimits = [{ items = [0, 1, 2, 3], " +
		"max = 1 }, { items = [6, 7], min = 1 }]\n",
	"spaces = [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]\ncapacity = 9\n",
	"limits = [{ items = [0, 3, 6, 9], max = 1 }, { items = [0, 1, 2], min = 1 }, { items = [3, 4, 5], max = 1 }]\n",
}

func TestConstraints(t *testing.T) {
	for _, text := range rules {
		e := load(t, plainWorld+"[constraint]\nkind = \"rules\"\n"+text+"[[policy]]\nname = \"uniform\"\n")
		assortmenttest.TestConstraint(t, e.Constraint, 12)
	}
	if c, ok := load(t, plainWorld+"[[policy]]\nname = \"uniform\"\n").Constraint.(assortment.AtMost); !ok ||
		c != size {
		t.Errorf("the constraint is %v, want at most %d", c, size)
	}
}

func TestConstraintsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"kind = \"some\"":                                        `x.toml:5: constraint: kind = 'some': unknown: must be one of at-most, rules`,
		"min_size = 2":                                           `x.toml:4: constraint: kind is missing: must be one of at-most, rules`,
		"kind = \"at-most\"\nmin_size = 2":                       `x.toml:6: constraint: unknown key "min_size"`,
		"kind = \"rules\"\nmin_size = 2.5":                       `x.toml:6: constraint: min_size = 2.5: wrong type: want an integer`,
		"kind = \"rules\"\nmin_size = 3":                         `x.toml:4: constraint: size: at least 3 and at most 2: the bounds exclude each other`,
		"kind = \"rules\"\ninclude = [7]":                        `x.toml:4: constraint: item 7 is outside [0, 4)`,
		"kind = \"rules\"\nlimts = []":                           `x.toml:6: constraint: unknown key "limts": did you mean "limits"?`,
		"kind = \"rules\"\nlimits = 3":                           `x.toml:6: constraint: limits: must be an array of tables, [[limits]]`,
		"kind = \"rules\"\nlimits = [{mx = 1}]":                  `x.toml:6: constraint: limits[0]: unknown key "mx": did you mean "max"?`,
		"kind = \"rules\"\nlimits = [{items = [0, 9], max = 1}]": `x.toml:4: constraint: limits[0]: item 9 is outside [0, 4)`,
		"kind = \"rules\"\nlimits = [{items = [0, 1]}]":          `x.toml:6: constraint: limits[0]: needs a min, a max or both`,
		"kind = \"rules\"\ncapacity = 3":                         `x.toml:6: constraint: capacity and spaces go together`,
		"kind = \"rules\"\nspaces = [1, 2, 3, 4]":                `x.toml:4: constraint: capacity and spaces go together`,
		"kind = \"rules\"\nspaces = [1, 2]\ncapacity = 3":        `x.toml:4: constraint: 2 weights for 4 items`,
		"kind = \"rules\"\nspaces = [1, 2, 3, -4]\ncapacity = 1": `x.toml:6: constraint: spaces = [1 2 3 -4]: must be at least 0`,
	} {
		expect.Prefix(config.Load("x.toml", []byte("name = \"x\"\nitems = 4\nsize = 2\n[constraint]\n"+text+"\n")))(t,
			want, text)
	}
}
