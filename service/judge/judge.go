// Package judge estimates the earnings of other policies from a log of the service or of another program.
package judge

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/bandit/policy"
	"vitrine/internal/settings"
	"vitrine/offpolicy"
	"vitrine/service/inspect"
)

// Options configure an evaluation.
type Options struct {
	Utility   string  // choice model's family, as a TOML value
	Level     float64 // confidence level of the intervals
	Folds     int     // parts of the log; a model fitted on the others judges each
	Resamples int     // number of bootstrap resamples
	Seed      uint64  // seeds the bootstrap and drawn pages

	// Progress, if set, is called from time to time while policies learn.
	Progress func(stage string, done, total int)
}

// Verdict holds the results for all policies.
type Verdict struct {
	Rounds  *inspect.Rounds
	Results []Result

	options  Options
	log      *offpolicy.Log
	mean, se float64 // of the earnings per page
}

// Result is the result for one policy: a report, or just an estimate if the policy learned during the replay.
type Result struct {
	*Policy
	Report      *offpolicy.Report
	replay      *offpolicy.Estimate
	differences []offpolicy.Estimate // differences to the first policy with a report
	from        string               // the first policy's name
}

// OptionsError is an error in the options.
type OptionsError struct{ error }

// Run judges the policies on the rounds.
func Run(ctx context.Context, rounds *inspect.Rounds, policies []*Policy, o Options) (*Verdict, error) {
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	switch { // which ask offpolicy for its defaults
	case o.Level == 0:
		return nil, OptionsError{errors.New("the level is 0: want a number between 0 and 1")}
	case o.Folds < 2:
		return nil, OptionsError{fmt.Errorf("%d folds: want at least 2", o.Folds)}
	case o.Resamples == 0:
		return nil, OptionsError{errors.New("0 resamples: want at least 1")}
	case o.Folds > len(rounds.Rounds):
		return nil, fmt.Errorf("placement %q has too few decisions with an outcome: --folds %d needs at least %[2]d, and "+
			"there are %d", rounds.Placement, o.Folds, len(rounds.Rounds))
	}
	e := &Verdict{Rounds: rounds, options: o}
	doc, err := settings.Parse("--utility", []byte("utility = "+o.Utility))
	if err != nil {
		return nil, OptionsError{fmt.Errorf("%w: want TOML, such as {kind = \"quadratic\"}", err)}
	}
	table, _, err := doc.Root().Table("utility")
	if err != nil {
		return nil, OptionsError{err}
	}
	model, _, err := settings.Pick(table, policy.Families, settings.Dims{Features: rounds.Config.Schema().Width()})
	if err != nil {
		return nil, OptionsError{err}
	}
	how := offpolicy.Options{Model: model, Folds: o.Folds, Level: o.Level, Resamples: o.Resamples, Seed: o.Seed}
	if e.log, err = offpolicy.NewLog(ctx, rounds.Rounds, how); err != nil {
		return nil, fmt.Errorf("placement %q: %w", rounds.Placement, err)
	}
	e.mean, e.se = offpolicy.Logged(rounds.Rounds)
	var first *offpolicy.Report
	for _, p := range policies {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := Result{Policy: p}
		if p.Show == "replay" {
			if r.replay, err = p.replay(ctx, e, how); err != nil {
				return nil, fmt.Errorf("%s: %w", p.path, err)
			}
			e.Results = append(e.Results, r)
			continue
		}
		pages, err := p.pages(ctx, e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.path, err)
		}
		if r.Report, err = e.log.Evaluate(p.Name, pages); err != nil {
			return nil, fmt.Errorf("%s: %w", p.path, err)
		}
		if p.Show == "best" || p.Show == "policy" {
			r.Report.Learned()
		}
		if first == nil {
			first = r.Report
		} else if r.differences, err = r.Report.Difference(first); err != nil {
			return nil, err
		} else {
			r.from = first.Policy
		}
		e.Results = append(e.Results, r)
	}
	return e, nil
}

// Logged returns the log's mean earnings per page, with a normal interval: only the mean without a standard error.
func (e *Verdict) Logged() (mean float64, i offpolicy.Interval) {
	if math.IsNaN(e.se) {
		return e.mean, offpolicy.Interval{Low: e.mean, High: e.mean}
	}
	z := math.Sqrt2 * math.Erfinv(e.options.Level)
	return e.mean, offpolicy.Interval{Low: e.mean - z*e.se, High: e.mean + z*e.se}
}

