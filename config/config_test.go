package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"vitrine/config"
	"vitrine/env"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/paper/experiments"
)

func TestPanelsOfThePaperLoad(t *testing.T) {
	rounds := map[string]int{"main": 1000, "items": 500, "sweep": 1000, "imdb": 1000, "camera": 1000,
		"modecanada": 1000, "heating": 1000, "fishing": 1000, "positions": 1000, "worlds": 1000, "table1": 1000,
		"warmup": 1000, "unit": 1000, "linear": 3000, "contexts": 1000, "shop": 1000, "baskets": 1000}
	seeds := map[string]int{"main": 30, "items": 30, "sweep": 10, "imdb": 30, "camera": 30, "modecanada": 30,
		"heating": 30, "fishing": 30, "positions": 30, "worlds": 30, "table1": 30, "warmup": 30, "unit": 30,
		"linear": 10, "contexts": 60, "shop": 30, "baskets": 40}
	for _, name := range experiments.Names() {
		text := fatal.Or(experiments.Read(name))(t)
		f := fatal.Or(config.Load(name+".toml", text))(t)
		if f.Name != name {
			t.Errorf("%s.toml is called %q", name, f.Name)
		}
		group, _, _ := strings.Cut(name, "-")
		if f.Pool != "" {
			fatal.If(t, f.UsePool(pool(map[string]int{"imdb": 30, "camera": 10, "modecanada": 13, "heating": 6,
				"fishing": 8}[f.Pool])))
		}
		e := fatal.Or(f.Experiment(config.Selection{}, ""))(t)
		if e.Rounds != rounds[group] || len(e.Seeds) != seeds[group] {
			t.Errorf("%s has %d rounds and %d seeds, want %d and %d",
				name, e.Rounds, len(e.Seeds), rounds[group], seeds[group])
		}
		want := []string{"onl-mnl", "eps-greedy-mnl", "eps-greedy-sets", "ucb-mnl", "ts-mnl", "ofu-mnl-plus", "greedy",
			"uniform", "oracle"}
		if group == "items" {
			want = slices.Insert(want, 3, "eps-greedy-fixed")
		}
		if group == "table1" {
			want = []string{"onl-mnl", "eps-greedy-mnl", "eps-greedy-sets", "eps-greedy-online", "log-barrier-mnl",
				"log-barrier-online", "feel-good-ts", "feel-good-log", "ucb-mnl", "ts-mnl", "ofu-mnl-plus", "greedy",
				"uniform", "oracle"}
		}
		switch group {
		case "main":
			want = slices.Insert(want, slices.Index(want, "greedy"), "bma-mnl")
		case "unit":
			want = slices.Insert(slices.Insert(want, slices.Index(want, "greedy"), "bma-mnl"), 1, "onl-mnl-ball")
		case "contexts":
			want = []string{"onl-mnl", "eps-greedy-mnl", "eps-greedy-sets", "ucb-mnl-tuned", "greedy",
				"explore-then-commit", "uniform", "oracle"}
		case "warmup":
			want = []string{"onl-mnl", "onl-mnl-t10", "onl-mnl-t25", "onl-mnl-t100"}
			if strings.HasSuffix(name, "-misspecified") {
				want[3] = "onl-mnl-t50"
			}
		case "positions":
			want = []string{"onl-mnl", "onl-mnl-positions", "ucb-mnl", "ucb-mnl-positions", "ts-mnl",
				"ts-mnl-positions", "ofu-mnl-plus", "ofu-mnl-plus-positions", "bma-mnl", "bma-mnl-positions", "uniform",
				"oracle"}
		case "shop":
			want = []string{"auto", "uniform", "oracle"}
		case "baskets":
			want = []string{"auto", "auto-first", "ucb-mnl", "ucb-mnl-first", "uniform", "oracle"}
		case "modecanada", "heating", "fishing":
			want = []string{"onl-mnl", "eps-greedy-mnl", "ucb-mnl", "ts-mnl", "ofu-mnl-plus", "bma-mnl", "uniform",
				"oracle"}
		case "linear":
			want = []string{"onl-mnl", "onl-mnl-linear", "eps-greedy-mnl", "eps-greedy-sets", "ucb-mnl-growing",
				"ts-mnl-growing", "ofu-mnl-plus-growing", "ucb-mnl", "ts-mnl", "ofu-mnl-plus", "bma-mnl", "uniform",
				"oracle"}
		}
		expect.Equal(t, labels(t, f, config.Selection{}), want, name, "policies under theory constants")
	}
}

