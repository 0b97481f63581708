package setup_test

import (
	"encoding"
	"strings"
	"testing"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/bandit/policy"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/setup"
	"vitrine/utility"
)

const specFeatures, specSize = 3, 3

func specOf(policy string) setup.Spec {
	return setup.Spec{Policy: []byte(policy), Features: specFeatures, Items: 12, All: true, Size: specSize, Rounds: 100,
		Seed: 4}
}

// A placement's learner equals the library's with the same options.
func TestNewLearner(t *testing.T) {
	have := fatal.Or(setup.NewLearner(specOf(
		`{"name":"onl-mnl","lambda":3,"beta":1.5,"warmup":20,"utility":{"kind":"mlp","hidden":[4,2],"activation":"tanh"}}`)))(t)
	o := bandit.DefaultONLOptions()
	o.Lambda, o.Beta, o.Warmup, o.Update = 3, 1.5, 20, "online"
	want := fatal.Or(bandit.NewONL(bandit.Problem{NumFeatures: specFeatures, MaxShown: specSize, Rounds: 100,
		Constraint: assortment.AtMost(specSize)},
		utility.NewMLP(specFeatures, []int{4, 2}, utility.Tanh), o, stream.New(4, 0, stream.Learner)))(t)
	expect.Equal(t, saved(t, have), saved(t, want), "the learner")
}

func saved(t *testing.T, l vitrine.Learner) []byte {
	t.Helper()
	data := fatal.Or(l.(encoding.BinaryMarshaler).MarshalBinary())(t)
	return data
}

// Every policy serves by its name if all rows are recorded, but for those that say why not.
func TestPoliciesServe(t *testing.T) {
	unfit := map[string]string{}
	for _, d := range policy.All {
		l, err := setup.NewLearner(specOf(`{"name":"` + d.Name + `"}`))
		if d.Learner.Unfit != "" {
			unfit[d.Name] = d.Learner.Unfit
			expect.Message(err)(t, d.Name+": "+d.Learner.Unfit)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", d.Name, err)
			continue
		}
		if _, ok := l.(encoding.BinaryUnmarshaler); !ok {
			t.Errorf("%s cannot be restored", d.Name)
		}
	}
	for _, name := range []string{"onl-mnl", "greedy", "ucb-mnl", "ts-mnl", "ofu-mnl-plus", "eps-greedy-mnl",
		"log-barrier-mnl", "feel-good-ts", "bma-mnl", "auto", "uniform"} {
		expect.Equal(t, unfit[name], "", name, "does not serve")
	}
}

