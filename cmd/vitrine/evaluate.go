package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"vitrine/figure"
	"vitrine/offpolicy"
	"vitrine/service/inspect"
	"vitrine/service/judge"
)

type evaluateCmd struct {
	logArg
	Policy    []string `help:"A policy to judge, a TOML file. Give the flag once for each policy." placeholder:"FILE" required:""`
	Placement string   `help:"The placement (default: the log's only one)." placeholder:"NAME"`
	From      *uint64  `help:"Use the decisions from this entry of the log on." placeholder:"ENTRY"`
	Utility   string   `help:"The family of the choice model, as in {kind = \"quadratic\"} (default: linear with an intercept)." placeholder:"TOML" default:"{kind = \"linear\", intercept = true}"`
	Level     float64  `help:"Confidence level of the intervals (default: 0.95)." default:"0.95" placeholder:"SHARE"`
	Folds     int      `help:"Number of parts of the log: each is judged by a model of the others (default: 5)." default:"5" placeholder:"N"`
	Resamples int      `help:"Number of resamples of the bootstrap (default: 1000)." default:"1000" placeholder:"N"`
	Seed      uint64   `help:"Seed of the bootstrap and of drawn pages (default: 1)." default:"1" placeholder:"N"`
	Format    string   `help:"What to print: text (the default), csv or json." placeholder:"text|csv|json" enum:"text,csv,json" default:"text"`
	Figure    string   `help:"Draw a forest plot; the file ends in .svg, .png or .pdf." placeholder:"FILE"`
}

func (evaluateCmd) Help() string {
	return `It prints the limits of the log first, then the earnings of a page of each policy, by each method, and last the difference of each other policy from the first. Decisions without an outcome are left out; the others are held in memory, 8 bytes a number. The log must have the features of all candidates ("log_items": "all", as in the mode explore), and should explore.

    direct    the revenue that a fitted choice model predicts: precise, and wrong if the family is
    dr-pi     direct, corrected by what the log earned, with pseudo-inverse weights of items
    pi        pseudo-inverse weights without a model, as if a page earned the sum of its items; biased, for comparison
    items     independent weights of items, as in Open Bandit Pipeline; biased, for comparison
    snips     weights of whole pages; no number unless they are worth 50 rounds
    dr-sets   direct, corrected with weights of whole pages; as snips
    replay    of a policy that learns, on a log of uniformly drawn pages

Intervals are normal, by the bootstrap, and at any time. Normal and bootstrap intervals hold for one look at the log, and for independent shoppers; fewer than 20 shoppers who return give no number, and weights that count fewer than 5 sales no such interval. Where the log does not know who returns, as without shopper_history, a hold-out or an experiment, they are too narrow if few shoppers return often. Intervals at any time are for the log's own shoppers. They hold for all looks together, so you may evaluate a growing log every day and stop as soon as the interval is clear. They are two to four times as wide, and hold in small logs too. They need a policy that was fixed before the log began: policies with show = "best" or "policy", which learn from the log, have none, and neither has the direct method.

A policy is a TOML file:

    name = "new"                      how the output calls it (default: the file's name)
    show = "best"                     the best page by the choice model; it learns from the other folds
    show = "policy"                   that of a policy that has learned from the other folds:
    [policy]                          as in a placement, see vitrine list policies
    name = "ucb-mnl"
    show = "replay"                   the same, while it learns; needs a uniform log
    show = "model"                    the best page by a model of vitrine fit, see vitrine pilot --help:
    model = "model.json"
    show = "items"                    the first of these items that a request has:
    items = ["sku1", "sku2"]
    show = "revenue"                  the items of the largest revenues
    show = "uniform"                  a page drawn uniformly
    size = 3                          how many items (default: as many as the log's largest page; the placement's rules do not bind)

` + aboutLog + "\n\n" + examples(
		"vitrine evaluate vitrine-data --policy new.toml",
		"vitrine evaluate vitrine-data --placement home --policy new.toml --policy top.toml --figure forest.svg",
		`vitrine evaluate vitrine-data --policy new.toml --utility '{kind = "quadratic"}' --format csv`,
	)
}

func (c evaluateCmd) Run(ctx context.Context, t terminal) (err error) {
	if _, err := formatOf(c.Figure); err != nil {
		return err
	}
	var policies []*judge.Policy
	for _, path := range c.Policy {
		p, err := judge.ReadPolicy(path)
		if err != nil {
			return err
		}
		for _, other := range policies {
			if other.Name == p.Name {
				return fmt.Errorf("%s: name = %q: another policy has it", path, p.Name)
			}
		}
		policies = append(policies, p)
	}
	log, err := c.open(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	rounds, err := log.Rounds(ctx, inspect.Decisions{Placement: c.Placement, From: c.From})
	if err != nil {
		return err
	}
	v, err := judge.Run(ctx, rounds, policies, judge.Options{Utility: c.Utility, Level: c.Level, Folds: c.Folds,
		Resamples: c.Resamples, Seed: c.Seed, Progress: log.progress.report})
	log.progress.close()
	if errors.As(err, new(judge.OptionsError)) {
		return usageError{err}
	} else if err != nil {
		return err
	}
	if c.Figure != "" {
		if err := c.draw(v); err != nil {
			return err
		}
	}
	var out []byte
	switch c.Format {
	case "csv":
		out, err = v.CSV()
	case "json":
		out, err = v.JSON()
	default:
		out = v.Text(log.Name)
	}
	if err != nil {
		return err
	}
	_, err = t.out.Write(out)
	return err
}

// draw draws the values and the page of the log, and then the differences, with normal intervals.
func (c evaluateCmd) draw(v *judge.Verdict) error {
	format, err := formatOf(c.Figure)
	if err != nil {
		return err
	}
	mean, logged := v.Logged()
	f := figure.Forest{Title: "revenue of a page", Axis: "revenue", Reference: mean,
		Subtitle: fmt.Sprintf("%d decisions of %s, normal %g%% intervals; the line is what the log earned",
			len(v.Rounds.Rounds), v.Rounds.Placement, 100*c.Level)}
	f.Rows = append(f.Rows, figure.ForestRow{Name: "as logged", Value: mean, Low: logged.Low, High: logged.High})
	v.Each(func(policy, minus string, s offpolicy.Estimate) {
		if minus == "" {
			f.Rows = append(f.Rows, figure.ForestRow{Name: policy + ", " + s.Method, Value: s.Value, Low: s.Normal.Low,
				High: s.Normal.High})
		}
	})
	return figure.Write(strings.TrimSuffix(c.Figure, "."+format.Name), f, format)
}