func labels(t *testing.T, f *config.File, sel config.Selection) []string {
	t.Helper()
	e := fatal.Or(f.Experiment(sel, ""))(t)
	var list []string
	for _, p := range e.Policies {
		list = append(list, p.Label)
	}
	return list
}

// An experiment would share its directory, and run.json, with a study of this name.
func TestNamesOfStudies(t *testing.T) {
	for _, name := range experiments.WithoutFile() {
		expect.Prefix(config.Load("x.toml", []byte("name = '"+name+"'")))(t,
			"x.toml:1: name = \""+name+"\": results have something else of this name")
	}
	long := strings.Repeat("a", 101) // longer than some file systems take
	expect.Message(config.Load("x.toml", []byte("name = '"+long+"'")))(t,
		"x.toml:1: name = \""+long+"\": use at most 100 lower-case letters, digits, '.', '_' and '-'")
}

// In panels built on the assumption ‖w*‖ ≤ 1, the truths satisfy it. In the linear benchmark, so do the contexts: ‖x‖ ≤
// 1.
func TestUnitPanelsKeepTheAssumption(t *testing.T) {
	for _, name := range append(experiments.Members("unit"), experiments.Members("linear")...) {
		text := fatal.Or(experiments.Read(name))(t)
		f := fatal.Or(config.Load(name+".toml", text))(t)
		e := fatal.Or(f.Experiment(config.Selection{}, ""))(t)
		largest := 0.0
		for seed := range uint64(50) {
			w := e.World(stream.New(seed, 0, stream.World)).(*env.World)
			largest = max(largest, mat.Norm(mat.NewVecDense(len(w.Truth.Params()), w.Truth.Params()), 2))
			if !strings.HasPrefix(name, "linear") {
				continue
			}
			x := w.Context(stream.New(seed, 1, stream.Contexts)).Features
			for i := range w.Items {
				if norm := mat.Norm(x.RowView(i), 2); norm > 1+1e-15 {
					t.Fatalf("%s: ‖x‖ = %v", name, norm)
				}
			}
		}
		if largest > 1+1e-15 || largest < 0.7 {
			t.Errorf("%s: the largest ‖w*‖ of 50 seeds is %v", name, largest)
		}
	}
}

func TestWorldsOfABallAreChecked(t *testing.T) {
	const text = "name = \"x\"\n[contexts]\nkind = \"clipped-gaussian\"\n%s\n[truth]\nkind = " +
		"\"linear\"\n%s\n[[policy]]\nname = \"uniform\"\n"
	for _, c := range []struct{ contexts, truth, want string }{
		{"", "ball = -1", "x.toml:7: truth: ball = -1: must be finite and positive, or 0 for w as drawn"},
		{"", "ball = nan", "x.toml:7: truth: ball = NaN: must be finite and positive, or 0 for w as drawn"},
		{"bound = -1", "", "x.toml:4: contexts: bound = -1: must be finite and positive, or 0 for 1/√d"},
		{"bound = inf", "", "x.toml:4: contexts: bound = +Inf: must be finite and positive, or 0 for 1/√d"},
		{"low = 1", "", `x.toml:4: contexts: unknown key "low"`},
	} {
		expect.Prefix(config.Load("x.toml", fmt.Appendf(nil, text, c.contexts, c.truth)))(t, c.want)
	}
}

// A run's settings include a linear learner's basis. Without a basis, they are the same as before bases existed.
func TestSettingsHaveTheBasis(t *testing.T) {
	e := load(t,
		plainWorld+"[[policy]]\nname = \"ucb-mnl\"\n[[policy]]\nname = \"ucb-mnl\"\nlabel = "+
			"\"quadratic\"\nutility = { kind = \"quadratic\" }\n")
	plain := map[string]any{"name": "ucb-mnl", "constants": "theory", "radius": 0.0, "intercept": false, "lambda": 1.0}
	expect.Equal[any](t, e.Policies[0].Settings, plain, "settings")
	plain["utility"] = map[string]any{"kind": "quadratic"}
	expect.Equal[any](t, e.Policies[1].Settings, plain, "settings on a basis")
}

