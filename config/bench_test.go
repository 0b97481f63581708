package config_test

import (
	"os"
	"testing"

	"vitrine/config"
	"vitrine/experiment"
)

// BenchmarkRun is a run of bench/race.toml on one core: worlds, customers,
// learning and all.
//
//	go test -run xxx -bench Run -cpuprofile run.prof ./config
func BenchmarkRun(b *testing.B) {
	const name = "../bench/race.toml"
	text, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	f, err := config.Load(name, text)
	if err != nil {
		b.Fatal(err)
	}
	for _, policy := range []string{"onl-mnl-printed", "onl-mnl-fast"} {
		b.Run(policy, func(b *testing.B) {
			e, err := f.Experiment(config.Selection{Seeds: 10, Policies: []string{policy}}, "")
			if err != nil {
				b.Fatal(err)
			}
			seconds := 0.0
			for b.Loop() {
				summaries, err := experiment.Run(b.Context(), e, experiment.Options{Dir: b.TempDir(), Workers: 1})
				if err != nil {
					b.Fatal(err)
				}
				seconds += summaries[0].SecondsPerRun
			}
			b.ReportMetric(1e3*seconds/float64(b.N), "ms/run")
		})
	}
}