// Text returns the verdict for people to read; name is the log's.
func (e *Verdict) Text(name string) []byte {
	var b bytes.Buffer
	d := e.decimals()
	fmt.Fprintf(&b, "%s, placement %q: %d decisions with an outcome. A page of the log earned %.*f", name,
		e.Rounds.Placement, len(e.Rounds.Rounds), d, e.mean)
	if !math.IsNaN(e.se) {
		fmt.Fprintf(&b, " ± %.*f", d, e.se)
	}
	fmt.Fprintln(&b, ".")
	if takes, se := e.log.Takes(); takes > 1 {
		fmt.Fprintf(&b, "A visitor who takes anything takes %.2f ± %.2f items. Estimates assume that for every page.\n",
			takes, se)
	}
	if n := e.log.Shoppers(); n > 0 {
		fmt.Fprintf(&b, "Standard errors and the bootstrap treat all decisions of one shopper as one observation: %d in all.\n",
			n)
	}
	if !slices.ContainsFunc(e.Rounds.Rounds, func(r offpolicy.Round) bool { return r.Shopper != "" }) {
		fmt.Fprintln(&b, "The log knows no shoppers: intervals assume independent decisions, and are too narrow if few return often.")
	}
	for _, l := range e.Rounds.Left {
		fmt.Fprintf(&b, "Left out: %d decisions, which %s.\n", l.Decisions, l.Reason)
	}
	if words := e.balance(); words != "" {
		fmt.Fprintln(&b, words)
	}
	if words := e.rules(); words != "" {
		fmt.Fprintln(&b, words)
	}
	for _, r := range e.Results {
		fmt.Fprintf(&b, "\n%s: %s\n", r.Name, r.describe())
		if r.replay != nil {
			fmt.Fprintf(&b, "  In %.0f of %d rounds its page is that of the log.\n", r.replay.ESS, len(e.Rounds.Rounds))
			e.table(&b, []offpolicy.Estimate{*r.replay})
			continue
		}
		for _, w := range r.Report.Support.Words() {
			fmt.Fprintf(&b, "  %s\n", w)
		}
		fmt.Fprintf(&b, "  %s\n", r.Report.AlarmWords())
		e.table(&b, r.Report.Estimates)
		if r.differences != nil {
			fmt.Fprintf(&b, "\n%s minus %s, on the same rounds:\n", r.Name, r.from)
			e.table(&b, r.differences)
		}
	}
	return b.Bytes()
}

// rules says that the judged pages ignore rules, or "" without rules of the placement and the requests.
func (e *Verdict) rules() string {
	c := e.Rounds.Config
	if c.MinSize > 0 || c.Limits != nil || c.Capacity != nil || c.Include != nil || c.Exclude != nil || e.Rounds.Ruled {
		return "The judged pages ignore the placement's and the requests' rules; with them, a policy may earn less."
	}
	return ""
}

// balance says whether the logged pages resemble pages drawn by their recorded probabilities, or "" if the log records
// no probabilities. A log of only shown items cannot say.
func (e *Verdict) balance() string {
	if !slices.ContainsFunc(e.Rounds.Rounds, func(r offpolicy.Round) bool { return len(r.Shown) < len(r.Items) }) {
		return "Warning: the log lists no item that was not shown, so it tells nothing about other pages."
	}
	b := e.log.Balance()
	if b.Rounds == 0 {
		return ""
	}
	if !b.Wrong() {
		return fmt.Sprintf("The items shown are like those that the log's laws draw: no feature is off by more "+
			"than %.1f standard errors.", math.Abs(b.Z))
	}
	what, more := "larger pages were shown", "smaller pages were shown"
	for _, f := range e.Rounds.Config.Features {
		if from, size, _ := e.Rounds.Config.Schema().Columns(f.Name); b.Feature >= from && b.Feature < from+size {
			what, more = fmt.Sprintf("items with more of the feature %q were shown more often",
				f.Name), fmt.Sprintf("items with more of the feature %q were shown less often", f.Name)
		}
	}
	if b.Z < 0 {
		what = more
	}
	return fmt.Sprintf("Warning: the pages were not drawn as the log says: %s than its laws would, by %.1f "+
		"standard errors. Estimates with weights are wrong.", what, math.Abs(b.Z))
}

