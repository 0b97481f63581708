package config_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vitrine/config"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/paper/experiments"
)

// realData returns the path of a directory with real data, or skips the test.
func realData(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("VITRINE_DATA")
	if root == "" {
		root = "../../shared/data"
	}
	path := filepath.Join(root, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no data at %s: see docs/data.md, or set VITRINE_DATA", path)
	}
	return path
}

// The public tables become worlds, and their fits reach the published log-likelihoods. With the panels' outside option,
// between a fifth and a third of the customers leave without any alternative from mlogit's tables.
func TestPublicTablesAreWorlds(t *testing.T) {
	for name, note := range map[string]string{
		"camera":     "5312 choices, 426 distinct items of 10 features; log-likelihood -6503.746518",
		"modecanada": "2779 choices, 4178 distinct items of 13 features; log-likelihood -1874.342743",
		"heating":    "900 choices, 4500 distinct items of 6 features; log-likelihood -1008.228722",
		"fishing":    "1182 choices, 3016 distinct items of 8 features; log-likelihood -1215.137604",
	} {
		t.Run(name, func(t *testing.T) {
			path := realData(t, name)
			var notes []string
			p := fatal.Or(config.LoadPool(context.Background(), name, path, config.Loading{
				Progress: func(string, int, int) {}, Note: func(text string) { notes = append(notes, text) },
			}))(t)
			expect.Equal(t, strings.Join(notes, "\n"), note, "note")
			text := fatal.Or(experiments.Read(name))(t)
			f := fatal.Or(config.Load(name+".toml", text))(t)
			fatal.If(t, f.UsePool(p))
			e := fatal.Or(f.Experiment(config.Selection{}, ""))(t)
			world := e.World(stream.New(1, 0, stream.World))
			const rounds = 2000
			away := 0.0
			for round := range rounds {
				x := world.Context(stream.New(1, round, stream.Contexts))
				u := make([]float64, x.NumItems())
				world.Utilities(u, x)
				sum := 1.0
				for _, v := range u {
					sum += math.Exp(v)
				}
				away += 1 / sum / rounds
			}
			if (away < 0.2 || away > 1./3) && name != "camera" { // among 100 cameras nearly everyone likes one
				t.Errorf("%.3f of the customers walk away", away)
			}
		})
	}
}
