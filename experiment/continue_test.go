package experiment_test

import (
	"bytes"
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"vitrine"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// counting returns a policy that counts its learners.
func counting(label string, played *atomic.Int64, l rule) experiment.Policy {
	return experiment.Policy{Label: label, Settings: label,
		New: func(env.Environment, *rand.Rand) (vitrine.Learner, error) {
			played.Add(1)
			return &l, nil
		}}
}

func TestFinishedUnitsAreNotPlayedAgain(t *testing.T) {
	dir := t.TempDir()
	var played atomic.Int64
	few := small(counting("random", &played, random()))
	few.Seeds = few.Seeds[:2]
	var rounds, reused atomic.Int64
	options := experiment.Options{Dir: dir, Progress: func(n int) { rounds.Add(int64(n)) },
		Reused: func(n int) { reused.Add(int64(n)) }}
	run(t, few, options)
	run(t, small(counting("random", &played, random())), options)
	expect.Equal(t, played.Load(), 4, "units were played for 4 seeds")
	if rounds.Load() != 4*120 || reused.Load() != 2*120 {
		t.Errorf("progress of %d and %d rounds, want %d and %d", rounds.Load(), reused.Load(), 4*120, 2*120)
	}
	fresh := t.TempDir()
	run(t, small(policy("random", random())), experiment.Options{Dir: fresh})
	if !bytes.Equal(read(t, dir, "small", "regret.csv"), read(t, fresh, "small", "regret.csv")) {
		t.Error("regret.csv of a continued experiment differs")
	}
	// Other settings, rounds, programs and policies mean other units.
	for what, change := range map[string]func(e *experiment.Experiment){
		"settings": func(e *experiment.Experiment) { e.Settings = "other" },
		"rounds":   func(e *experiment.Experiment) { e.Rounds = 60 },
		"version":  func(e *experiment.Experiment) { e.Version = "1.2.4" },
		"policy":   func(e *experiment.Experiment) { e.Policies[0].Settings = "other" },
	} {
		played.Store(0)
		other := small(counting("random", &played, random()))
		change(other)
		run(t, other, options)
		expect.Equal(t, played.Load(), 4, "units of another", what, "were taken for finished")
	}
}

// A run reports the units that it finds, and the files that it replaces. Without a version, the program's ID is
// the version.
func TestRunsSayWhatTheyTakeOver(t *testing.T) {
	dir := t.TempDir()
	var notes []string
	options := experiment.Options{Dir: dir, Note: func(what string) { notes = append(notes, what) }}
	replaced := "the results and figures in " + filepath.Join(dir, "small") + " are replaced, because these changed: "
	e := small(policy("random", random()))
	e.Version = ""
	for _, c := range []struct {
		change func()
		want   []string
	}{
		{func() {}, nil},
		{func() {}, []string{"small: 4 of 4 runs were there already"}},
		{func() { e.Seeds = append(e.Seeds, 77) },
			[]string{"small: 4 of 5 runs were there already", replaced + "the seeds"}},
		{func() { e.Settings = "other" }, []string{replaced + "the settings"}},
		{func() { e.Version, e.Policies[0].Settings = "2", "new" }, []string{replaced + "the policies, the program"}},
	} {
		notes = nil
		c.change()
		run(t, e, options)
		expect.List(t, notes, c.want, "notes")
		if e.Version == "" && !bytes.Contains(read(t, dir, "small", "run.json"), []byte(`"version": "program `)) {
			t.Error("run.json does not name the program")
		}
	}
}

func TestInterruptedExperimentContinues(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	l, rounds := random(), 0
	l.seen = func(vitrine.Round) error {
		if rounds++; rounds == 2*120+60 { // in the middle of the third unit
			stop()
		}
		return nil
	}
	_, err := experiment.Run(ctx, small(policy("random", l)), experiment.Options{Dir: dir, Workers: 1})
	expect.Error(t, err, experiment.ErrInterrupted)
	expect.Fails(os.Stat(filepath.Join(dir, "small", "regret.csv")))(t, fs.ErrNotExist,
		"an interrupted experiment left a regret.csv")
	expect.Equal(fatal.T(t), bytes.Count(read(t, dir, "small", "runs.jsonl"), []byte("\n")), 2,
		"finished units are kept")
	run(t, small(policy("random", random())), experiment.Options{Dir: dir})
	fresh := t.TempDir()
	run(t, small(policy("random", random())), experiment.Options{Dir: fresh})
	if !bytes.Equal(read(t, dir, "small", "regret.csv"), read(t, fresh, "small", "regret.csv")) {
		t.Error("regret.csv after an interruption differs")
	}
}

// While a run plays, another run and a merge are refused.
func TestOneCommandInADirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no locks here")
	}
	dir := t.TempDir()
	want := "another command is playing in " + filepath.Join(dir, "small") + ": wait for it, or choose another directory"
	shard := t.TempDir()
	fatal.If(t, experiment.RunShard(t.Context(), small(policy("random", random())), experiment.Shard{Index: 1, Of: 1},
		experiment.Options{Dir: shard}))
	l, rounds := random(), 0
	l.seen = func(vitrine.Round) error {
		if rounds++; rounds == 200 { // in the middle of the second unit
			o := experiment.Options{Dir: dir}
			expect.Message(experiment.Run(t.Context(), small(policy("random", random())), o))(t, want)
			expect.Message(experiment.Merge("small", []string{shard}, o))(t, want)
		}
		return nil
	}
	run(t, small(policy("random", l)), experiment.Options{Dir: dir, Workers: 1})
	run(t, small(policy("random", random())), experiment.Options{Dir: dir})
}

func TestDamagedJournalIsRepaired(t *testing.T) {
	for name, damage := range map[string]func(data []byte) []byte{
		"torn at the end": func(data []byte) []byte { return data[:len(data)-100] },
		"wrong checksum": func(data []byte) []byte {
			at := bytes.Index(data, []byte(`"regret":[`)) + 12
			data[at] ^= 1
			return data
		},
		"too short": func(data []byte) []byte { return append([]byte("{}\n"), data...) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run(t, small(policy("random", random())), experiment.Options{Dir: dir})
			want := read(t, dir, "small", "regret.csv")
			path := filepath.Join(dir, "small", "runs.jsonl")
			fatal.If(t, os.WriteFile(path, damage(read(t, path)), 0o644))
			var warnings []string
			o := experiment.Options{Dir: dir, Warn: func(m string) { warnings = append(warnings, m) }}
			run(t, small(policy("random", random())), o)
			if !bytes.Equal(read(t, dir, "small", "regret.csv"), want) {
				t.Error("regret.csv differs after the repair")
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0], "runs.jsonl, line") ||
				!strings.Contains(warnings[0], name) {
				t.Errorf("warnings %q, want one that names the line and says %q", warnings, name)
			}
		})
	}
}
