package experiment_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"vitrine"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// Runs are dealt out in turn, policy by policy and seed by seed: shard 1 gets the first.
func TestShardsAreDealtInTurn(t *testing.T) {
	e := small(policy("a", random()), policy("b", first()))
	e.Rounds, e.Seeds = 5, []uint64{7, 8, 9}
	dir := t.TempDir()
	for index, want := range [][]string{{"a 7", "b 8"}, {"a 8", "b 9"}, {"a 9"}, {"b 7"}} {
		s := experiment.Shard{Index: index + 1, Of: 4}
		out := filepath.Join(dir, fmt.Sprint(s.Index))
		fatal.If(t, experiment.RunShard(t.Context(), e, s, experiment.Options{Dir: out, Workers: 1}))
		var got []string
		for _, run := range regexp.MustCompile(`"policy":"(.)","seed":(\d)`).FindAllStringSubmatch(string(read(t, out,
			"small", "runs.jsonl")), -1) {
			got = append(got, run[1]+" "+run[2])
		}
		if !slices.Equal(got, want) || s.Units(e) != len(want) {
			t.Errorf("shard %v has the runs %v, %d in all, want %v", s, got, s.Units(e), want)
		}
	}
}

// If shards do not fit together, the error names the difference.
func TestMergeNamesWhatDiffers(t *testing.T) {
	for want, change := range map[string]func(*experiment.Experiment){
		"with the rounds 5, and ":              func(e *experiment.Experiment) { e.Rounds = 6 },
		"with the seeds [0 1 2 3], and ":       func(e *experiment.Experiment) { e.Seeds = []uint64{0, 1} },
		"with the policies [a], and ":          func(e *experiment.Experiment) { e.Policies[0].Label = "b" },
		`with the world "small", and `:         func(e *experiment.Experiment) { e.Settings = "large" },
		`has the settings "a", and in `:        func(e *experiment.Experiment) { e.Policies[0].Settings = "b" },
		"was played by the program 1.2.3, and": func(e *experiment.Experiment) { e.Version = "1.2.4" },
	} {
		var dirs []string
		for index := 1; index <= 2; index++ {
			e := small(policy("a", random()))
			e.Rounds = 5
			if index == 2 {
				change(e)
			}
			dirs = append(dirs, t.TempDir())
			fatal.If(t, experiment.RunShard(t.Context(), e, experiment.Shard{Index: index, Of: 2},
				experiment.Options{Dir: dirs[index-1]}))
		}
		expect.Part(experiment.Merge("small", dirs, experiment.Options{Dir: t.TempDir()}))(t, want)
	}
}

// told is a rule with diagnostics.
type told struct {
	*rule
	is map[string]float64
}

func (l told) Diagnostics() map[string]float64 { return l.is }

// Merged shards give the same diagnostics as one run. Shards that contain the same run with different diagnostics do
// not belong together.
func TestMergedDiagnostics(t *testing.T) {
	play := func(s experiment.Shard, shift float64) string {
		l := first()
		e := small(experiment.Policy{Label: "a", Settings: "a",
			New: func(_ env.Environment, rng *rand.Rand) (vitrine.Learner, error) {
				return told{&l, map[string]float64{"kappa": shift + rng.Float64(), "rank": 3}}, nil
			}})
		e.Rounds = 5
		dir := t.TempDir()
		fatal.If(t, experiment.RunShard(t.Context(), e, s, experiment.Options{Dir: dir}))
		return dir
	}
	merge := func(warn func(string), dirs ...string) (diagnostics []string, err error) {
		out := t.TempDir()
		if _, err := experiment.Merge("small", dirs, experiment.Options{Dir: out, Warn: warn}); err != nil {
			return nil, err
		}
		var record struct {
			Policies []struct {
				Runs []struct{ Diagnostics map[string]float64 }
			}
		}
		fatal.If(t, json.Unmarshal(read(t, out, "small", "run.json"), &record))
		for _, p := range record.Policies {
			for _, r := range p.Runs {
				diagnostics = append(diagnostics, fmt.Sprint(r.Diagnostics))
			}
		}
		return diagnostics, nil
	}
	whole := play(experiment.Shard{Index: 1, Of: 1}, 0)
	want, err := merge(nil, whole)
	if err != nil || len(want) != 4 || len(slices.Compact(slices.Sorted(slices.Values(want)))) != 4 {
		t.Fatalf("one run has the diagnostics %v: %v", want, err)
	}
	half := experiment.Shard{Index: 2, Of: 2}
	if got, err := merge(nil, play(half, 0), play(experiment.Shard{Index: 1, Of: 2}, 0)); err != nil ||
		!slices.Equal(got, want) {
		t.Errorf("merged: %v, %v, want %v", got, err, want)
	}
	warnings := 0
	if got, err := merge(func(string) { warnings++ }, whole, play(half, 0)); err != nil || !slices.Equal(got, want) ||
		warnings != 1 {
		t.Errorf("with a repeated shard: %v, %v, %d warnings, want %v", got, err, warnings, want)
	}
	expect.Part(merge(nil, whole, play(half, 1)))(t,
		"both have policy a on seed 1, with different results", "a shard of other diagnostics")
}