func TestSelection(t *testing.T) {
	text := fatal.Or(experiments.Read("main-gaussian-realizable"))(t)
	f := fatal.Or(config.Load("main.toml", text))(t)
	for _, c := range []struct {
		sel  config.Selection
		want []string
	}{
		{config.Selection{Baselines: "tuned"}, []string{"onl-mnl", "eps-greedy-mnl", "eps-greedy-sets", "ucb-mnl-tuned",
			"ts-mnl-tuned", "ofu-mnl-plus-tuned", "bma-mnl", "greedy", "uniform", "oracle"}},
		{config.Selection{Baselines: "tuned", Policies: []string{"ucb-mnl", "oracle"}},
			[]string{"ucb-mnl-tuned", "oracle"}},
		{config.Selection{Baselines: "both", Policies: []string{"ucb-mnl"}}, []string{"ucb-mnl", "ucb-mnl-tuned"}},
		{config.Selection{Policies: []string{"ucb-mnl-tuned"}}, []string{"ucb-mnl-tuned"}},
		{config.Selection{Policies: []string{"uniform", "onl-mnl"}}, []string{"onl-mnl", "uniform"}},
	} {
		expect.Equal(t, labels(t, f, c.sel), c.want, c.sel)
	}
	e := fatal.Or(f.Experiment(config.Selection{Seeds: 3, FirstSeed: 7}, ""))(t)
	expect.Equal(t, e.Seeds, []uint64{7, 8, 9}, "seeds")
	expect.Part(f.Experiment(config.Selection{Policies: []string{"linucb"}}, ""))(t, "it has onl-mnl, ")
}

func TestSelectionOfNothingIsAnError(t *testing.T) {
	f := fatal.Or(config.Load("x.toml",
		[]byte("name = \"x\"\n"+plainWorld+"[[policy]]\nname = \"ucb-mnl\"\nbaselines = \"tuned\"\n")))(t)
	expect.Part(f.Experiment(config.Selection{}, ""))(t, "x has no policy for these baselines")
	expect.Equal(t, labels(t, f, config.Selection{Baselines: "tuned"}), []string{"ucb-mnl"}, "tuned")
}

// An error about a value of the wrong type quotes it as written in the file.
func TestWrongTypes(t *testing.T) {
	for text, want := range map[string]string{
		"rounds = \"ten\"": "x.toml:2: rounds = 'ten': wrong type: want an integer",
		"rounds = 1e3":     "x.toml:2: rounds = 1000.0: wrong type: want an integer",
		"title = \"a\\u0007b\"": "x.toml:2: title = \"a\\ab\": must be printable, in one line, and at most " +
			"100 bytes long",
		"title = 3":               "x.toml:2: title = 3: wrong type: want a string in quotes",
		"items = [1, 2]":          "x.toml:2: items = [1, 2]: wrong type: want an integer",
		"items = {a = 1}":         "x.toml:2: items = a table: wrong type: want an integer",
		"contexts = \"gaussian\"": "x.toml:2: contexts = 'gaussian': must be a table",
		"contexts = {kind = true}": "x.toml:2: contexts: kind = true: unknown: must be one of gaussian, " +
			"clipped-gaussian, uniform, student-t, shifts, visits, columns, priced, pool, table",
		"policy = [1]\n" + plainWorld: "x.toml:2: policy: must be an array of tables, [[policy]]",
		"truth.kind = \"mlp\"\ntruth.hidden = [\"3\"]\ncontexts.kind = \"gaussian\"": "x.toml:3: truth: hidden = " +
			"['3']: wrong type: want a list of integers",
		"items = 100000\nfeatures = 2000": "x.toml:2: items = 100000, features = 2000: a context must have at most " +
			"100000000 numbers",
		plainWorld + "[revenue]\nkind = \"uniform\"\nhigh = 1e99": "x.toml:8: revenue: high = 1e+99: revenues must be " +
			"at most 1e+80",
		"position_effects = true": "x.toml:2: position_effects = true: wrong type: want a list of numbers",
		plainWorld + "[[policy]]\nname = \"bma-mnl\"\nposition_effects = 1": "x.toml:8: policy \"bma-mnl\": " +
			"position_effects = 1: wrong type: want true or false",
		plainWorld + "[[policy]]\nname = \"auto\"\nprior_mean = [true]": "x.toml:8: policy \"auto\": " +
			"prior_mean = [true]: wrong type: want a list of numbers",
		plainWorld + "[[policy]]\nname = \"auto\"\nwidth = 1": "x.toml:8: policy \"auto\": unknown key \"width\": " +
			"must be one of position_effects, prior_covariance, prior_mean, name, label, baselines, takes",
		plainWorld + "[[policy]]\nname = \"auto\"\ntakes = \"last\"": "x.toml:8: policy \"auto\": takes = " +
			"\"last\": must be \"first\", or not be there: then the learner sees all takes",
		plainWorld + "[baskets]\nkind = \"pairs\"": "x.toml:7: baskets: kind = 'pairs': " +
			"unknown: must be one of independent, complements",
		"position_effects = [0.0, -1.0]\n" + plainWorld + "[constraint]\nkind = \"rules\"\nlimits = [{ items = [0, 1], " +
			"min = 1 }]": "x.toml:2: position_effects: the best order is not known under this [constraint]: leave out a " +
			"group's min, include, capacity and groups that cross",
		"position_effects = [0.0, -1.0]\nitems = 12\n" + plainWorld + "[baskets]\nkind = \"complements\"": "x.toml:9: " +
			"baskets: kind = 'complements': the best order is not known for these baskets: leave out position_effects",
		"items = 12\n" + plainWorld + "[baskets]\nkind = \"complements\"\n[constraint]\nkind = \"rules\"": "x.toml:8: " +
			"baskets: kind = 'complements': the best page is not known under this [constraint]: leave it out",
		plainWorld + "[baskets]\nkind = \"complements\"": "x.toml:7: baskets: kind = 'complements': the best page is " +
			"found among all, and there are 79375495 assortments of at most 5 of 100 items, more than limit = 20000: " +
			"lower items or size",
		plainWorld + "[baskets]\nkind = \"independent\"\nmean = 0.5": "x.toml:8: baskets: mean = 0.5: must be " +
			"from 1 to 100",
	} {
		expect.Message(config.Load("x.toml", []byte("name = \"x\"\n"+text+"\n")))(t, want, text)
	}
}

