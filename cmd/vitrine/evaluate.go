package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"gonum.org/v1/gonum/stat"

	"vitrine/bandit/policy"
	"vitrine/figure"
	"vitrine/internal/settings"
	"vitrine/offpolicy"
	"vitrine/service/inspect"
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

// Help is the tail of the command's help.
func (evaluateCmd) Help() string {
	return `It prints the limits of the log first, then the earnings of a page of each policy, by each method, and last the difference of each other policy from the first. Decisions without an outcome are left out; the others are held in memory, 8 bytes a number. The log must have the features of all candidates ("record": "all", as in the mode explore), and should explore.

    direct    the revenue that a fitted choice model predicts: precise, and wrong if the family is
    dr-pi     direct, corrected by what the log earned, with pseudo-inverse weights of items
    pi        pseudo-inverse weights without a model, as if a page earned the sum of its items
    items     independent weights of items, as in Open Bandit Pipeline; biased, for comparison
    snips     weights of whole pages; no number unless they are worth 50 rounds
    dr-sets   direct, corrected with weights of whole pages; as snips
    replay    of a policy that learns, on a log of uniformly drawn pages

Intervals are normal, by the bootstrap, and at any time. Normal and bootstrap intervals hold for one look at the log. Intervals at any time hold for all looks together, so you may evaluate a growing log every day and stop as soon as the interval is clear. They are two to four times as wide, and hold in small logs too. They need a policy that was fixed before the log began: the shows best and policy, which learn from the log, have none, and neither has the direct method. No published estimator for pages of a logit with an outside option was found.

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
    size = 3                          how many items (default: the placement's max_size)

` + aboutLog + "\n\n" + examples(
		"vitrine evaluate vitrine-data --policy new.toml",
		"vitrine evaluate vitrine-data --placement home --policy new.toml --policy top.toml --figure forest.svg",
		`vitrine evaluate vitrine-data --policy new.toml --utility '{kind = "quadratic"}' --format csv`,
	)
}

