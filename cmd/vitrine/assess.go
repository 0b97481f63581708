package main

import (
	"context"
	"errors"

	"vitrine/service/importer"
	"vitrine/service/judge"
)

type assessCmd struct {
	Log       string  `arg:"" help:"Log of another program: a table in CSV, TSV or Parquet, JSON Lines, or Vowpal Wabbit's text, JSON or dsjson; text may be compressed with gzip or zstd."`
	Mapping   string  `help:"TOML file that maps the log's columns to decisions, in place of the mapping that is found." placeholder:"FILE"`
	Placement string  `help:"The placement in the printed command (default: home)." default:"home" placeholder:"NAME"`
	To        string  `help:"The data directory in the printed command (default: vitrine-data)." default:"vitrine-data" placeholder:"DIR"`
	Out       string  `help:"Write the mapping and the placement to mapping.toml and placement.json in this directory, which must not have them." placeholder:"DIR"`
	Decisions int     `help:"Judge policies on at most this many decisions (default: 10000)." default:"10000" placeholder:"N"`
	Level     float64 `help:"Confidence level of the intervals (default: 0.95)." default:"0.95" placeholder:"SHARE"`
	Seed      uint64  `help:"Seed of drawn pages (default: 1)." default:"1" placeholder:"N"`
	JSON      bool    `help:"Print JSON." name:"json"`
}

func (assessCmd) Help() string {
	return `It recognises the format and the columns of the log, describes the decisions and their gaps, estimates the earnings of other policies, and prints the mapping, the placement and the command that starts the placement from the log. If you must supply something by hand, it names it. Files are written only with --out.

It reads tables with a row for each item (columns of any names, unsorted, several items taken), a line for each page with lists of items, Open Bandit's csv next to its item_context.csv, Azure Personalizer's logs, tables of events, and Vowpal Wabbit's contextual bandits and slots. The columns are found by their names and values: read the notes under "Assumed", and if one is wrong, correct the mapping and pass it with --mapping.

The whole log is read for the counts, in bounded memory. Policies are judged on the first decisions, by the methods of vitrine evaluate: if the log says how its pages were drawn, by dr-pi or dr-sets, and otherwise by direct, whose model the log cannot check.

` + examples(
		"vitrine assess clicks.csv.gz",
		"vitrine assess personalizer.json --out start",
		"vitrine assess sessions.jsonl --mapping sessions.toml --json",
	)
}

func (c assessCmd) Run(ctx context.Context, t terminal) error {
	switch {
	case c.Log == "-":
		return errors.New("assess reads a log several times: save it to a file")
	case !(c.Level > 0 && c.Level < 1):
		return usagef("--level is %v: want a number between 0 and 1", c.Level)
	case c.Decisions < judge.Fewest:
		return usagef("--decisions is %d: a policy is judged on at least %d", c.Decisions, judge.Fewest)
	}
	bar := &stages{w: t.err, name: c.Log}
	o := judge.AssessOptions{Placement: c.Placement, To: c.To, Out: c.Out, Decisions: c.Decisions, Level: c.Level,
		Seed: c.Seed, Progress: bar.report}
	if c.Mapping != "" {
		m, err := importer.ReadMapping(c.Mapping)
		if err != nil {
			return err
		}
		o.Mapping = m
	}
	a, err := judge.Assess(ctx, c.Log, o)
	bar.close()
	if err != nil {
		return err
	}
	if c.JSON {
		return t.printJSON(a)
	}
	_, err = t.out.Write(a.Text())
	return err
}
