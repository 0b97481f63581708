package config_test

import (
	"os"
	"testing"

	"vitrine/config"
	"vitrine/experiment"
	"vitrine/internal/fatal"
	"vitrine/paper/experiments"
)

// BenchmarkRun is a complete run of ONL-MNL on one core, with worlds, customers and learning: as printed and fast in a
// realizable panel (d_w = 16), and as printed in a misspecified one (d_w = 76). docs/performance.md shows its profile.
//
//	go test -run xxx -bench Run/d_w=16/printed -cpuprofile run.prof ./config
func BenchmarkRun(b *testing.B) {
	race, err := os.ReadFile("../bench/race.toml")
	fatal.If(b, err)
	misspecified, err := experiments.Read("main-gaussian-misspecified")
	fatal.If(b, err)
	for _, run := range []struct {
		name   string
		text   []byte
		policy string
	}{
		{"d_w=16/printed", race, "onl-mnl-printed"},
		{"d_w=16/fast", race, "onl-mnl-fast"},
		{"d_w=76/printed", misspecified, "onl-mnl"},
	} {
		b.Run(run.name, func(b *testing.B) {
			f, err := config.Load(run.name, run.text)
			fatal.If(b, err)
			e, err := f.Experiment(config.Selection{Seeds: 10, Policies: []string{run.policy}}, "")
			fatal.If(b, err)
			seconds := 0.0
			for b.Loop() {
				summaries, err := experiment.Run(b.Context(), e, experiment.Options{Dir: b.TempDir(), Workers: 1})
				fatal.If(b, err)
				seconds += summaries[0].SecondsPerRun
			}
			b.ReportMetric(1e3*seconds/float64(b.N), "ms/run")
		})
	}
}
