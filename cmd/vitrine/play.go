package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"vitrine/config"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/experiments"
	"vitrine/figure"
)

// playFlags are what reproduce and run have in common.
type playFlags struct {
	Seeds     *int     `help:"How many seeds to play (default: what the file says, 30 in the paper's panels)." placeholder:"N"`
	FirstSeed uint64   `help:"The seeds are FIRST, FIRST+1, …" default:"0" placeholder:"FIRST"`
	Out       string   `help:"Directory of the results (default: out): each experiment has its own in it." default:"out" placeholder:"DIR"`
	Data      string   `help:"Where the data of experiments with real items is: its file, or a folder that has it (imdb, camera)." placeholder:"PATH"`
	Workers   int      `help:"Runs to play at a time (default: one for each processor). The results do not depend on it." default:"0" placeholder:"N"`
	Policies  []string `help:"Play only these, by label or name, separated by commas." placeholder:"A,B"`
	Baselines string   `help:"Constants of the linear baselines: theory (the default), as published figures have them; tuned, with an intercept and a tuned radius; or both." default:"theory" placeholder:"theory|tuned|both"`
}

const filesHelp = `For each experiment DIR/NAME/ has regret.csv (cumulative expected regret by policy, seed and round), summary.csv, regret.svg and regret.png (mean with a band of one standard deviation), run.json (the configuration, the machine, the learners' diagnostics), and runs.jsonl, from which an interrupted command continues when it is given again.`

type reproduceCmd struct {
	Names []string `arg:"" optional:"" name:"name" help:"Experiments or groups of them (see vitrine list experiments), or all."`
	playFlags
}

// Help is the tail of the command's help.
func (reproduceCmd) Help() string {
	return filesHelp + "\n\n" + examples(
		"vitrine reproduce main                          the main figure, four panels",
		"vitrine reproduce main --baselines tuned        against baselines that are tuned",
		"vitrine reproduce main-gaussian-realizable --seeds 5 --policies onl-mnl,uniform",
	)
}

// Run plays the named experiments.
func (c reproduceCmd) Run(ctx context.Context, t terminal) error {
	names, groups, err := c.resolve()
	if err != nil {
		return err
	}
	var files []*config.File
	for _, name := range names {
		text, err := experiments.Read(name)
		if err != nil {
			return err
		}
		f, err := config.Load(name+".toml", text)
		if err != nil {
			return err
		}
		if f.Pool != "" && c.Data == "" && !slices.Contains(c.Names, name) {
			t.warn(name + " is left out: it needs --data")
			continue
		}
		files = append(files, f)
	}
	return c.play(ctx, t, files, groups)
}

// resolve returns the experiments that are named, once each, and the groups.
func (c reproduceCmd) resolve() (names, groups []string, err error) {
	all, known := experiments.Names(), experiments.Groups()
	if len(c.Names) == 0 {
		return nil, nil, usageError{fmt.Errorf("reproduce what? name a group (%s), experiments (see vitrine list experiments) or all", strings.Join(known, ", "))}
	}
	for _, n := range c.Names {
		switch {
		case n == "all":
			names, groups = append(names, all...), append(groups, known...)
		case slices.Contains(known, n):
			names, groups = append(names, experiments.Members(n)...), append(groups, n)
		case slices.Contains(all, n):
			names = append(names, n)
		default:
			return nil, nil, usageError{fmt.Errorf("there is no experiment %q: there are the groups %s, and what vitrine list experiments names", n, strings.Join(known, ", "))}
		}
	}
	return unique(names), unique(groups), nil
}

// unique returns the first of each word.
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
	Files []string `arg:"" name:"config.toml" help:"Files that describe an experiment each."`
	playFlags
}

// Help is the tail of the command's help.
func (runCmd) Help() string {
	return "A file looks like those of the paper's panels: vitrine list experiments --show NAME prints one to start from.\n\n" + filesHelp + "\n\n" + examples(
		"vitrine list experiments --show main-gaussian-realizable > mine.toml",
		"vitrine run mine.toml --seeds 5",
	)
}

// Run plays the files.
func (c runCmd) Run(ctx context.Context, t terminal) error {
	var files []*config.File
	for _, path := range c.Files {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := config.Load(path, text)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(files, func(o *config.File) bool { return o.Name == f.Name }); i >= 0 {
			return fmt.Errorf("%s and %s are both called %q: their results would share a directory", c.Files[i], path, f.Name)
		}
		files = append(files, f)
	}
	return c.play(ctx, t, files, nil)
}