// A family in which the best order is known takes position effects.
func TestPositionEffectsUnderRules(t *testing.T) {
	fatal.Or(config.Load("x.toml", []byte("name = \"x\"\nposition_effects = [0.0, -1.0]\n"+plainWorld+"[constraint]\n"+
		"kind = \"rules\"\nmin_size = 2\nlimits = [{ items = [0, 1], max = 1 }]\n[[policy]]\nname = \"uniform\"\n")))(t)
}

// A file's claims about its pool are validated, and an experiment needs the pool's data.
func TestPoolsAreChecked(t *testing.T) {
	world := "[contexts]\nkind = \"pool\"\n[truth]\nkind = \"pool\"\n%s[[policy]]\nname = \"uniform\"\n"
	for want, text := range map[string]string{
		`x.toml:2: pool = "cameras": unknown: did you mean "camera"?`: "pool = \"cameras\"\n" +
			fmt.Sprintf(world, ""),
		`x.toml:3: contexts: kind = 'pool': the file names no pool`: fmt.Sprintf(world, ""),
		`x.toml:7: truth: utility = "odds": unknown: must be one of logit, probability`: "pool = \"camera\"\n" +
			fmt.Sprintf(world, "utility = \"odds\"\n"),
		`x.toml:7: truth: unknown key "low": must be one of utility, kind`: "pool = \"camera\"\n" +
			fmt.Sprintf(world, "low = 1\n"),
	} {
		expect.Part(config.Load("x.toml", []byte("name = \"x\"\n"+text)))(t, want)
	}
	f := fatal.Or(config.Load("x.toml", []byte("name = \"x\"\npool = \"camera\"\n"+fmt.Sprintf(world, ""))))(t)
	expect.Message(f.Experiment(config.Selection{}, ""))(t, `x needs the data of pool "camera"`)
	for want, p := range map[string]*env.Pool{
		`x: features = 3, and the items of pool "camera" have 2`: pool(2),
		`x: items = 100, and the items of pool "camera" are 40`:  {Features: mat.NewDense(40, 3, nil)},
	} {
		expect.Message(f.UsePool(p))(t, want)
	}
}

// Learners know which columns are numbers and which are the customer's, so finished runs of another file do not count.
func TestSettingsNameTheColumns(t *testing.T) {
	text := "name = \"x\"\n%s[contexts]\nkind = \"visits\"\n[truth]\nkind = \"cosine\"\n[[policy]]\nname = \"auto\"\n"
	for _, key := range []string{"numbers", "customer"} {
		for _, n := range []int{0, 1, 2} {
			f := fatal.Or(config.Load("x.toml", fmt.Appendf(nil, text, fmt.Sprintf("%s = %d\n", key, n))))(t)
			known := fatal.Or(f.Experiment(config.Selection{}, ""))(t).Settings.(map[string]any)
			if v, ok := known[key]; ok != (n > 0) || ok && v != n {
				t.Errorf("%s = %d: the settings have %v", key, n, v)
			}
		}
	}
}