// Learners of linear utilities take a basis, which brings its own constant term.
func TestNewLearnerOnABasis(t *testing.T) {
	p := bandit.Problem{NumFeatures: specFeatures, MaxShown: specSize, Rounds: 100,
		Constraint: assortment.AtMost(specSize)}
	have := fatal.Or(setup.NewLearner(specOf(
		`{"name":"ucb-mnl","constants":"theory","radius":0,"lambda":3,"utility":{"kind":"quadratic"}}`)))(t)
	o := bandit.DefaultUCBOptions()
	o.Lambda, o.Update = 3, "online"
	want := fatal.Or(bandit.NewUCBOn(p, utility.NewQuadratic(specFeatures), o))(t)
	expect.Equal(t, saved(t, have), saved(t, want), "the learner")
	for _, name := range []string{"ts-mnl", "ofu-mnl-plus"} {
		if _, err := setup.NewLearner(specOf(`{"name":"` + name +
			`","utility":{"kind":"linear","intercept":true}}`)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewLearnerRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                                  `jsontext: unexpected EOF`,
		`[]`:                                `must be an object`,
		`{} {}`:                             `jsontext: invalid character `,
		`{"name":"ucb-mnl"`:                 `jsontext: unexpected EOF`,
		`{}`:                                `name is missing: must be one of auto, onl-mnl, greedy, `,
		`{"name":3}`:                        `name is missing`,
		`{"name":"ucb-mln"}`:                `ucb-mln: name = "ucb-mln": unknown: did you mean "ucb-mnl"?`,
		`{"name":"oracle"}`:                 `oracle: knows the truth, which only simulated worlds have`,
		`{"name":"ucb-mnl","lamda":1}`:      `ucb-mnl: unknown key "lamda": did you mean "lambda"?`,
		`{"name":"ucb-mnl","lambda":-1}`:    `ucb-mnl: lambda = -1: must be finite and at least 1e-09`,
		`{"name":"ucb-mnl","lambda":"a"}`:   `ucb-mnl: lambda = 'a': wrong type: want a number`,
		`{"name":"ucb-mnl","lambda":null}`:  `/lambda: null is not a value: leave the key out`,
		`{"name":"ucb-mnl","lambda":1e999}`: `/lambda: the number 1e999 is out of range`,
		`{"name":"ucb-mnl","label":"x"}`:    `ucb-mnl: unknown key "label": it is for files of experiments`,
		`{"name":"onl-mnl","warmup":100}`:   `onl-mnl: warmup = 100: must be less than rounds = 100`,
		`{"name":"onl-mnl","warmup":1.5}`:   `onl-mnl: warmup = 1.5: wrong type: want an integer`,
		`{"name":"onl-mnl","utility":3}`:    `onl-mnl: utility = 3: must be a table`,
		`{"name":"onl-mnl","utility":{"kind":"mpl"}}`:                        `onl-mnl: utility: kind = 'mpl': unknown: did you mean "mlp"?`,
		`{"name":"onl-mnl","utility":{"kind":"mlp","hidden":[-1]}}`:          `onl-mnl: utility: hidden = [-1]: must be from 1 to 10000`,
		`{"name":"onl-mnl","utility":{"kind":"mlp","widths":[1]}}`:           `onl-mnl: utility: unknown key "widths"`,
		`{"name":"ucb-mnl","utility":{"kind":"mlp","hidden":[2]}}`:           `ucb-mnl: utility: kind = 'mlp': is not linear in its parameters, and this policy learns only such utilities: must be one of linear, quadratic`,
		`{"name":"ts-mnl","utility":{"kind":"radial"}}`:                      `ts-mnl: utility: kind = 'radial': is not linear in its parameters`,
		`{"name":"ofu-mnl-plus","utility":{"kind":"wide"}}`:                  `ofu-mnl-plus: utility: kind = 'wide': is not linear in its parameters`,
		`{"name":"ucb-mnl","utility":{"kind":"qadratic"}}`:                   `ucb-mnl: utility: kind = 'qadratic': unknown: did you mean "quadratic"?`,
		`{"name":"ucb-mnl","utility":{"kind":"quadratic"},"intercept":true}`: `ucb-mnl: intercept = true: the learner has a utility of its own, `,
		`{"name":"ucb-mnl","utility":"quadratic"}`:                           `ucb-mnl: utility = 'quadratic': must be a table`,
		`{"name":"ucb-mnl","name":"ucb-mnl"}`:                                `jsontext: duplicate object member name "name"`,
	} {
		expect.Prefix(setup.NewLearner(specOf(text)))(t, want, text)
	}
}

func FuzzNewLearner(f *testing.F) {
	f.Add([]byte(`{"name":"onl-mnl","lambda":3,"utility":{"kind":"mlp","hidden":[2]}}`))
	f.Add([]byte(`{"name":"ts-mnl","samples":[{"a":null}],"x":{"y":[1,2.5,"z",true]}}`))
	f.Fuzz(func(t *testing.T, policy []byte) {
		_, _ = setup.NewLearner(setup.Spec{Policy: policy, Features: 2, Size: 2, Rounds: 100})
	})
}

// Numbers of any scale are for policies that standardise features. A placement with another policy, also in an
// experiment, refuses them.
func TestLargeNumbers(t *testing.T) {
	for policy, refused := range map[string]bool{
		`"policy":{"name":"auto"}`: false, `"policy":{"name":"bma-mnl"}`: false, `"policy":{"name":"uniform"}`: false,
		`"policy":{"name":"ucb-mnl"}`: true,
		`"policy":{"name":"auto"},"mode":"experiment","experiment":{"name":"e","variants":[{"name":"a","show":"policy","share":0.5},{"name":"b","show":"policy","share":0.5,"policy":{"name":"ucb-mnl"}}]}`: true,
	} {
		c := fatal.Or(setup.Parse([]byte(`{"max_size":2,"features":[{"name":"yen","kind":"number"}],` + policy + `}`)))(
			t)
		row := make([]float64, 1)
		_, err := c.Schema().Split().Items(row, []api.Item{{Features: api.Values{api.Number("yen", 120_000)}}})
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "must be at most 10000 in "+
			"size: set center and scale") {
			t.Errorf("%s: error %v", policy, err)
		}
	}
}

// The learner knows the user's columns, unless the schema declares a cross.
func TestTheUsersColumns(t *testing.T) {
	features := `{"name":"price","kind":"number"},{"name":"age","kind":"number","from":"shopper"},{"name":"land","kind":"category","values":["a","b"],"from":"shopper"}`
	for text, want := range map[string][]int{features: {1, 2, 3}, features +
		`,{"name":"both","kind":"cross","of":["price","age"]}`: nil} {
		c := fatal.Or(setup.Parse([]byte(`{"max_size":2,"features":[` + text + `]}`)))(t)
		expect.List(t, c.Spec().Customer, want, "the user's columns are")
	}
}
