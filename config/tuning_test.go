package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vitrine/config"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/paper/experiments"
	"vitrine/tune"
)

// embedded opens the paper's experiments, and two small ones.
func embedded(name string) (*config.File, error) {
	if name == "a.toml" || name == "b.toml" {
		lambda := map[string]string{"a.toml": "1.0", "b.toml": "10.0"}[name]
		return config.Load(name, []byte("name = \""+strings.TrimSuffix(name, ".toml")+"\"\nrounds = 100\n"+plainWorld+`
[[policy]]
name = "ucb-mnl"
label = "mine"
constants = "tuned"
radius = 1.0
lambda = `+lambda+`
[[policy]]
name = "greedy"
lambda = `+lambda+`
utility = { kind = "mlp", hidden = [3] }
`))
	}
	text, err := experiments.Read(name)
	if err != nil {
		return nil, fmt.Errorf("there is no experiment %q", name)
	}
	return config.Load(name+".toml", text)
}

const tuningHead = "name = \"x\"\nexperiments = [\"a.toml\", \"b.toml\"]\npolicy = \"mine\"\n"

func loadTuning(t *testing.T, text string) *config.Tuning {
	t.Helper()
	return fatal.Or(config.LoadTuning("x.toml", []byte(text), embedded))(t)
}

// The embedded tunings load, avoid the figures' seeds, and search around the panels' own values.
func TestEmbeddedTunings(t *testing.T) {
	policies := map[string]bool{}
	for _, name := range experiments.Tunings() {
		text := fatal.Or(experiments.ReadTuning(name))(t)
		tuning := fatal.Or(config.LoadTuning(name+".toml", text, embedded))(t)
		if tuning.Name != name {
			t.Errorf("%s.toml is called %q", name, tuning.Name)
		}
		if tuning.Training[0] < 1000 || tuning.Fresh[0] < 2000 {
			t.Errorf("%s trains on seeds from %d and reports on seeds from %d",
				name, tuning.Training[0], tuning.Fresh[0])
		}
		policies[tuning.Policy] = true
		configured := -1
		for i := range tuning.Settings {
			if tuning.IsConfigured(i) {
				configured = i
			}
		}
		if configured < 0 {
			t.Errorf("%s does not search the setting that the panels have", name)
		}
	}
	for _, want := range []string{"onl-mnl", "greedy", "ucb-mnl-tuned", "ts-mnl-tuned", "ofu-mnl-plus-tuned"} {
		if !policies[want] {
			t.Errorf("no tuning of %s", want)
		}
	}
}

func TestLoadTuning(t *testing.T) {
	got := loadTuning(t, tuningHead+`
training = { first_seed = 107, seeds = 3 }
fresh = { first_seed = 110, seeds = 2, best = 4 }
halving = { first = 2, factor = 3 }
[grid]
radius = [0, 0.5]
intercept = [true, false]
lambda = [1]
`)
	expect.Equal(t, got.Parameters, []string{"radius", "intercept", "lambda"}, "parameters, in the order of the file")
	var points [][]string
	for i := range got.Settings {
		points = append(points, got.Values(i))
	}
	want := [][]string{{"0", "true", "1"}, {"0", "false", "1"}, {"0.5", "true", "1"}, {"0.5", "false", "1"}}
	expect.Equal(t, points, want, "settings")
	expect.Equal(t, got.Values(config.Configured), []string{"1", "false", "1/10"}, "configured")
	expect.Equal(t, [][]uint64{got.Training, got.Fresh}, [][]uint64{{107, 108, 109}, {110, 111}}, "seeds")
	if got.Halving != (tune.Halving{First: 2, Factor: 3}) || got.Best != 4 || got.Title != "x" {
		t.Errorf("halving %v, best %d, title %q", got.Halving, got.Best, got.Title)
	}
}

