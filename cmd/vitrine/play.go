package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vitrine/config"
	"vitrine/experiment"
	"vitrine/internal/hint"
	"vitrine/paper/experiments"
	"vitrine/paper/sessions"
)

// playFlags are the flags shared by reproduce and run.
type playFlags struct {
	Seeds     *int   `help:"How many seeds to play (default: what the file says, 30 in the paper's panels)." placeholder:"N"`
	FirstSeed uint64 `help:"The seeds are FIRST, FIRST+1, …" default:"0" placeholder:"FIRST"`
	Out       string `help:"Directory of the results (default: out): each experiment has its own in it." default:"out" placeholder:"DIR"`
	Workers   int    `help:"Runs to play at a time (default: one for each processor). The results do not depend on it." default:"0" placeholder:"N"`
	dataFlags
	Policies  []string `help:"Play only these, by label or name, separated by commas. A name selects every policy that has it." placeholder:"A,B" complete:"policies"`
	Shard     string   `help:"Play only this part of the runs, here the third of twenty; vitrine merge joins all parts." placeholder:"3/20"`
	Baselines string   `help:"Constants of the linear baselines: theory (the default), as in the published figures; tuned, with an intercept and a tuned radius; or both." default:"theory" placeholder:"theory|tuned|both" complete:"baselines"`
}

const filesHelp = `Each experiment writes to DIR/NAME/: regret.csv (cumulative expected regret by policy, seed and round), summary.csv, regret.svg and regret.png (mean with a band of ± 2 standard errors; vitrine plot draws other bands, formats, scales and widths, paired differences and tables), run.json (the configuration, the machine, the learners' diagnostics), and runs.jsonl, from which an interrupted command continues when it is given again.`

type reproduceCmd struct {
	Names []string `arg:"" optional:"" name:"name" help:"Experiments or groups of them (see vitrine list experiments), or all." complete:"experiments"`
	playFlags
}

func (reproduceCmd) Help() string {
	return filesHelp + " Panels that form a figure of the paper are also drawn together, in DIR.\n\n" + examples(
		"vitrine reproduce main                          the main figure, four panels",
		"vitrine reproduce main --baselines tuned        against baselines that are tuned",
		"vitrine reproduce main-gaussian-realizable --seeds 5 --policies onl-mnl,uniform",
		"vitrine reproduce sweep-uniform                 a figure of the appendix, eight panels",
		"vitrine reproduce warmup unit                   the main panels with other t_0, and with ‖w*‖ ≤ 1",
		"vitrine reproduce linear                        the benchmark of the linear baselines' own papers",
		"vitrine reproduce geometric-condition           the loss and its lower bound, computed and not played",
		"vitrine reproduce theory                        coverage, optimism, constants and growth, against the paper's theory",
		"vitrine reproduce table1 tractability           the algorithms of Table 1: their regret, time and memory",
		"vitrine reproduce sessions                      pages that change what a visitor wants next",
		"vitrine reproduce rivers                        worlds that move by the multinomial logit",
	)
}

