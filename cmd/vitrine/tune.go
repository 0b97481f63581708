package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vitrine/config"
	"vitrine/figure"
	"vitrine/internal/hint"
	"vitrine/paper/experiments"
)

type tuneCmd struct {
	Names []string `arg:"" optional:"" name:"name|config.toml" help:"Tunings (see vitrine list tunings), files that describe one tuning each, or all." complete:"tunings"`
	Out   string   `help:"Directory of the results (default: out): each tuning has tune/NAME in it." default:"out" placeholder:"DIR"`
	dataFlags
	Workers int `help:"Runs to play at a time (default: one for each processor). The results do not depend on it." default:"0" placeholder:"N"`
}

func (tuneCmd) Help() string {
	return `A tuning names a policy of one or more experiments, and the values of its parameters to try. The regret of a setting is its regret after the last round, averaged over the experiments. All settings meet the same worlds. With [halving], all settings play a few training seeds, the better ones play more, and only the best play all. The winner is then compared, seed by seed, with the setting in the experiments, on fresh seeds that were not used for the choice.

A file looks like this; the values of training and fresh are the defaults:

    name = "mine"
    policy = "onl-mnl"                           # its label in the experiments
    experiments = ["main-gaussian-realizable"]   # names, or paths from this file
    training = { first_seed = 1000, seeds = 40 } # not the experiments' seeds, from 0
    fresh = { first_seed = 2000, seeds = 100, best = 1 } # best: the number of settings that play them
    halving = { first = 5, factor = 3 }          # on 5, 15, 40 seeds: a third continues

    [grid]
    lambda = [1, 10]
    utility.hidden = [[3], [15]]                 # any key of the policy

    [random]                                     # instead of a grid, or with one
    draws = 30
    seed = 1

    [random.ranges]                              # of the same keys
    lambda = { low = 0.1, high = 100, log = true }
    utility.hidden = [[3], [15]]

DIR/tune/NAME/ has tune.csv (a row a setting: outcome, parameters, seeds played, regret, paired differences to the winner and to the configured setting, with standard errors), fresh.csv (the same on the fresh seeds, by experiment), tune.svg and tune.png (the regret over the first two parameters that have several values, the best over the others; settings stopped early are marked, and compared with the winner on the seeds that both have played), tune.json (the configuration, the results that tune.svg shows, the machine), and the runs by experiment, from which an interrupted command continues when it is given again.

` + examples(
		"vitrine tune ucb-mnl-main                       the constants of ucb-mnl-tuned in the main panels",
		"vitrine tune all                                every constant that the panels call tuned",
		"vitrine list tunings --print ucb-mnl-main > mine.toml",
		"vitrine tune mine.toml --out results --workers 2",
	)
}

func (c tuneCmd) Run(ctx context.Context, t terminal) error {
	if c.Workers < 0 {
		return usagef("--workers %d: must not be negative (0 is one for each processor)", c.Workers)
	}
	tunings, err := c.load(t, c.open(ctx, t))
	if err != nil {
		return err
	}
	v, err := fullVersion()
	if err != nil {
		return err
	}
	for i, tuning := range tunings {
		if i > 0 {
			fmt.Fprintln(t.out)
		}
		s := search{Tuning: tuning, terminal: t, dir: filepath.Join(c.Out, tuningsDir, tuning.Name), workers: c.Workers,
			version: v}
		if err := s.run(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(t.err, "vitrine: results are in %s\n", filepath.Join(c.Out, tuningsDir))
	return nil
}

func (c tuneCmd) load(terminal terminal, d data) ([]*config.Tuning, error) {
	if len(c.Names) == 0 {
		return nil, usageError{errors.New("tune what? name tunings (see vitrine list tunings), files or all")}
	}
	names := unique(c.Names)
	if i := slices.Index(names, "all"); i >= 0 {
		names = slices.Replace(names, i, i+1, experiments.Tunings()...)
	}
	var tunings []*config.Tuning
	for _, n := range unique(names) {
		t, err := loadTuning(n)
		if err != nil {
			return nil, err
		}
		lacks := func(f *config.File) bool { return !c.has(f.Pool) }
		if i := slices.IndexFunc(t.Files(), lacks); i >= 0 && !slices.Contains(c.Names, n) {
			terminal.warn(fmt.Sprintf("%s is left out: it needs a folder %s in --data", n, t.Files()[i].Pool))
			continue
		}
		if err := d.supply(t.Files()...); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(tunings, func(o *config.Tuning) bool { return o.Name == t.Name }) {
			return nil, fmt.Errorf("%s: another tuning is also called %q: their results would share a directory", n,
				t.Name)
		}
		tunings = append(tunings, t)
	}
	return tunings, nil
}

// loadTuning loads an embedded tuning, or a file.
func loadTuning(name string) (*config.Tuning, error) {
	if slices.Contains(experiments.Tunings(), name) {
		text, err := experiments.ReadTuning(name)
		if err != nil {
			return nil, err
		}
		return config.LoadTuning(name+".toml", text, openExperiment(""))
	}
	if !isPath(name) {
		return nil, usagef("there is no tuning %q%s", name,
			hint.Near(name, experiments.Tunings(), ": there are "+strings.Join(experiments.Tunings(),
				", ")+", and files that end in .toml"))
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return config.LoadTuning(name, text, openExperiment(filepath.Dir(name)))
}

func isPath(name string) bool { return strings.HasSuffix(name, ".toml") }

// openExperiment loads an embedded experiment, or a file by its path relative to dir.
func openExperiment(dir string) func(name string) (*config.File, error) {
	return func(name string) (*config.File, error) {
		if !isPath(name) {
			text, err := experiments.Read(name)
			if err != nil {
				return nil, usagef("there is no experiment %q%s", name, hint.Near(name, experiments.Names(),
					": vitrine list experiments names them, and paths end in .toml"))
			}
			return config.Load(name+".toml", text)
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		return config.Load(name, text)
	}
}

// drawTuning draws the tuning with files in dir.
func drawTuning(dir string, formats ...figure.Format) error {
	t, err := figure.ReadTuning(filepath.Join(dir, "tune.json"))
	if err != nil {
		return err
	}
	return figure.Write(filepath.Join(dir, "tune"), t, formats...)
}

// tuningsDir is the directory of the tunings' results among the experiments'.
const tuningsDir = "tune"
