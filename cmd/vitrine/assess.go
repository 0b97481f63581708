package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/offpolicy"
	"vitrine/service/decision"
	"vitrine/service/importer"
	"vitrine/service/inspect"
	"vitrine/service/setup"
)

type assessCmd struct {
	Log       string  `arg:"" help:"Log of another program: a table in CSV, TSV or Parquet, JSON Lines, or Vowpal Wabbit's text, JSON or dsjson; text may be compressed with gzip or zstd."`
	Mapping   string  `help:"TOML file that maps the log's columns to decisions, in place of the mapping that is found." placeholder:"FILE"`
	Placement string  `help:"The placement in the printed command (default: home)." default:"home" placeholder:"NAME"`
	To        string  `help:"The data directory in the printed command (default: vitrine-data)." default:"vitrine-data" placeholder:"DIR"`
	Out       string  `help:"Write the mapping and the placement to mapping.toml and placement.json in this directory." placeholder:"DIR"`
	Decisions int     `help:"Judge policies on at most this many decisions (default: 10000)." default:"10000" placeholder:"N"`
	Level     float64 `help:"Confidence level of the intervals (default: 0.95)." default:"0.95" placeholder:"SHARE"`
	Seed      uint64  `help:"Seed of drawn pages (default: 1)." default:"1" placeholder:"N"`
	JSON      bool    `help:"Print JSON." name:"json"`
}

// Help is the tail of the command's help.
func (assessCmd) Help() string {
	return `It recognizes the format and the columns of the log, describes the decisions and their gaps, estimates the earnings of other policies, and prints the mapping, the placement and the command that starts the placement from the log. If you must supply something by hand, it names it. Files are written only with --out.

It reads tables with a row for each item (columns of any names, unsorted, several items taken), a line for each page with lists of items, Open Bandit's csv next to its item_context.csv, Azure Personalizer's logs, tables of events, and Vowpal Wabbit's contextual bandits and slots. The columns are found by their names and values: read the notes under "Assumed", and if one is wrong, correct the mapping and pass it with --mapping.

The whole log is read for the counts, in bounded memory. Policies are judged on the first decisions, by the methods of vitrine evaluate: if the log says how its pages were drawn, by dr-pi or dr-sets, and otherwise by direct, whose model the log cannot check.

` + examples(
		"vitrine assess clicks.csv.gz",
		"vitrine assess personalizer.json --out start",
		"vitrine assess sessions.jsonl --mapping sessions.toml --json",
	)
}

// assessment is what the command found.
type assessment struct {
	Log       string          `json:"log"`
	What      string          `json:"format"`
	Holds     [][2]string     `json:"holds,omitempty"`
	Notes     []string        `json:"notes,omitempty"`
	Problems  []string        `json:"problems,omitempty"`
	Needs     []string        `json:"needs,omitempty"`
	Decisions int             `json:"decisions,omitzero"`
	Judged    int             `json:"judged_decisions,omitzero"`
	Values    []assessedValue `json:"policies,omitempty"`
	Unknown   string          `json:"not_estimable,omitzero"`
	Advice    []string        `json:"to_log,omitempty"`
	Mapping   string          `json:"mapping,omitzero"`
	Placement jsontext.Value  `json:"placement,omitempty"`
	Command   string          `json:"command,omitzero"`
}

// assessedValue is what a page of a policy earns.
type assessedValue struct {
	Policy string  `json:"policy"`
	Method string  `json:"method"`
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Words  string  `json:"words,omitzero"`
}

// Run assesses the log.
func (c assessCmd) Run(ctx context.Context, t terminal) error {
	a := &assessment{Log: c.Log}
	err := c.assess(ctx, t, a)
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}
	if c.JSON {
		text, err := json.Marshal(a, jsontext.Multiline(true))
		if err != nil {
			return err
		}
		_, err = t.out.Write(append(text, '\n'))
		return err
	}
	_, err = t.out.Write(a.text(c))
	return err
}