// A setting keeps the keys of the panel's policy except the searched ones, and two equal settings are played as one
// run.
func TestTuningExperiment(t *testing.T) {
	tuning := loadTuning(t, tuningHead+"[grid]\nlambda = [1.0, 10.0]\n")
	for panel, same := range []int{0, 1} {
		if tuning.Label(panel, config.Configured) != tuning.Label(panel, same) {
			t.Errorf("panel %d: the configured setting is called %q, its equal %q",
				panel, tuning.Label(panel, config.Configured), tuning.Label(panel, same))
		}
		e := fatal.Or(tuning.Experiment(panel, []int{0, 1, config.Configured}, []uint64{5}, "v"))(t)
		if diff := cmp.Diff([]uint64{5}, e.Seeds); diff != "" || e.Version != "v" || len(e.Policies) != 2 {
			t.Errorf("seeds %v, version %q, %d policies", e.Seeds, e.Version, len(e.Policies))
		}
		want := map[string]any{"name": "ucb-mnl", "constants": "tuned", "radius": 1.0, "intercept": false,
			"lambda": 10.0}
		if diff := cmp.Diff(want, e.Policies[1].Settings); diff != "" || e.Policies[1].Label != "mine lambda=10" {
			t.Errorf("policy %s (-want +got):\n%s", e.Policies[1].Label, diff)
		}
	}
	if tuning.IsConfigured(0) || tuning.IsConfigured(1) {
		t.Error("a setting of one panel is taken for that of both")
	}
	tuning = loadTuning(t, tuningHead+"[grid]\nradius = [1]\n")
	if !tuning.IsConfigured(0) {
		t.Error("the configured setting is not recognised")
	}
}

// A policy that sees only first takes sees no more of them at any setting.
func TestTuningFirstTakes(t *testing.T) {
	open := func(name string) (*config.File, error) {
		return config.Load(name, []byte("name = \"a\"\nrounds = 100\n"+plainWorld+`
[[policy]]
name = "greedy"
label = "mine"
takes = "first"
warmup = 10
utility = { kind = "mlp", hidden = [3] }
`))
	}
	const head = "name = \"x\"\nexperiments = [\"a.toml\"]\npolicy = \"mine\"\n"
	tuning := fatal.Or(config.LoadTuning("x.toml", []byte(head+"[grid]\nwarmup = [10, 20]\n"), open))(t)
	if !tuning.IsConfigured(0) || tuning.IsConfigured(1) {
		t.Error("the configured setting is not recognised")
	}
	expect.List(t, tuning.Values(config.Configured), []string{"10"}, "the configured setting is")
	e := fatal.Or(tuning.Experiment(0, []int{config.Configured, 1}, []uint64{0}, ""))(t)
	for _, p := range e.Policies {
		if takes := p.Settings.(map[string]any)["takes"]; !p.FirstTakes || takes != "first" {
			t.Errorf("policy %s: FirstTakes = %v, takes = %v", p.Label, p.FirstTakes, takes)
		}
	}
	expect.Equal(t, len(e.Policies), 2, "policies")
	// A range of whole numbers draws whole numbers, and others would not be accepted.
	_ = fatal.Or(config.LoadTuning("x.toml", []byte(head+"[random.ranges]\nwarmup = { low = 10, high = 90 }\n"), open))(
		t)
}

// Nested keys are written with dots, and leave neighbouring keys unchanged.
func TestTuningNestedKeys(t *testing.T) {
	for _, text := range []string{
		"[grid]\nutility.hidden = [[3], [3, 2]]\n",
		"[grid]\n\"utility.hidden\" = [[3], [3, 2]]\n",
		"[grid.utility]\nhidden = [[3], [3, 2]]\n",
	} {
		tuning := loadTuning(t, strings.Replace(tuningHead, "mine", "greedy", 1)+text)
		e := fatal.Or(tuning.Experiment(0, []int{1}, []uint64{0}, ""))(t)
		got := e.Policies[0].Settings.(map[string]any)["utility"]
		want := map[string]any{"kind": "mlp", "activation": "sigmoid", "hidden": []any{int64(3), int64(2)}}
		if diff := cmp.Diff(want, got); diff != "" || e.Policies[0].Label != "greedy utility.hidden=[3, 2]" {
			t.Errorf("%s%s (-want +got):\n%s", text, e.Policies[0].Label, diff)
		}
	}
}

func TestTuningRandom(t *testing.T) {
	const random = `
[random]
draws = 20
seed = 3
[random.ranges]
warmup = { low = 10, high = 50 }
lambda = { low = 0.1, high = 10, log = true }
utility.hidden = [[3], [15]]
`
	head := strings.Replace(tuningHead, "mine", "greedy", 1)
	tuning := loadTuning(t, head+random)
	expect.Equal(t, tuning.Parameters, []string{"warmup", "lambda", "utility.hidden"}, "parameters")
	expect.Equal(t, tuning.Settings, 20, "settings")
	again, other := loadTuning(t, head+random), loadTuning(t, head+strings.Replace(random, "seed = 3", "seed = 4", 1))
	if !slices.Equal(again.Values(7), tuning.Values(7)) || slices.Equal(other.Values(7), tuning.Values(7)) {
		t.Errorf("setting 7 is %v, again %v, of another seed %v", tuning.Values(7), again.Values(7), other.Values(7))
	}
	// Random draws in addition to a grid; draws that repeat grid points are left out.
	both := loadTuning(t,
		head+"[grid]\nlambda = [1, 2]\nwarmup = [10]\n[random]\ndraws = 50\nranges = { warmup = { low = 10, high "+
			"= 12 }, lambda = [1.0, 5.0] }\n")
	var points []string
	for i := range both.Settings {
		points = append(points, strings.Join(both.Values(i), " "))
	}
	slices.Sort(points[2:])
	expect.Equal(t, points, []string{"1 10", "2 10", "1 11", "1 12", "5 10", "5 11", "5 12"}, "grid and draws")
}

