package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vitrine/config"
	"vitrine/experiment"
	"vitrine/paper/experiments"
)

type dumpCmd struct {
	Names     []string `arg:"" optional:"" name:"name|config.toml" help:"Experiments (see vitrine list experiments), or files that describe one experiment each."`
	Seeds     *int     `help:"How many seeds to write (default: what the file says)." placeholder:"N"`
	FirstSeed uint64   `help:"The seeds are FIRST, FIRST+1, …" default:"0" placeholder:"FIRST"`
	Out       string   `help:"Directory of the dumps (default: out): each experiment has its own in it." default:"out" placeholder:"DIR"`
	Workers   int      `help:"Seeds to write at a time (default: one for each processor). The bytes do not depend on it." default:"0" placeholder:"N"`
	dataFlags
	Policies []string `help:"Play these too, by label or name, separated by commas, and write what they offered." placeholder:"A,B"`
}

func (dumpCmd) Help() string {
	return `With these files a learner in any language meets the same customers as the policies of vitrine run, and its regret is against the same optimum.

DIR/NAME/seed-S.npz has arrays for T rounds, N items and d features: features (T×N×d), revenues (T×N), utilities (T×N, the true ones), shocks (T×(N+1), Gumbel shocks, the first of the outside option) and optimum (T, the largest expected revenue). A customer who is shown the items S takes the largest of shocks[t,0] and utilities[t,i] + shocks[t,i+1] for i in S; show the learner only this choice. Worlds with [baskets], where a customer takes several items, cannot be dumped. Its regret in the round is optimum[t] minus the expected revenue of S, Σ exp(u_i) r_i / (1 + Σ exp(u_i)). Each policy P of --policies adds P.offers (items, filled up with -1), P.choices (the position in the offer, from 1, or 0 for none), P.propensity (0 where it is not known) and P.regret (cumulative). With position effects, place_effects[k] adds to the utility of the item in place k, in choices and in regret, and P.orders has the items of each offer from the first place on.

DIR/NAME/world.json has the experiment's settings, with K and the constraint, and is written last. Files of earlier dumps are replaced.

` + examples(
		"vitrine dump main-gaussian-realizable --seeds 10 --out worlds",
		"vitrine dump mine.toml --policies onl-mnl,uniform --out worlds",
	)
}

func (c dumpCmd) Run(ctx context.Context, t terminal) error {
	chosen, err := c.load(ctx, t)
	if err != nil {
		return err
	}
	for _, e := range chosen {
		bar := newProgress(t.err, e.Name, "", len(e.Seeds)*(1+len(e.Policies))*e.Rounds)
		err := experiment.Dump(ctx, e, experiment.Options{Dir: c.Out, Workers: c.Workers, Progress: bar.add})
		bar.close()
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(t.err, "vitrine: the dumps are in %s\n", c.Out)
	return nil
}

// load returns the named experiments, with the policies to play.
func (c dumpCmd) load(ctx context.Context, t terminal) ([]*experiment.Experiment, error) {
	if len(c.Names) == 0 {
		return nil, usageError{errors.New("dump what? name experiments (see vitrine list experiments) or files")}
	}
	if err := checkPlay(c.Seeds, c.Workers); err != nil {
		return nil, err
	}
	version, err := fullVersion()
	if err != nil {
		return nil, err
	}
	sel := config.Selection{FirstSeed: c.FirstSeed, Policies: c.Policies}
	if c.Seeds != nil {
		sel.Seeds = *c.Seeds
	}
	open, data := openExperiment(""), c.open(ctx, t)
	var chosen []*experiment.Experiment
	for _, name := range unique(c.Names) {
		if slices.Contains(experiments.WithoutFile(), name) {
			return nil, usagef("%s is no world: there is nothing to dump", name)
		}
		f, err := open(name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(chosen, func(o *experiment.Experiment) bool { return o.Name == f.Name }) {
			return nil, usagef("%s: another experiment is also called %q: their dumps would share "+
				"a directory", name, f.Name)
		}
		if err := data.supply(f); err != nil {
			return nil, err
		}
		e, err := f.Experiment(sel, version)
		if err != nil {
			return nil, usageError{err}
		}
		if len(c.Policies) == 0 {
			e.Policies = nil
		}
		chosen = append(chosen, e)
	}
	return chosen, nil
}