// play plays experiments one after the other, prints their summaries and draws
// them, and then the groups.
func (c playFlags) play(ctx context.Context, t terminal, files []*config.File, groups []string) error {
	sel := config.Selection{FirstSeed: c.FirstSeed, Policies: c.Policies, Baselines: c.Baselines}
	if c.Seeds != nil {
		if *c.Seeds < 1 || *c.Seeds > config.MaxSeeds {
			return usageError{fmt.Errorf("--seeds %d: must be from 1 to %d", *c.Seeds, config.MaxSeeds)}
		}
		sel.Seeds = *c.Seeds
	}
	if c.Workers < 0 {
		return usageError{fmt.Errorf("--workers %d: must not be negative (0 is one for each processor)", c.Workers)}
	}
	if !slices.Contains([]string{"theory", "tuned", "both"}, c.Baselines) {
		return usageError{fmt.Errorf("--baselines %s: must be theory, tuned or both", c.Baselines)}
	}
	v, err := fullVersion()
	if err != nil {
		return err
	}
	var chosen []*experiment.Experiment
	for _, f := range files {
		if f.Pool != "" {
			if sel.Pool, err = c.loadPool(ctx, f); err != nil {
				return err
			}
		}
		e, err := f.Experiment(sel, v)
		if err != nil {
			return usageError{err}
		}
		chosen = append(chosen, e)
	}
	for i, e := range chosen {
		bar := newProgress(t.err, e.Name, len(e.Policies)*len(e.Seeds), e.Rounds)
		summaries, err := experiment.Run(ctx, e, experiment.Options{Dir: c.Out, Workers: c.Workers, Progress: bar.add, Warn: t.warn})
		bar.close()
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(t.out)
		}
		printSummary(t, summaries)
		if err := draw(filepath.Join(c.Out, e.Name)); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if err := drawGroup(c.Out, g); err != nil {
			return err
		}
	}
	fmt.Fprintf(t.err, "vitrine: results are in %s\n", c.Out)
	return nil
}

// loadPool reads the data of the file's pool from --data, or from the folder of
// the pool's name in it.
func (c playFlags) loadPool(ctx context.Context, f *config.File) (*env.Pool, error) {
	hint := fmt.Sprintf("the data is %s", f.PoolSource)
	if c.Data == "" {
		return nil, hinted{usageError{fmt.Errorf("%s needs real data: say where it is with --data PATH", f.Name)}, hint}
	}
	path := c.Data
	if inside := filepath.Join(path, f.Pool); isDir(inside) {
		path = inside
	}
	p, err := f.LoadPool(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hinted{err, hint}
	}
	return p, err
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func printSummary(t terminal, summaries []experiment.Summary) {
	seeds := "seeds"
	if summaries[0].Seeds == 1 {
		seeds = "seed"
	}
	fmt.Fprintf(t.out, "%s: regret after %d rounds, %d %s\n", summaries[0].Experiment, summaries[0].Rounds, summaries[0].Seeds, seeds)
	w := tabwriter.NewWriter(t.out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "policy\tmean\tsd\tseconds a run\t")
	for _, s := range summaries {
		sd := "–"
		if !math.IsNaN(s.FinalSD) {
			sd = fmt.Sprintf("%.1f", s.FinalSD)
		}
		fmt.Fprintf(w, "%s\t%.1f\t%s\t%.3f\t\n", s.Policy, s.FinalMean, sd, s.SecondsPerRun)
	}
	w.Flush()
}

type plotCmd struct {
	Dirs []string `arg:"" name:"dir" help:"A directory with a regret.csv, or one that holds such directories."`
}

// Help is the tail of the command's help.
func (plotCmd) Help() string {
	return examples("vitrine plot out/main-gaussian-realizable", "vitrine plot out        every experiment in it, and the groups that are complete")
}

// Run draws what the directories hold.
func (c plotCmd) Run(t terminal) error {
	for _, dir := range c.Dirs {
		if _, err := os.Stat(filepath.Join(dir, "regret.csv")); err == nil {
			if err := draw(dir); err != nil {
				return err
			}
			continue
		}
		found, err := fs.Glob(os.DirFS(dir), "*/regret.csv")
		if err != nil {
			return err
		}
		if len(found) == 0 {
			if _, err := os.Stat(dir); err != nil {
				return err
			}
			return hinted{fmt.Errorf("%s: no regret.csv in it or below it", dir), "results come from vitrine reproduce and vitrine run"}
		}
		for _, path := range found {
			if err := draw(filepath.Join(dir, filepath.Dir(path))); err != nil {
				return err
			}
		}
		for _, g := range experiments.Groups() {
			if err := drawGroup(dir, g); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// draw draws the regret of the experiment in dir.
func draw(dir string) error {
	p, err := readPanel(dir)
	if err != nil {
		return err
	}
	return figure.Write(filepath.Join(dir, "regret"), p)
}

// drawGroup draws the experiments of a group side by side.
func drawGroup(out, group string) error {
	var panels []figure.Panel
	for _, name := range experiments.Members(group) {
		p, err := readPanel(filepath.Join(out, name))
		if err != nil {
			return err
		}
		panels = append(panels, p)
	}
	return figure.Write(filepath.Join(out, group), panels...)
}

// readPanel reads the regret of an experiment, with the title that it had.
func readPanel(dir string) (figure.Panel, error) {
	p, err := figure.ReadPanel(filepath.Join(dir, "regret.csv"))
	if err != nil {
		return p, err
	}
	p.Title = experiment.Title(dir)
	return p, nil
}