func (c assessCmd) assess(ctx context.Context, t terminal, a *assessment) error {
	switch {
	case c.Log == "-":
		return errors.New("assess reads a log several times: save it to a file")
	case !(c.Level > 0 && c.Level < 1):
		return usageError{fmt.Errorf("--level is %v: want a number between 0 and 1", c.Level)}
	case c.Decisions < fewest:
		return usageError{fmt.Errorf("--decisions is %d: a policy is judged on at least %d", c.Decisions, fewest)}
	}
	found, err := importer.Recognize(ctx, c.Log)
	if err != nil {
		return err
	}
	if c.Mapping != "" {
		m, err := importer.ReadMapping(c.Mapping)
		if err != nil {
			return err
		}
		m.Format = cmp.Or(m.Format, found.Mapping.Format)
		*found = importer.Recognized{What: found.What, Mapping: m}
	}
	a.What, a.Notes, a.Needs = found.What, found.Notes, found.Needs
	if a.Needs != nil {
		return nil
	}
	log, err := importer.Open(ctx, c.Log, found.Mapping)
	if err != nil {
		return err
	}
	defer log.Close()
	bar := &stages{w: t.err, name: c.Log}
	defer bar.close()
	survey, err := log.Survey(ctx, func(done, total int64) { bar.report("reading", int(done), int(total)) })
	bar.close()
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.Problems = append(a.Problems, fmt.Sprintf("The log cannot be read whole: %v.", err))
		a.Needs = append(a.Needs, "a log without this error, or a mapping (--mapping) that reads it")
		return nil
	}
	if survey.Decisions == 0 {
		a.describe(survey)
		a.Needs = append(a.Needs, "decisions: every one is left out")
		return nil
	}
	mapped := found.Mapping.Features
	config, notes, err := found.Propose(survey)
	a.Notes = append(a.Notes, notes...)
	a.describe(survey)
	if c.Mapping != "" && mapped != nil {
		found.Mapping.Features = mapped
	}
	if err != nil {
		a.Needs = append(a.Needs, fmt.Sprintf("features of the items, or ids that come again: %v", err))
		return nil
	}
	placement, err := setup.Parse(config)
	if err != nil {
		return err
	}
	items, users := placement.FeatureNames()
	a.hold("features", "of items: %s; of the user: %s", cmp.Or(strings.Join(items, ", "), "none"), cmp.Or(strings.Join(users, ", "), "none"))
	if err := c.start(a, found, config); err != nil {
		return err
	}
	if err := c.judge(ctx, a, log, survey, placement); err != nil {
		return err
	}
	a.advise(survey)
	return nil
}

func (a *assessment) hold(what, format string, args ...any) {
	a.Holds = append(a.Holds, [2]string{what, fmt.Sprintf(format, args...)})
}

// describe says what the log holds.
func (a *assessment) describe(v *importer.Survey) {
	hold := a.hold
	a.Decisions = v.Decisions
	n := max(v.Decisions, 1)
	share := func(k int) string { return fmt.Sprintf("%.3g %%", 100*float64(k)/float64(n)) }
	hold("decisions", "%d, with an item taken in %d (%s)", v.Decisions, v.Taken, share(v.Taken))
	if v.Partial > 0 {
		hold("rewards", "between 0 and 1 in %d of these: each is the probability that the item was taken", v.Partial)
	}
	if v.Decisions > 0 {
		hold("items shown", "%s of %s candidates; %d different items", spread(v.Shown), spread(v.Items), v.Different)
	}
	switch {
	case v.Unshown == 0:
		hold("candidates", "only the items that were shown")
	case v.Unshown < v.Decisions:
		hold("candidates", "%s of decisions list items that were not shown", share(v.Unshown))
	default:
		hold("candidates", "every decision lists items that were not shown")
	}
	switch {
	case v.Laws > 0:
		hold("propensities", "how the page was drawn, in %s of decisions", share(v.Laws))
	case v.Propensities > 0:
		hold("propensities", "the probability of the page, in %s of decisions", share(v.Propensities))
	default:
		hold("propensities", "none")
	}
	if v.Revenue.N > 0 {
		hold("values", "a revenue from %.4g to %.4g for %d items", v.Revenue.Least, v.Revenue.Most, v.Revenue.N)
	} else {
		hold("values", "none: an item taken counts as 1")
	}
	if v.Times.N > 0 {
		day := func(at int64) string { return time.Unix(0, at).UTC().Format("2006-01-02 15:04") }
		hold("times", "%s to %s", day(v.Times.Least), day(v.Times.Most))
	} else {
		hold("times", "none: an import takes the present time")
	}
	if v.Shown.Most > 1 {
		var list []string
		for k, p := range v.Positions[:min(5, len(v.Positions))] {
			list = append(list, fmt.Sprintf("%d: %.3g %%", k+1, 100*float64(p.Taken)/float64(p.Shown)))
		}
		hold("taken by position", "%s", strings.Join(list, ", "))
	}
	a.doubt(v)
}

// doubt says what is left out of the log, and what looks wrong.
func (a *assessment) doubt(v *importer.Survey) {
	for _, reason := range slices.Sorted(maps.Keys(v.Skipped)) {
		a.Problems = append(a.Problems, fmt.Sprintf("%d decisions are left out: they %s.", v.Skipped[reason], reason))
	}
	if v.Sorted {
		a.Notes = append(a.Notes, "Rows of a decision are apart: the table is sorted, in a temporary file.")
	}
	if v.Decisions > 0 && v.Taken == v.Decisions && v.Shown.Most > 1 {
		a.Problems = append(a.Problems, "An item was taken on every page: pages on which nothing was taken are missing, or were never logged. How often nothing is taken is then unknown, and values are too large.")
	}
	if v.Taken == 0 && v.Decisions > 0 {
		a.Problems = append(a.Problems, "Nothing was ever taken: the outcome may be another column.")
	}
	if len(v.Positions) > 2 && v.Positions[0].Taken > 3*(v.Positions[1].Taken+1) && v.Positions[0].Taken > 20 {
		a.Problems = append(a.Problems, "The first position is taken far more often than the second: the order matters, and the estimates are of pages in any order.")
	}
}