// Settings distinguish runs: they contain every option, with its default.
func TestSettingsAreResolved(t *testing.T) {
	f := fatal.Or(config.Load("x.toml",
		[]byte("name = \"x\"\n"+plainWorld+"[[policy]]\nname = \"ucb-mnl\"\nlambda = 2\n")))(t)
	e := fatal.Or(f.Experiment(config.Selection{}, ""))(t)
	want := map[string]any{"name": "ucb-mnl", "constants": "theory", "radius": 0.0, "intercept": false, "lambda": 2.0}
	expect.Equal[any](t, e.Policies[0].Settings, want, "settings")
}

// Loading never panics, and its errors name the file.
func FuzzLoad(f *testing.F) {
	for _, name := range experiments.Names() {
		text := fatal.Or(experiments.Read(name))(f)
		f.Add(text)
	}
	f.Add([]byte("name = \"x\"\n[constraint]\nkind = \"rules\"\nlimits = [{items = [0, 1], max = 1}]\n"))
	f.Add([]byte("name = \"x\"\npolicy = 3\n[contexts]\nkind = []\n"))
	f.Add([]byte("contexts = [1]\n[[policy]]\nutility = 3\n[policy.utility.deep]\nx = {a = {b = 1}}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<12 {
			return
		}
		if _, err := config.Load("fuzz.toml", text); err != nil && !strings.HasPrefix(err.Error(), "fuzz.toml") {
			t.Errorf("error %q does not begin with the file's name", err)
		}
	})
}

