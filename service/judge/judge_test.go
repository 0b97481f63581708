package judge_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/offpolicy"
	"vitrine/service/inspect"
	"vitrine/service/judge"
	"vitrine/service/setup"
)

// A verdict says that the judged pages ignore requests' rules.
func TestVerdictNamesRules(t *testing.T) {
	c := fatal.Or(setup.Parse([]byte(`{"max_size":1,"features":[{"name":"x","kind":"number"}]}`)))(t)
	for _, ruled := range []bool{false, true} {
		r := &inspect.Rounds{Placement: "home", Config: c, Ruled: ruled}
		for k := range 20 {
			r.Rounds = append(r.Rounds, offpolicy.Round{Items: []string{"a", "b"}, Shown: vitrine.Assortment{k % 2},
				Choice:  vitrine.Choice(k / 2 % 2),
				Context: &vitrine.Context{Features: mat.NewDense(2, 1, []float64{1, float64(k)})}})
		}
		v := fatal.Or(judge.Run(t.Context(), r, nil,
			judge.Options{Utility: `{kind = "linear"}`, Level: 0.95, Folds: 2, Resamples: 1}))(t)
		text, data := string(v.Text("log")), string(fatal.Or(v.JSON())(t))
		const words = "The judged pages ignore the placement's and the requests' rules; with them, a policy may earn less."
		if strings.Contains(text, words+"\n") != ruled || strings.Contains(data, `"rules": "`+words+`"`) != ruled {
			t.Errorf("with rules %v: %s%s", ruled, text, data)
		}
	}
}

// A verdict by a law with a tiny probability is JSON, also if an interval has no end.
func TestVerdictOfTinyProbabilities(t *testing.T) {
	c := fatal.Or(setup.Parse([]byte(`{"max_size":1,"features":[{"name":"x","kind":"number"}]}`)))(t)
	path := filepath.Join(t.TempDir(), "b.toml")
	fatal.If(t, os.WriteFile(path, []byte("show = \"items\"\nitems = [\"b\"]"), 0o600))
	for _, tiny := range []float64{1e-150, 1e-300} {
		r := &inspect.Rounds{Placement: "home", Config: c}
		for k := range 100 {
			shown := 0
			if k == 50 {
				shown = 1
			}
			r.Rounds = append(r.Rounds, offpolicy.Round{Items: []string{"a", "b"}, Shown: vitrine.Assortment{shown},
				Choice:      vitrine.Choice(k / 2 % 2),
				Context:     &vitrine.Context{Features: mat.NewDense(2, 1, []float64{1, float64(k % 7)})},
				SamplingLaw: offpolicy.Independent([]int{0, 0}, []float64{1 - tiny, tiny})})
		}
		v := fatal.Or(judge.Run(t.Context(), r, []*judge.Policy{fatal.Or(judge.ReadPolicy(path))(t)},
			judge.Options{Utility: `{kind = "linear"}`, Level: 0.95, Folds: 2, Resamples: 5}))(t)
		data := string(fatal.Or(v.JSON())(t))
		if text := string(v.Text("log")); strings.Contains(text, "NaN") || !strings.Contains(data, `"snips"`) {
			t.Errorf("%v: %s%s", tiny, text, data)
		}
	}
}

// A verdict says by how many shoppers its standard errors are clustered.
func TestVerdictNamesShoppers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	c := fatal.Or(setup.Parse([]byte(`{"max_size":1,"features":[{"name":"x","kind":"number"}]}`)))(t)
	for shoppers, said := range map[int]bool{20: true, 100: false, 1: false, 0: false} {
		r := &inspect.Rounds{Placement: "home", Config: c}
		for k := range 100 {
			shopper := ""
			if shoppers > 0 {
				shopper = fmt.Sprint(k % shoppers)
			}
			r.Rounds = append(r.Rounds, offpolicy.Round{Shopper: shopper, Items: []string{"a", "b"},
				Context: &vitrine.Context{Features: mat.NewDense(2, 1, []float64{rng.NormFloat64(), rng.NormFloat64()})},
				Shown:   vitrine.Assortment{rng.IntN(2)}, Choice: vitrine.Choice(rng.IntN(2)),
				SamplingLaw: offpolicy.EpsilonPages(1, 2, 1, vitrine.Assortment{0})})
		}
		v := fatal.Or(judge.Run(t.Context(), r, nil, judge.Options{Utility: `{kind = "linear"}`, Level: 0.95, Folds: 5, Resamples: 50}))(t)
		text, data := string(v.Text("log")), string(fatal.Or(v.JSON())(t))
		const sentence = "Standard errors and the bootstrap treat all decisions of one shopper as one observation: 20 in all.\n"
		if strings.Contains(text, sentence) != said || strings.Contains(data, `"shoppers": 20`) != said {
			t.Errorf("%d shoppers: %s%s", shoppers, text, data)
		}
		if strings.Contains(text, "The log knows no shoppers: intervals assume independent decisions") != (shoppers == 0) {
			t.Errorf("%d shoppers: %s", shoppers, text)
		}
		if strings.Contains(text, " ± ") == (shoppers == 1) || strings.Contains(text+data, "NaN") {
			t.Errorf("%d shoppers: %s%s", shoppers, text, data)
		}
	}
}
