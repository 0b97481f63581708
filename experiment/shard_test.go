package experiment_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vitrine/experiment"
)

// The runs, policy by policy and seed by seed, are dealt out in turn: shard 1 has the first of them.
func TestShardsAreDealtInTurn(t *testing.T) {
	e := small(policy("a", random()), policy("b", first()))
	e.Rounds, e.Seeds = 5, []uint64{7, 8, 9}
	dir := t.TempDir()
	for index, want := range [][]string{{"a 7", "b 8"}, {"a 8", "b 9"}, {"a 9"}, {"b 7"}} {
		s := experiment.Shard{Index: index + 1, Of: 4}
		out := filepath.Join(dir, fmt.Sprint(s.Index))
		if err := experiment.RunShard(t.Context(), e, s, experiment.Options{Dir: out, Workers: 1}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, run := range regexp.MustCompile(`"policy":"(.)","seed":(\d)`).FindAllStringSubmatch(string(read(t, out, "small", "runs.jsonl")), -1) {
			got = append(got, run[1]+" "+run[2])
		}
		if !slices.Equal(got, want) || s.Units(e) != len(want) {
			t.Errorf("shard %v has the runs %v, %d in all, want %v", s, got, s.Units(e), want)
		}
	}
}

// An error about shards that do not fit together says what differs.
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
			if err := experiment.RunShard(t.Context(), e, experiment.Shard{Index: index, Of: 2}, experiment.Options{Dir: dirs[index-1]}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := experiment.Merge("small", dirs, experiment.Options{Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
