package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"vitrine/experiment"
	"vitrine/paper/experiments"
)

// shard returns the shard to play, nil for all runs.
func (c playFlags) shard() (*experiment.Shard, error) {
	if c.Shard == "" {
		return nil, nil
	}
	s, err := experiment.ParseShard(c.Shard)
	if err != nil {
		return nil, usagef("--shard: %w", err)
	}
	return &s, nil
}

// shardDir returns the directory of a shard's results: its own, because shards may be played at the same time
// on one file system.
func (c playFlags) shardDir(s experiment.Shard) string {
	return filepath.Join(c.Out, fmt.Sprintf("shard-%d-of-%d", s.Index, s.Of))
}

func (c playFlags) playShard(ctx context.Context, t terminal, e *experiment.Experiment, s experiment.Shard) error {
	units := s.Units(e)
	if units == 0 {
		t.warn(fmt.Sprintf("shard %v of %s is empty: it has only %d runs", s, e.Name, len(e.Policies)*len(e.Seeds)))
	}
	bar := newProgress(t.err, e.Name, runs(units), units*e.Rounds)
	err := experiment.RunShard(ctx, e, s, bar.options(t, c.shardDir(s), c.Workers))
	bar.close()
	return err
}

// leaveOut returns the names that can be split into shards, and warns about the others.
func (c reproduceCmd) leaveOut(t terminal, names []string) (kept []string, err error) {
	for _, n := range names {
		study, named := slices.Contains(experiments.WithoutFile(), n), slices.Contains(c.Names, n)
		switch {
		case study && len(names) == 1 && len(c.Policies) > 0:
			return nil, usagef("--policies: %s has none to choose from: leave out --policies or %s", n, n)
		case !study || c.Shard == "":
			kept = append(kept, n)
		case named:
			return nil, usagef("--shard: %s cannot be split: leave out --shard or %s", n, n)
		default:
			t.warn(fmt.Sprintf("%s is left out: it cannot be split; vitrine reproduce %s makes it", n, n))
		}
	}
	return kept, nil
}

type mergeCmd struct {
	Dirs []string `arg:"" name:"dir" help:"The directories of the shards."`
	Out  string   `help:"Directory of the results (default: out): each experiment has its own in it." default:"out" placeholder:"DIR"`
}

func (mergeCmd) Help() string {
	return "The result is the same as that of one run: regret.csv and the figures have the same bytes. Seconds " +
		"are those measured in the shards. Shards must have the same configuration and the same build of vitrine, " +
		"and no run may be missing.\n\n" + examples(
		"vitrine run mine.toml --shard 1/2        on one machine",
		"vitrine run mine.toml --shard 2/2        on another",
		"vitrine merge out/shard-*-of-2",
	)
}

func (c mergeCmd) Run(t terminal) error {
	names, err := experiment.Sharded(c.Dirs)
	if err != nil {
		return err
	}
	for i, name := range names {
		summaries, err := experiment.Merge(name, c.Dirs, experiment.Options{Dir: c.Out, Warn: t.warn})
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(t.out)
		}
		experiment.PrintSummary(t.out, summaries)
		if err := (drawing{}).draw(t, []drawable{regretOf(filepath.Join(c.Out, name))}); err != nil {
			return err
		}
	}
	for _, f := range experiments.Figures(names) {
		if err := (drawing{}).draw(t, []drawable{figureIn(c.Out, f)}); err != nil {
			return err
		}
	}
	fmt.Fprintf(t.err, "vitrine: merged %s: the results are in %s\n", strings.Join(names, ", "), c.Out)
	return nil
}