func TestTuningErrors(t *testing.T) {
	const head = tuningHead
	greedy := strings.Replace(head, "mine", "greedy", 1)
	for text, want := range map[string]string{
		"experiments = [\"a.toml\"]": "x.toml: name is missing: it names the directory",
		"name = \"X\"":               `x.toml:1: name = "X": use at most 100 lower-case letters`,
		"name = \"x\"\nplicy = \"mine\"\nexperiments = [\"a.toml\"]": `x.toml:2: unknown key "plicy": did you mean "policy"?`,
		"name = \"x\"\nexperiments = [\"a.toml\"]":                   "x.toml: policy is missing",
		"name = \"x\"\npolicy = \"mine\"":                            "x.toml: experiments must be a list of at least one",
		"name = \"x\"\npolicy = \"mine\"\nexperiments = []":          "x.toml:3: experiments must be a list of at least one",
		"name = \"x\"\npolicy = \"mine\"\nexperiments = \"a.toml\"": "x.toml:3: experiments must be " +
			"a list of at least one",
		"name = \"x\"\npolicy = \"mine\"\nexperiments = [1]": "x.toml:3: experiments: 1: " +
			"must be a name or a path in quotes",
		"name = \"x\"\npolicy = \"mine\"\nexperiments = [\"c\"]":                  `x.toml:3: there is no experiment "c"`,
		"name = \"x\"\npolicy = \"mine\"\nexperiments = [\"a.toml\", \"a.toml\"]": `x.toml:3: experiments: "a" stands twice`,
		"name = \"x\"\npolicy = \"ucb\"\nexperiments = [\"a.toml\"]":              `x.toml:2: policy = "ucb": a has no policy of this label: it has mine, greedy`,
		head:                         "x.toml: there is nothing to search: give it a [grid] or a [random]",
		head + "grid = 3":            "x.toml:4: grid = 3: must be a table",
		head + "[grid]":              "x.toml:4: grid: has no parameter",
		head + "[grid]\nradius = []": "x.toml:5: grid: radius = []: give it at least one value",
		head + "[grid]\nradius = [1.0, 2.0, 1.0]":       "x.toml:5: grid: radius has the value 1.0 twice",
		head + "[grid]\nradius = 1.0":                   "x.toml:5: grid: radius = 1.0: must be a list of values, [1.0]",
		head + "[grid]\nradus = [1]":                    `x.toml:5: policy "mine" of a: unknown key "radus": did you mean "radius"?`,
		head + "[grid]\nlambda = [1]\nmomentum = [1]":   `x.toml:6: policy "mine" of a: unknown key "momentum": must be one of bound, constants, delta, intercept, lambda, position_effects, radius, update, utility, name, label, baselines, takes`,
		head + "[grid]\nutility.hidden = [[3]]":         `x.toml:5: policy "mine" of a: utility: kind is missing`,
		head + "[grid]\nlambda = [1, -2]":               `x.toml:5: policy "mine" of a: lambda = -2: must be finite and at least 1e-09`,
		head + "[grid]\nradius = [true]":                `x.toml:5: policy "mine" of a: radius = true: wrong type: want a number`,
		head + "[grid]\nlabel = [\"a\"]":                "x.toml:5: grid: label cannot be searched",
		head + "training = { first = 3 }\n[grid]":       `x.toml:4: training: unknown key "first"`,
		head + "training = { seeds = 0 }\n[grid]":       "x.toml:4: training: seeds = 0: must be from 1 to 1000000",
		head + "training = { first_seed = -1 }\n[grid]": "x.toml:4: training: first_seed = -1: must be at least 0",
		head + "fresh = { best = 0 }":                   "x.toml:4: fresh: best = 0: must be from 1",
		head + "fresh = { first_seed = 1039 }": "x.toml:4: fresh: the fresh seeds " +
			"1039 to 1138 overlap the training seeds 1000 to 1039",
		head + "fresh = { first_seed = 901 }": "x.toml:4: fresh: the fresh seeds " +
			"901 to 1000 overlap the training seeds 1000 to 1039",
		head + "training = { first_seed = 2000 }": "x.toml: the fresh seeds 2000 to " +
			"2099 overlap the training seeds 2000 to 2039",
		head + "training = { first_seed = 29 }": "x.toml:4: training: the seeds 29 to 68 overlap the seeds of a, " +
			"0 to 29: settings that were chosen on a seed are too good on it",
		head + "halving = { first = 41 }":     "x.toml:4: halving: first = 41: must be from 1 to the 40 training seeds",
		head + "halving = { factor = 1 }":     "x.toml:4: halving: factor = 1: must be from 2",
		head + "[random]\ndraws = 0":          "x.toml:5: random: draws = 0: must be from 1",
		head + "[random]\nseed = -1":          "x.toml:5: random: seed = -1: must be at least 0",
		head + "[random]\ndraw = 3":           `x.toml:5: random: unknown key "draw": did you mean "draws"?`,
		head + "[random]":                     "x.toml:4: random: ranges is missing",
		head + "[random.ranges]\nlambda = {}": "x.toml:5: random: lambda: give it both low and high",
		head + "[random.ranges]\nlambda = { low = 2, high = 1 }": "x.toml:5: random: lambda: low = 2, " +
			"high = 1: must be finite, low less than high",
		head + "[random.ranges]\nlambda = { low = 2, hihg = 1 }": `x.toml:5: random: lambda: unknown key "hihg": did you mean "high"?`,
		head + "[random.ranges]\nlambda = { low = 0, high = 1, log = true }": "x.toml:5: random: lambda: low = 0: " +
			"must be positive where log = true",
		head + "[random.ranges]\nlambda = 3": "x.toml:5: random: ranges: lambda = " +
			"3: must be a list of values, [3], or a range",
		head + "[grid]\nlambda = [1]\n[random.ranges]\nradius = [1]": "x.toml:6: random: ranges: has the " +
			"parameters radius, and the grid has lambda: they must be the same",
		head + "[random.ranges]\nname = { low = 1, high = 2 }":  "x.toml:5: random: ranges: name cannot be searched",
		head + "[random.ranges]\nradus = { low = 1, high = 2 }": `x.toml:5: policy "mine" of a: unknown key "radus"`,
		greedy + "[grid]\nwarmup = [100]":                       `x.toml:5: policy "greedy" of a: warmup = 100: must be less than rounds = 100`,
		greedy + "[grid]\nlambda = [1]\nutility.hidden = [[0]]": `x.toml:6: policy "greedy" of a: utility: hidden = [0]: must be from 1`,
		greedy + "[random.ranges]\nwarmup = { low = 0.5, high = 10 }": "x.toml:5: random: warmup: low = 0.5, high " +
			"= 10: warmup is a whole number",
		"name = = 3": "x.toml:1: ",
		head + "[grid]\n" + hundred("lambda") + hundred("radius") +
			"intercept = [true, false]": "x.toml:7: grid: intercept makes more than 10000 settings",
	} {
		expect.Prefix(config.LoadTuning("x.toml", []byte(text+"\n"), embedded))(t, want, text)
	}
}

