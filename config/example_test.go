package config_test

import (
	"context"
	"fmt"
	"os"

	"vitrine/config"
	"vitrine/experiment"
)

// Two policies in a small world.
func Example() {
	file, err := config.Load("small.toml", []byte(`
name = "small"
rounds = 100
items = 10
size = 3
features = 2
seeds = 4
[contexts]
kind = "gaussian"
[truth]
kind = "cosine"
[revenue]
kind = "one"
[[policy]]
name = "ucb-mnl"
[[policy]]
name = "oracle"
`))
	if err != nil {
		panic(err)
	}
	played, err := file.Experiment(config.Selection{}, "my program")
	if err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	summaries, err := experiment.Run(context.Background(), played, experiment.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	for _, s := range summaries {
		fmt.Printf("%s: regret above 0: %t\n", s.Policy, s.FinalMean > 0)
	}
	// Output:
	// ucb-mnl: regret above 0: true
	// oracle: regret above 0: false
}