func (c reproduceCmd) Run(ctx context.Context, t terminal) error {
	names, err := c.resolve()
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	if names, err = c.leaveOut(t, names); err != nil {
		return err
	}
	played := slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return slices.Contains(experiments.WithoutFile(), n)
	})
	var files []*config.File
	for _, name := range played {
		f, err := openExperiment("")(name)
		if err != nil {
			return err
		}
		if !slices.Contains(c.Names, name) && !c.has(f.Pool) {
			t.warn(fmt.Sprintf("%s is left out: it needs a folder %s in --data", name, f.Pool))
			continue
		}
		files = append(files, f)
	}
	if len(files) > 0 {
		if err := c.play(ctx, t, files, experiments.Figures(played)); err != nil {
			return err
		}
	}
	for _, other := range []struct {
		name      string
		reproduce func(ctx context.Context, t terminal) error
	}{
		{experiments.GeometricCondition, func(ctx context.Context, t terminal) error {
			return reproduceGeometricCondition(ctx, t, c.Out)
		}},
		{experiments.Theory, c.reproduceTheory},
		{experiments.Tractability, func(ctx context.Context, t terminal) error {
			return reproduceTractability(ctx, t, c.Out)
		}},
		{experiments.Sessions, c.reproduceSessions(sessions.Default, 10)},
		{experiments.Rivers, c.reproduceSessions(sessions.Rivers, 30)},
	} {
		if slices.Contains(names, other.name) {
			if err := other.reproduce(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// resolve returns the named experiments, once each.
func (c reproduceCmd) resolve() (names []string, err error) {
	all, groups := append(experiments.WithoutFile(), experiments.Names()...), experiments.Groups()
	known := strings.Join(groups, ", ")
	if len(c.Names) == 0 {
		return nil, usagef("reproduce what? name a group (%s), experiments (see vitrine list "+
			"experiments) or all", known)
	}
	for _, n := range c.Names {
		switch {
		case n == "all":
			names = append(names, all...)
		case slices.Contains(groups, n):
			names = append(names, experiments.Members(n)...)
		case slices.Contains(all, n):
			names = append(names, n)
		default:
			otherwise := fmt.Sprintf(": name a group (%s) or one that vitrine list experiments names", known)
			return nil, usagef("there is no experiment %q%s", n, hint.Near(n, append(groups, all...), otherwise))
		}
	}
	return unique(names), nil
}

// unique returns the words without duplicates.
func unique(words []string) []string {
	var list []string
	for _, w := range words {
		if !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

type runCmd struct {
	Files []string `arg:"" name:"config.toml" help:"Files that describe one experiment each."`
	playFlags
}

func (runCmd) Help() string {
	return "vitrine list experiments --print NAME prints the file of a panel of the paper, to start from. A " +
		"learner in another language is the policy process: see vitrine describe process.\n\n" + filesHelp + "\n\n" +
		examples(
			"vitrine list experiments --print main-gaussian-realizable > mine.toml",
			"vitrine run mine.toml --seeds 5",
		)
}

func (c runCmd) Run(ctx context.Context, t terminal) error {
	var files []*config.File
	for _, path := range c.Files {
		text, err := os.ReadFile(path)
		if _, panels := (reproduceCmd{Names: []string{path}}).resolve(); err != nil && panels == nil {
			return hint.New(err, fmt.Sprintf("%s is part of the paper: vitrine reproduce %s plays it, and run "+
				"plays files of yours", path, path))
		}
		if err != nil {
			return err
		}
		f, err := config.Load(path, text)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(files, func(o *config.File) bool { return o.Name == f.Name }); i >= 0 {
			return fmt.Errorf("%s and %s are both called %q: their results would share a directory", c.Files[i], path,
				f.Name)
		}
		files = append(files, f)
	}
	return c.play(ctx, t, files, nil)
}

// play plays, prints and draws experiments one after the other, and then draws the figures that they form.
func (c playFlags) play(ctx context.Context, t terminal, files []*config.File, figures []experiments.Figure) error {
	if err := c.check(); err != nil {
		return err
	}
	sel := config.Selection{FirstSeed: c.FirstSeed, Policies: c.Policies, Baselines: c.Baselines}
	if c.Seeds != nil {
		sel.Seeds = *c.Seeds
	}
	v, err := fullVersion()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := f.Check(sel); err != nil {
			return usageError{err}
		}
	}
	if err := c.open(ctx, t).supply(files...); err != nil {
		return err
	}
	var chosen []*experiment.Experiment
	for _, f := range files {
		e, err := f.Experiment(sel, v)
		if err != nil {
			return usageError{err}
		}
		chosen = append(chosen, e)
	}
	shard, _ := c.shard() // check read it without an error
	for i, e := range chosen {
		if shard != nil {
			if err := c.playShard(ctx, t, e, *shard); err != nil {
				return err
			}
			continue
		}
		bar := newProgress(t.err, e.Name, runs(len(e.Policies)*len(e.Seeds)), len(e.Policies)*len(e.Seeds)*e.Rounds)
		summaries, err := experiment.Run(ctx, e, bar.options(t, c.Out, c.Workers))
		bar.close()
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(t.out)
		}
		experiment.PrintSummary(t.out, summaries)
		if err := (drawing{}).draw(t, []drawable{regretOf(filepath.Join(c.Out, e.Name))}); err != nil {
			return err
		}
	}
	if shard != nil {
		fmt.Fprintf(t.err, "vitrine: the results of shard %v are in %s; vitrine merge joins all shards\n", *shard,
			c.shardDir(*shard))
		return nil
	}
	for _, f := range figures {
		if err := (drawing{}).draw(t, []drawable{figureIn(c.Out, f)}); err != nil {
			return err
		}
	}
	fmt.Fprintf(t.err, "vitrine: results are in %s\n", c.Out)
	return nil
}

// seeds returns the seeds of a study with n by default.
func (c playFlags) seeds(n int) []uint64 {
	if c.Seeds != nil {
		n = *c.Seeds
	}
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = c.FirstSeed + uint64(i)
	}
	return seeds
}

// check reports flags with illegal values.
func (c playFlags) check() error {
	if !slices.Contains([]string{"theory", "tuned", "both"}, c.Baselines) {
		return usagef("--baselines %s: must be theory, tuned or both", c.Baselines)
	}
	if c.FirstSeed > config.MaxFirstSeed {
		return usagef("--first-seed %d: must be at most %d", c.FirstSeed, uint64(config.MaxFirstSeed))
	}
	_, err := c.shard()
	return cmp.Or(checkPlay(c.Seeds, c.Workers), err)
}

func checkPlay(seeds *int, workers int) error {
	switch {
	case seeds != nil && (*seeds < 1 || *seeds > config.MaxSeeds):
		return usagef("--seeds %d: must be from 1 to %d", *seeds, config.MaxSeeds)
	case workers < 0:
		return usagef("--workers %d: must not be negative (0 is one for each processor)", workers)
	}
	return nil
}
