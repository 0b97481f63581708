//go:build slow

package config_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/config"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/internal/fatal"
	"vitrine/paper/experiments"
)

const network = "utility = { kind = \"mlp\", hidden = [3] }\n"

// variants are settings outside the panels with regrets quoted in the documentation, in the realizable panels, each
// with the panel's policy to compare to.
var variants = []struct {
	label, to string
	table     string
}{
	{"online", "onl-mnl", "name = \"onl-mnl\"\nupdate = \"online\"\n" + network},
	{"online-2.9", "onl-mnl", "name = \"onl-mnl\"\nupdate = \"online\"\nstep = 2.9\n" + network},
	{"pilot-rate-1e-2", "onl-mnl", "name = \"onl-mnl\"\npilot_rate = 1e-2\n" + network},
	{"pilot-exact", "onl-mnl", "name = \"onl-mnl\"\npilot = \"map\"\npilot_ridge = 1e-6\n" + network},
	{"pilot-map-1", "onl-mnl", "name = \"onl-mnl\"\npilot = \"map\"\npilot_ridge = 1.0\n" + network},
	{"pilot-map-3", "onl-mnl", "name = \"onl-mnl\"\npilot = \"map\"\npilot_ridge = 3.0\n" + network},
	{"lambda-3-beta-1", "onl-mnl", "name = \"onl-mnl\"\nlambda = 3.0\nbeta = 1.0\n" + network},
	{"ucb-0.3", "ucb-mnl", "name = \"ucb-mnl\"\nconstants = \"tuned\"\nradius = 0.3\n"},
	{"ucb-intercept", "ucb-mnl", "name = \"ucb-mnl\"\nconstants = \"tuned\"\nradius = 0\nintercept = true\n"},
	{"ts-0.3", "ts-mnl", "name = \"ts-mnl\"\nconstants = \"tuned\"\nradius = 0.3\n"},
	{"eps-restart", "eps-greedy-sets", "name = \"eps-greedy-mnl\"\nexplore = \"set\"\nrestart = true\n" + network},
	{"eps-rate-1e-3", "eps-greedy-sets", "name = \"eps-greedy-mnl\"\nexplore = \"set\"\nrate = 1e-3\n" + network},
}

// bySize is an AtMost family with sample sizes drawn uniformly, so that small sets come as often as large ones.
type bySize struct{ assortment.AtMost }

func (c bySize) Sample(dst vitrine.Assortment, n int, rng *rand.Rand) vitrine.Assortment {
	size := 1 + rng.IntN(int(c.AtMost))
	for {
		if dst = c.AtMost.Sample(dst, n, rng); len(dst) >= size {
			for len(dst) > size {
				k := rng.IntN(len(dst))
				dst = append(dst[:k], dst[k+1:]...)
			}
			return dst
		}
	}
}

// TestVariants prints the regrets quoted in docs/algorithms for settings outside the panels: mean ± standard deviation,
// and the paired difference to the panel's policy ± its standard error, on seeds 0 to 29.
//
//	go test -tags slow -run Variants -v -timeout 60m ./config
func TestVariants(t *testing.T) {
	for _, name := range []string{"main-gaussian-realizable", "main-uniform-realizable"} {
		text, err := experiments.Read(name)
		fatal.If(t, err)
		play := []string{"onl-mnl", "eps-greedy-sets", "ucb-mnl", "ts-mnl", "uniform"}
		for _, v := range variants {
			text = fmt.Appendf(text, "[[policy]]\nlabel = %q\n%s", v.label, v.table)
			play = append(play, v.label)
		}
		f, err := config.Load(name+".toml", text)
		fatal.If(t, err)
		e, err := f.Experiment(config.Selection{Policies: play, Baselines: "theory"}, "")
		fatal.If(t, err)
		p := bandit.Problem{NumFeatures: 3, Items: 100, MaxShown: 5, Rounds: e.Rounds, Constraint: bySize{5}}
		e.Policies = append(e.Policies, experiment.Policy{Label: "uniform-sizes", Settings: "uniform-sizes",
			New: func(_ env.Environment, rng *rand.Rand) (vitrine.Learner, error) {
				return bandit.NewUniform(p)
			}}, experiment.Policy{Label: "onl-sizes", Settings: "onl-sizes",
			New: func(_ env.Environment, rng *rand.Rand) (vitrine.Learner, error) {
				return bandit.NewONL(p, config.Model(t, "mlp", 3), bandit.DefaultONLOptions(), rng)
			}})
		results, err := experiment.Results(t.Context(), e, experiment.Options{Dir: t.TempDir()})
		fatal.If(t, err)
		finals := map[string][]float64{}
		for _, r := range results {
			finals[r.Policy] = append(finals[r.Policy], r.Regret[len(r.Regret)-1])
		}
		t.Logf("%s, %d seeds", name, len(e.Seeds))
		for _, policy := range e.Policies {
			mean, sd := stat.MeanStdDev(finals[policy.Label], nil)
			line := fmt.Sprintf("%-16s %6.1f ± %4.1f", policy.Label, mean, sd)
			if to := comparedTo(policy.Label); to != "" {
				difference := make([]float64, len(e.Seeds))
				for i, v := range finals[policy.Label] {
					difference[i] = v - finals[to][i]
				}
				mean, sd := stat.MeanStdDev(difference, nil)
				line += fmt.Sprintf("   to %s %+.1f ± %.1f", to, mean, sd/math.Sqrt(float64(len(difference))))
			}
			t.Log(strings.TrimSpace(line))
		}
	}
}

// comparedTo returns the policy to compare a variant to, or "" for the panel's.
func comparedTo(label string) string {
	switch label {
	case "uniform-sizes":
		return "uniform"
	case "onl-sizes":
		return "onl-mnl"
	}
	for _, v := range variants {
		if v.label == label {
			return v.to
		}
	}
	return ""
}