func TestDriftIsChecked(t *testing.T) {
	const world = "name = \"x\"\nfeatures = %d\ncontexts.kind = \"gaussian\"\ntruth.kind = " +
		"\"radial\"\n[drift]\n%s\n[[policy]]\nname = \"uniform\"\n"
	for _, c := range []struct {
		features   int
		text, want string
	}{
		{3, `kind = "rotation"`, ""},
		{3, `kind = "turn"`, "x.toml:6: drift: kind = 'turn': unknown: must be one of rotation"},
		{3, "kind = \"rotation\"\nangle = 1e9", "x.toml:7: drift: angle = 1e+09: must be from -1000000 to 1000000"},
		{3, "kind = \"rotation\"\nangle = nan", "x.toml:7: drift: angle = NaN: must be from -1000000 to 1000000"},
		{1, `kind = "rotation"`, "x.toml:6: drift: kind = 'rotation': needs features = 2 or more, and the file has 1"},
	} {
		_, err := config.Load("x.toml", fmt.Appendf(nil, world, c.features, c.text))
		if got := fmt.Sprint(err); got != c.want && (c.want != "" || err != nil) {
			t.Errorf("%s:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"features = 2\ncontexts.kind = \"gaussian\"\ntruth.kind = \"product\"\n": "x.toml:4: truth: kind = " +
			"'product': needs features = 3 or more, and the file has 2",
		"contexts.kind = \"gaussian\"\ntruth.kind = \"ideals\"\n": "x.toml:3: truth: kind = 'ideals': needs [contexts] " +
			"of kind = 'priced'",
		"contexts.kind = \"priced\"\ntruth.kind = \"ideals\"\ndrift.kind = \"rotation\"\n": "x.toml:4: drift: kind = " +
			"'rotation': the truth 'ideals' reads a price and a category",
	} {
		expect.Prefix(config.Load("x.toml", []byte("name = \"x\"\n"+text)))(t, want, text)
	}
}

// Shifting contexts begin as Gaussian ones and are validated like a drift.
func TestShiftsAreChecked(t *testing.T) {
	const world = "name = \"x\"\nrounds = 10\n[contexts]\nkind = \"shifts\"\n%s\n[truth]\nkind = " +
		"\"radial\"\n[[policy]]\nname = \"uniform\"\n"
	for text, want := range map[string]string{
		"rounds = [2, 9]\nmean = [1.0, -1]\ndeviation = [1, 2.5]": "",
		"rounds = [2, 9]\nmean = [1.0, -1]": "x.toml:5: contexts: rounds = [2 9]: mean and " +
			"deviation have 2 and 1 numbers: must have as many",
		"rounds = [9, 2]\nmean = [1.0, -1]\ndeviation = [1, 2.5]": "x.toml:5: contexts: rounds = [9 2]: must increase",
		"rounds = [1]":                    "x.toml:5: contexts: rounds = [1]: must be at least 2",
		"rounds = [11]":                   "x.toml:5: contexts: rounds = [11]: the last is beyond the horizon, rounds = 10",
		"rounds = [2]\nmean = [nan]":      "x.toml:6: contexts: mean = [NaN]: must be from -1000 to 1000",
		"rounds = [2]\ndeviation = [0.0]": "x.toml:6: contexts: deviation = [0]: must be from 1e-09 to 1000",
	} {
		_, err := config.Load("x.toml", fmt.Appendf(nil, world, text))
		if got := fmt.Sprint(err); got != want && (want != "" || err != nil) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

// A world with drift begins with the same truth as without.
func TestDriftBeginsWithTheSameTruth(t *testing.T) {
	world := "name = \"x\"\nrounds = 10\nitems = 20\ncontexts.kind = \"gaussian\"\ntruth.kind = \"mlp\"\n"
	utilities := func(drift string, round int) []float64 {
		f := fatal.Or(config.Load("x.toml", []byte(world+drift+"[[policy]]\nname = \"uniform\"\n")))(t)
		e := fatal.Or(f.Experiment(config.Selection{}, ""))(t)
		w := e.World(stream.New(1, 0, stream.World))
		if round > 0 {
			w = env.At(w, round)
		}
		u := make([]float64, 20)
		w.Utilities(u, w.Context(stream.New(1, 1, stream.Contexts)))
		return u
	}
	still := utilities("", 1)
	for _, c := range []struct {
		drift string
		round int
		same  bool
	}{
		{"drift.kind = \"rotation\"\n", 0, true},
		{"drift.kind = \"rotation\"\n", 1, false},
	} {
		expect.Equal(t, cmp.Equal(still, utilities(c.drift, c.round)), c.same, c.drift, "round", c.round,
			"the truth is the first")
	}
}

func TestExperts(t *testing.T) {
	const linear = "[[policy.experts]]\nkind = \"linear\"\n"
	f := fatal.Or(config.Load("x.toml", []byte("name = \"x\"\n"+plainWorld+"[[policy]]\nname = \"bma-mnl\"\n"+linear+
		linear+"memory_rounds = 50.0\nintercept = true\n[[policy.experts]]\nkind = \"wide\"\nunits = 2\n")))(t)
	e := fatal.Or(f.Experiment(config.Selection{}, ""))(t)
	want := []any{"linear", "linear with intercept of memory 50", "wide 3-2"}
	expect.Equal[any](t, e.Policies[0].Settings.(map[string]any)["experts"], want, "experts")
	for text, want := range map[string]string{
		linear + "[[policy.experts]]\nkind = \"cubic\"\n":                `x.toml:11: policy "bma-mnl": experts[1]: kind = 'cubic': unknown`,
		linear + "[[policy.experts]]\nmemory_rounds = 3\n":               `x.toml:10: policy "bma-mnl": experts[1]: kind is missing`,
		linear + "memory_rounds = \"long\"\n":                            `x.toml:10: policy "bma-mnl": experts[0]: memory_rounds = 'long': wrong type: want a number`,
		linear + "memory_rounds = 0.5\n":                                 `x.toml:6: policy "bma-mnl": expert 1, linear of memory 0.5: memory_rounds = 0.5: must be finite and at least 1`,
		linear + "units = 3\n":                                           `x.toml:10: policy "bma-mnl": experts[0]: unknown key "units"`,
		linear + linear:                                                  `x.toml:6: policy "bma-mnl": experts 1 and 2 are both linear: an expert counts once`,
		"[[policy.experts]]\nkind = \"wide\"\nunits = 0\n":               `x.toml:10: policy "bma-mnl": experts[0]: units = 0: must be from 1 to 10000`,
		"[[policy.experts]]\nkind = \"quadratic\"\n[policy.experts.x]\n": `x.toml:8: policy "bma-mnl": experts[0]: unknown key "x"`,
		"experts = 3\n":                                                  `x.toml:8: policy "bma-mnl": experts: must be an array of tables, [[experts]]`,
		"width = -1.0\n":                                                 `x.toml:8: policy "bma-mnl": width = -1: must be finite and at least 0`,
		"growth = 1.0\n":                                                 `x.toml:8: policy "bma-mnl": growth = 1: must be finite and above 1`,
		"utility = \"a\"":                                                `x.toml:8: policy "bma-mnl": unknown key "utility"`,
	} {
		text = "name = \"x\"\n" + plainWorld + "[[policy]]\nname = \"bma-mnl\"\n" + text
		expect.Prefix(config.Load("x.toml", []byte(text)))(t, want, text)
	}
}