// hundred returns a key with a hundred values.
func hundred(key string) string {
	var values []string
	for i := range 100 {
		values = append(values, fmt.Sprint(i+1))
	}
	return key + " = [" + strings.Join(values, ",") + "]\n"
}

// Loading never panics, and its errors name the file.
func FuzzLoadTuning(f *testing.F) {
	for _, name := range experiments.Tunings() {
		text := fatal.Or(experiments.ReadTuning(name))(f)
		f.Add(text)
	}
	f.Add([]byte(tuningHead + "[grid]\nlambda = [1, [2]]\nutility = {hidden = [3], x.y = [{}]}\n"))
	f.Add([]byte(tuningHead + "[random]\ndraws = 3\n[random.ranges]\nlambda = {low = 1, high = 2, log = " +
		"true}\nintercept = [true]\na.b = {low = []}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<11 {
			return
		}
		_, err := config.LoadTuning("fuzz.toml", text, func(name string) (*config.File, error) {
			if name != "a.toml" && name != "main-uniform-misspecified" {
				return nil, errors.Join(errors.New(name), fs.ErrNotExist)
			}
			return embedded(name)
		})
		if err != nil && !strings.HasPrefix(err.Error(), "fuzz.toml") {
			t.Errorf("error %q does not begin with the file's name", err)
		}
	})
}
