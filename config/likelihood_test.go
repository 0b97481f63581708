package config_test

import (
	"testing"

	"vitrine/config"
	"vitrine/experiment"
	"vitrine/internal/fatal"
)

// With linear utilities, the likelihood's proven radius earns nearly as much as a tuned one, and far more than the
// paper's.
func TestLikelihoodConstants(t *testing.T) {
	t.Parallel()
	f := fatal.Or(config.Load("x.toml", []byte(`name = "x"
[contexts]
kind = "gaussian"
[truth]
kind = "linear"
ball = 1.0
[[policy]]
name = "ucb-mnl"
constants = "likelihood"
[[policy]]
name = "ucb-mnl"
label = "frozen"
constants = "frozen"
[[policy]]
name = "ucb-mnl"
label = "tuned"
constants = "tuned"
radius = 0.3
`)))(t)
	e := fatal.Or(f.Experiment(config.Selection{Seeds: 5}, ""))(t)
	finals := fatal.Or(experiment.Finals(t.Context(), e, experiment.Options{Dir: t.TempDir()}))(t)
	for k, regret := range finals["ucb-mnl"] {
		if regret > finals["frozen"][k]/3 || regret > finals["tuned"][k]+5 {
			t.Errorf("seed %d: regret %v, frozen %v, tuned %v", k, regret, finals["frozen"][k], finals["tuned"][k])
		}
	}
}