func (e *Verdict) table(b *bytes.Buffer, list []offpolicy.Estimate) {
	var rows bytes.Buffer
	d := e.decimals()
	w := tabwriter.NewWriter(&rows, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n  method\tvalue\tstd. error\t%g%% normal\tbootstrap\tat any time\teffective n\n",
		100*e.options.Level)
	for _, s := range list {
		if s.None != "" {
			fmt.Fprintf(w, "  %s\t–\t%s\n", s.Method, s.None)
			continue
		}
		ess, se := "", "–"
		if !math.IsNaN(s.ESS) {
			ess = fmt.Sprintf("%.0f", s.ESS)
		}
		if !math.IsNaN(s.StandardError) {
			se = fmt.Sprintf("%.*f", d, s.StandardError)
		}
		fmt.Fprintf(w, "  %s\t%.*f\t%s\t%s\t%s\t%s\t%s\n", s.Method, d, s.Value, se,
			interval(s.Normal, d), interval(s.Bootstrap, d), interval(s.Anytime, d), ess)
	}
	w.Flush()
	for line := range strings.Lines(rows.String()) {
		fmt.Fprintln(b, strings.TrimRight(line, " \n"))
	}
}

// decimals returns the number of decimals of amounts: four, or more if a page earns less than 0.1.
func (e *Verdict) decimals() int {
	if e.mean > 0 {
		return max(4, 3-int(math.Floor(math.Log10(e.mean))))
	}
	return 4
}

func interval(i offpolicy.Interval, decimals int) string {
	if math.IsNaN(i.Low) {
		return "–"
	}
	return fmt.Sprintf("%.*f … %.*f", decimals, i.Low, decimals, i.High)
}

// Each visits all estimates; minus names the policy that a difference is taken from.
func (e *Verdict) Each(visit func(policy, minus string, s offpolicy.Estimate)) {
	for _, r := range e.Results {
		if r.replay != nil {
			visit(r.Name, "", *r.replay)
			continue
		}
		for _, s := range r.Report.Estimates {
			visit(r.Name, "", s)
		}
		for _, s := range r.differences {
			visit(r.Name, r.from, s)
		}
	}
}

// CSV returns one row per estimate.
func (e *Verdict) CSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Write([]string{"policy", "minus", "method", "value", "standard_error", "normal_low", "normal_high",
		"bootstrap_low", "bootstrap_high", "anytime_low", "anytime_high", "effective_rounds", "none"})
	e.Each(func(policy, minus string, s offpolicy.Estimate) {
		row := []string{policy, minus, s.Method}
		for _, v := range []float64{s.Value, s.StandardError, s.Normal.Low, s.Normal.High, s.Bootstrap.Low,
			s.Bootstrap.High, s.Anytime.Low, s.Anytime.High, s.ESS} {
			text := ""
			if !math.IsNaN(v) {
				text = strconv.FormatFloat(v, 'g', 10, 64)
			}
			row = append(row, text)
		}
		w.Write(append(row, s.None))
	})
	w.Flush()
	return b.Bytes(), w.Error()
}

// JSON returns the verdict as JSON.
func (e *Verdict) JSON() ([]byte, error) {
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
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	pair := func(i offpolicy.Interval) *[2]float64 {
		if number(i.Low) == nil || number(i.High) == nil {
			return nil
		}
		return &[2]float64{i.Low, i.High}
	}
	all := struct {
		Placement string   `json:"placement"`
		Rounds    int      `json:"decisions"`
		Logged    float64  `json:"logged_revenue"`
		Error     *float64 `json:"logged_standard_error"`
		Shoppers  int      `json:"shoppers,omitzero"`
		Takes     float64  `json:"takes,omitzero"`
		TakesSE   float64  `json:"takes_standard_error,omitzero"`
		Level     float64  `json:"level"`
		Balance   string   `json:"balance,omitzero"`
		Rules     string   `json:"rules,omitzero"`

		Left      []inspect.Left `json:"left_out,omitempty"`
		Support   []support      `json:"policies"`
		Estimates []estimate     `json:"estimates"`
	}{Placement: e.Rounds.Placement, Rounds: len(e.Rounds.Rounds), Logged: e.mean, Error: number(e.se), Level: e.options.Level,
		Shoppers: e.log.Shoppers(), Balance: e.balance(), Rules: e.rules(), Left: e.Rounds.Left}
	if takes, se := e.log.Takes(); takes > 1 {
		all.Takes, all.TakesSE = takes, se
	}
	for _, r := range e.Results {
		if r.Report != nil {
			all.Support = append(all.Support, support{r.Name, append(r.Report.Support.Words(), r.Report.AlarmWords()),
				number(r.Report.Alarm)})
		}
	}
	e.Each(func(policy, minus string, s offpolicy.Estimate) {
		all.Estimates = append(all.Estimates, estimate{policy, minus, s.Method, number(s.Value),
			number(s.StandardError), pair(s.Normal), pair(s.Bootstrap), pair(s.Anytime), number(s.ESS), s.None})
	})
	text, err := json.Marshal(all, jsontext.Multiline(true))
	return append(text, '\n'), err
}