// spread describes the numbers of decisions.
func spread(r importer.Range[int]) string {
	if r.Least == r.Most {
		return fmt.Sprint(r.Most)
	}
	return fmt.Sprintf("%d to %d (mean %.3g)", r.Least, r.Most, float64(r.Sum)/float64(r.N))
}

// start sets the files and the command that start a placement.
func (c assessCmd) start(a *assessment, found *importer.Recognized, config []byte) error {
	m := *found.Mapping
	if c.Out != "" {
		if err := os.MkdirAll(c.Out, 0o755); err != nil {
			return err
		}
		if m.Items != "" && !filepath.IsAbs(m.Items) {
			from, err := filepath.Rel(c.Out, m.Items)
			if err != nil {
				return err
			}
			m.Items = from
		}
	}
	a.Mapping, a.Placement = m.Text(), jsontext.Value(config)
	mapping, placement := filepath.Join(c.Out, "mapping.toml"), filepath.Join(c.Out, "placement.json")
	a.Command = fmt.Sprintf("vitrine import %s --placement %s --create %s --mapping %s --to %s", shellWord(c.Log), shellWord(c.Placement), shellWord(placement), shellWord(mapping), shellWord(c.To))
	if c.Out == "" {
		return nil
	}
	return errors.Join(os.WriteFile(mapping, []byte(a.Mapping), 0o644), os.WriteFile(placement, config, 0o644))
}

// shellWord quotes a word for a shell if it has to be.
func shellWord(w string) string {
	if w != "" && !strings.ContainsFunc(w, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-/:+@", c))
	}) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// fewest decisions that a policy is judged on.
const fewest = 30

var errEnough = errors.New("enough")

// judge estimates what other policies would have earned.
func (c assessCmd) judge(ctx context.Context, a *assessment, log *importer.Log, v *importer.Survey, placement *setup.Config) error {
	rounds := &inspect.Rounds{Placement: c.Placement, Config: placement}
	numbers := 0
	_, err := log.Read(ctx, c.Placement, placement, func(d *decision.Imported) error {
		if len(rounds.Rounds) == c.Decisions || numbers > maxNumbers {
			return errEnough
		}
		if err := rounds.ImportRound(d); err != nil {
			return fmt.Errorf("decision %q: %w", d.Request.Decision, err)
		}
		numbers += len(d.Request.Items) * placement.Schema().Width()
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.Problems = append(a.Problems, fmt.Sprintf("The log does not fit the placement: %v.", err))
		a.Unknown = "the log could not be read for the placement"
		return nil
	}
	a.Judged = len(rounds.Rounds)
	if a.Judged < fewest {
		a.Unknown = fmt.Sprintf("%d decisions are needed, and the log holds %d", fewest, a.Judged)
		return nil
	}
	e := &evaluation{evaluateCmd: evaluateCmd{Utility: "{kind = \"linear\", intercept = true}", Level: c.Level, Folds: 5, Resamples: 200, Seed: c.Seed}, rounds: rounds}
	mean, se := e.logged()
	z := math.Sqrt2 * math.Erfinv(c.Level)
	a.Values = []assessedValue{{"as logged", "mean", mean, mean - z*se, mean + z*se, "what the log earned"}}
	switch {
	case v.Unshown == 0:
		a.Unknown = "the log lists only the items that were shown, so nothing is known about the others"
		return nil
	case v.Taken == 0:
		a.Unknown = "nothing was ever taken"
		return nil
	}
	policies := []*judged{{Name: "uniform", Show: "uniform", exact: v.Shown.Least == v.Shown.Most}, {Name: "best", Show: "best"}}
	if v.Revenue.N > 0 {
		policies = append(policies, &judged{Name: "revenue", Show: "revenue"})
	}
	if err := e.run(ctx, policies); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.Unknown = err.Error()
		return nil
	}
	for _, r := range e.results {
		a.Values = append(a.Values, assessedOf(r.report, r.describe()))
		if !math.IsNaN(r.report.Alarm) && math.Abs(r.report.Alarm) > 2 {
			a.Problems = append(a.Problems, r.Name+": "+r.report.AlarmWords())
		}
		for _, w := range r.report.Support.Words() {
			if strings.Contains(w, " instead of ") {
				a.Problems = append(a.Problems, r.Name+": "+strings.Replace(w, "Their mean", "The mean of the item weights", 1))
			}
		}
	}
	if words := e.balance(); strings.HasPrefix(words, "Warning: ") {
		a.Problems = append(a.Problems, strings.TrimPrefix(words, "Warning: "))
	}
	return nil
}