// Run evaluates the policies.
func (c evaluateCmd) Run(ctx context.Context, t terminal) (err error) {
	if c.Figure != "" {
		if _, err := formatOf(c.Figure); err != nil {
			return err
		}
	}
	var policies []*judged
	for _, path := range c.Policy {
		p, err := readJudged(path)
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
	log.progress.close()
	e := &evaluation{evaluateCmd: c, rounds: rounds}
	if err := e.run(ctx, policies); err != nil {
		if errors.Is(err, context.Canceled) {
			return errors.New("interrupted")
		}
		return err
	}
	if c.Figure != "" {
		if err := e.draw(); err != nil {
			return err
		}
	}
	var out []byte
	switch c.Format {
	case "csv":
		out, err = e.csv()
	case "json":
		out, err = e.json()
	default:
		out = e.text(log.Name)
	}
	if err != nil {
		return err
	}
	_, err = t.out.Write(out)
	return err
}

// evaluation is what the command found.
type evaluation struct {
	evaluateCmd
	rounds  *inspect.Rounds
	log     *offpolicy.Log
	results []result
}

// result is that of a policy: a report, or for one that learned while it was replayed an estimate.
type result struct {
	*judged
	report      *offpolicy.Report
	replay      *offpolicy.Estimate
	differences []offpolicy.Estimate // from the first policy with a report
	from        string               // its name
}

func (e *evaluation) run(ctx context.Context, policies []*judged) error {
	doc, err := settings.Parse("--utility", []byte("utility = "+e.Utility))
	if err != nil {
		return usageError{err}
	}
	table, _, err := doc.Root().Table("utility")
	if err != nil {
		return usageError{err}
	}
	model, _, err := settings.Pick(table, policy.Families, settings.Dims{Features: e.rounds.Config.Schema().Width()})
	if err != nil {
		return usageError{err}
	}
	o := offpolicy.Options{Model: model, Folds: e.Folds, Level: e.Level, Resamples: e.Resamples, Seed: e.Seed}
	if e.log, err = offpolicy.NewLog(ctx, e.rounds.Rounds, o); err != nil {
		return fmt.Errorf("placement %q: %w", e.rounds.Placement, err)
	}
	var first *offpolicy.Report
	for _, p := range policies {
		if err := ctx.Err(); err != nil {
			return err
		}
		r := result{judged: p}
		if p.Show == "replay" {
			if r.replay, err = p.replay(e, o); err != nil {
				return fmt.Errorf("%s: %w", p.path, err)
			}
			e.results = append(e.results, r)
			continue
		}
		pages, err := p.pages(ctx, e)
		if err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
		if r.report, err = e.log.Evaluate(p.Name, pages); err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
		if p.Show == "best" || p.Show == "policy" {
			r.report.Learned()
		}
		if first == nil {
			first = r.report
		} else if r.differences, err = r.report.Difference(first); err != nil {
			return err
		} else {
			r.from = first.Policy
		}
		e.results = append(e.results, r)
	}
	return nil
}

// logged returns what a page of the log has earned, and the standard error.
func (e *evaluation) logged() (mean, se float64) {
	earned := make([]float64, len(e.rounds.Rounds))
	for t := range earned {
		earned[t] = e.rounds.Rounds[t].Revenue()
	}
	mean, sd := stat.MeanStdDev(earned, nil)
	return mean, sd / math.Sqrt(float64(len(earned)))
}

func (e *evaluation) text(name string) []byte {
	var b bytes.Buffer
	mean, se := e.logged()
	fmt.Fprintf(&b, "%s, placement %q: %d decisions with an outcome. A page of the log earned %.4f ± %.4f.\n", name, e.rounds.Placement, len(e.rounds.Rounds), mean, se)
	for _, l := range e.rounds.Left {
		fmt.Fprintf(&b, "Left out: %d decisions, which %s.\n", l.Decisions, l.Reason)
	}
	if words := e.balance(); words != "" {
		fmt.Fprintln(&b, words)
	}
	for _, r := range e.results {
		fmt.Fprintf(&b, "\n%s: %s\n", r.Name, r.describe())
		if r.replay != nil {
			fmt.Fprintf(&b, "  In %.0f of %d rounds its page is that of the log.\n", r.replay.ESS, len(e.rounds.Rounds))
			e.table(&b, []offpolicy.Estimate{*r.replay})
			continue
		}
		for _, w := range r.report.Support.Words() {
			fmt.Fprintf(&b, "  %s\n", w)
		}
		fmt.Fprintf(&b, "  %s\n", r.report.AlarmWords())
		e.table(&b, r.report.Estimates)
		if r.differences != nil {
			fmt.Fprintf(&b, "\n%s minus %s, on the same rounds:\n", r.Name, r.from)
			e.table(&b, r.differences)
		}
	}
	return b.Bytes()
}

// balance says whether the pages of the log are like pages drawn by its laws; "" if the log records no laws.
func (e *evaluation) balance() string {
	b := e.log.Balance()
	if b.Rounds == 0 {
		return ""
	}
	if !b.Wrong() {
		return fmt.Sprintf("The items shown are like those that the log's laws draw: no feature is off by more than %.1f standard errors.", math.Abs(b.Z))
	}
	what, more := "larger pages were shown", "smaller pages were shown"
	for _, f := range e.rounds.Config.Features {
		if from, size, _ := e.rounds.Config.Schema().Columns(f.Name); b.Feature >= from && b.Feature < from+size {
			what, more = fmt.Sprintf("items with more of the feature %q were shown more often", f.Name), fmt.Sprintf("items with more of the feature %q were shown less often", f.Name)
		}
	}
	if b.Z < 0 {
		what = more
	}
	return fmt.Sprintf("Warning: the pages were not drawn as the log says: %s than its laws would, by %.1f standard errors. Estimates with weights are wrong.", what, math.Abs(b.Z))
}

// table writes estimates.
func (e *evaluation) table(b *bytes.Buffer, list []offpolicy.Estimate) {
	var rows bytes.Buffer
	w := tabwriter.NewWriter(&rows, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n  method\tvalue\tstd. error\t%g %% normal\tbootstrap\tat any time\teffective n\n", 100*e.Level)
	for _, s := range list {
		if s.None != "" {
			fmt.Fprintf(w, "  %s\t–\t%s\n", s.Method, s.None)
			continue
		}
		ess := ""
		if !math.IsNaN(s.ESS) {
			ess = fmt.Sprintf("%.0f", s.ESS)
		}
		fmt.Fprintf(w, "  %s\t%.4f\t%.4f\t%s\t%s\t%s\t%s\n", s.Method, s.Value, s.StandardError, interval(s.Normal), interval(s.Bootstrap), interval(s.Anytime), ess)
	}
	w.Flush()
	for line := range strings.Lines(rows.String()) {
		fmt.Fprintln(b, strings.TrimRight(line, " \n"))
	}
}

func interval(i offpolicy.Interval) string {
	if math.IsNaN(i.Low) {
		return "–"
	}
	return fmt.Sprintf("%.4f … %.4f", i.Low, i.High)
}

// each visits all estimates.
func (e *evaluation) each(visit func(policy, minus string, s offpolicy.Estimate)) {
	for _, r := range e.results {
		if r.replay != nil {
			visit(r.Name, "", *r.replay)
			continue
		}
		for _, s := range r.report.Estimates {
			visit(r.Name, "", s)
		}
		for _, s := range r.differences {
			visit(r.Name, r.from, s)
		}
	}
}

func (e *evaluation) csv() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Write([]string{"policy", "minus", "method", "value", "standard_error", "normal_low", "normal_high", "bootstrap_low", "bootstrap_high", "anytime_low", "anytime_high", "effective_rounds", "none"})
	e.each(func(policy, minus string, s offpolicy.Estimate) {
		row := []string{policy, minus, s.Method}
		for _, v := range []float64{s.Value, s.StandardError, s.Normal.Low, s.Normal.High, s.Bootstrap.Low, s.Bootstrap.High, s.Anytime.Low, s.Anytime.High, s.ESS} {
			text := ""
			if !math.IsNaN(v) {
				text = decimal(v)
			}
			row = append(row, text)
		}
		w.Write(append(row, s.None))
	})
	w.Flush()
	return b.Bytes(), w.Error()
}

func (e *evaluation) json() ([]byte, error) {
	type estimate struct {
		Policy    string      `json:"policy"`
		Minus     string      `json:"minus,omitzero"`
		Method    string      `json:"method"`
		Value     *float64    `json:"value"`
		Error     *float64    `json:"standard_error"`
		Normal    *[2]float64 `json:"normal"`
		Bootstrap *[2]float64 `json:"bootstrap"`
		Anytime   *[2]float64 `json:"anytime"`
		ESS       *float64    `json:"effective_rounds"`
		None      string      `json:"none,omitzero"`
	}
	type support struct {
		Policy string   `json:"policy"`
		Words  []string `json:"support"`
		Alarm  *float64 `json:"alarm"`
	}
	number := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	pair := func(i offpolicy.Interval) *[2]float64 {
		if math.IsNaN(i.Low) {
			return nil
		}
		return &[2]float64{i.Low, i.High}
	}
	mean, se := e.logged()
	all := struct {
		Placement string     `json:"placement"`
		Rounds    int        `json:"decisions"`
		Logged    float64    `json:"logged_revenue"`
		Error     float64    `json:"logged_standard_error"`
		Level     float64    `json:"level"`
		Balance   string     `json:"balance,omitzero"`
		Support   []support  `json:"policies"`
		Estimates []estimate `json:"estimates"`
	}{Placement: e.rounds.Placement, Rounds: len(e.rounds.Rounds), Logged: mean, Error: se, Level: e.Level, Balance: e.balance()}
	for _, r := range e.results {
		if r.report != nil {
			all.Support = append(all.Support, support{r.Name, append(r.report.Support.Words(), r.report.AlarmWords()), number(r.report.Alarm)})
		}
	}
	e.each(func(policy, minus string, s offpolicy.Estimate) {
		all.Estimates = append(all.Estimates, estimate{policy, minus, s.Method, number(s.Value), number(s.StandardError), pair(s.Normal), pair(s.Bootstrap), pair(s.Anytime), number(s.ESS), s.None})
	})
	text, err := json.Marshal(all, jsontext.Multiline(true))
	return append(text, '\n'), err
}

// draw draws the values and the page of the log, and then the differences, with normal intervals.
func (e *evaluation) draw() error {
	format, err := formatOf(e.Figure)
	if err != nil {
		return err
	}
	mean, se := e.logged()
	f := figure.Forest{Title: "revenue of a page", Axis: "revenue", Reference: mean,
		Subtitle: fmt.Sprintf("%d decisions of %s, normal %g %% intervals; the line is what the log earned", len(e.rounds.Rounds), e.rounds.Placement, 100*e.Level)}
	z := math.Sqrt2 * math.Erfinv(e.Level)
	f.Rows = append(f.Rows, figure.ForestRow{Name: "as logged", Value: mean, Low: mean - z*se, High: mean + z*se})
	e.each(func(policy, minus string, s offpolicy.Estimate) {
		if minus == "" {
			f.Rows = append(f.Rows, figure.ForestRow{Name: policy + ", " + s.Method, Value: s.Value, Low: s.Normal.Low, High: s.Normal.High})
		}
	})
	return figure.Write(strings.TrimSuffix(e.Figure, "."+format.Name), f, format)
}