// maxNumbers bounds the numbers of the rounds in memory: 256 MB.
const maxNumbers = 1 << 25

// fewestEffective decisions let the log correct the model.
const fewestEffective = 10

// assessedOf returns the estimate of a report that the log checks best.
func assessedOf(r *offpolicy.Report, what string) assessedValue {
	best, words := r.Estimate("direct"), "the model alone: nothing in the log checks it"
	for _, method := range []string{"dr-pi", "dr-sets"} {
		s := r.Estimate(method)
		if s.None != "" {
			continue
		}
		if words = fmt.Sprintf("the model: the log checks it with %.0f effective decisions only", s.ESS); s.ESS >= fewestEffective {
			best, words = s, fmt.Sprintf("the model, corrected by the log; %.0f effective decisions", s.ESS)
		}
		break
	}
	return assessedValue{r.Policy, best.Method, best.Value, best.Normal.Low, best.Normal.High, what + "; " + words}
}

// advise says what would have to be logged.
func (a *assessment) advise(v *importer.Survey) {
	say := func(format string, args ...any) { a.Advice = append(a.Advice, fmt.Sprintf(format, args...)) }
	if v.Unshown < v.Decisions {
		say("all candidates with their features, not only the items that were shown")
	}
	if v.Laws == 0 {
		say("how each page was drawn: the probability of the page, and for pages of one item that of every item. Show random pages, or a random item in a slot, in a share of requests. If every page was drawn uniformly already, say so in the mapping: [law] draw = \"pages\", share = 1, size = %d", v.Shown.Most)
	}
	if v.Revenue.N == 0 {
		say("the revenue of each item, if items differ in it")
	}
	if v.Decisions > 0 && v.Taken == v.Decisions && v.Shown.Most > 1 {
		say("pages on which nothing was taken")
	}
}

// wrapped breaks lines between words at 120 columns, the later ones with an indent.
func wrapped(text, indent string) string {
	var b strings.Builder
	column := len(indent)
	for i, word := range strings.FieldsFunc(text, func(c rune) bool { return c == ' ' }) {
		switch {
		case i == 0:
		case column+len(word) > 118:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
		}
		b.WriteString(strings.ReplaceAll(word, "\n", "\n"+indent))
		if column += len(word) + 1; strings.Contains(word, "\n") {
			column = len(indent) + len(word[strings.LastIndexByte(word, '\n'):])
		}
	}
	return b.String()
}

// text prints the assessment for a person.
func (a *assessment) text(c assessCmd) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n", a.Log, a.What)
	if len(a.Holds) > 0 {
		fmt.Fprintln(&b)
		w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
		for _, h := range a.Holds {
			fmt.Fprintf(w, "  %s\t%s\n", h[0], h[1])
		}
		w.Flush()
	}
	list := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s\n", title)
		for _, line := range lines {
			fmt.Fprintf(&b, "  - %s\n", wrapped(line, "    "))
		}
	}
	list("Assumed", a.Notes)
	list("Problems", a.Problems)
	if len(a.Needs) > 0 {
		list("The log cannot be imported as it is. Supply:", a.Needs)
		return b.Bytes()
	}
	fmt.Fprintf(&b, "\nWhat a page earns")
	if a.Values != nil {
		first := ""
		if a.Judged < a.Decisions {
			first = "the first "
		}
		fmt.Fprintf(&b, ", with %g %% intervals (%s%d decisions)", 100*c.Level, first, a.Judged)
	}
	fmt.Fprint(&b, "\n\n")
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, v := range a.Values {
		fmt.Fprintf(w, "  %s\t%.4f\t%.4f … %.4f\t%s\t%s\n", v.Policy, v.Value, v.Low, v.High, v.Method, v.Words)
	}
	w.Flush()
	if a.Unknown != "" {
		fmt.Fprintf(&b, "  %s\n", wrapped("Other policies cannot be judged: "+a.Unknown+".", "  "))
	}
	list("To judge other policies with certainty, log", a.Advice)
	where := "Start a placement with these two files, mapping.toml and placement.json (--out writes them), and the command"
	if c.Out != "" {
		where = fmt.Sprintf("Start a placement with these two files, now in %s, and the command", c.Out)
	}
	fmt.Fprintf(&b, "\n%s\n\n  %s\n", where, a.Command)
	for _, text := range []string{a.Mapping, string(a.Placement)} {
		fmt.Fprintln(&b)
		for line := range strings.Lines(text) {
			fmt.Fprintln(&b, strings.TrimRight("    "+line, " \n"))
		}
	}
	return b.Bytes()
}
