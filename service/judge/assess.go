package judge

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

	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/hint"
	"vitrine/internal/replace"
	"vitrine/offpolicy"
	"vitrine/service/importer"
	"vitrine/service/inspect"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// Assessment describes a log, its evidence about other policies, and how to start a placement from it.
type Assessment struct {
	Log       string         `json:"log"`
	What      string         `json:"format"`
	Holds     [][2]string    `json:"holds,omitempty"`
	Notes     []string       `json:"notes,omitempty"`
	Problems  []string       `json:"problems,omitempty"`
	Needs     []string       `json:"needs,omitempty"`
	Decisions int            `json:"decisions,omitzero"`
	Judged    int            `json:"judged_decisions,omitzero"`
	Values    []Value        `json:"policies,omitempty"`
	Unknown   string         `json:"not_estimable,omitzero"`
	Advice    []string       `json:"to_log,omitempty"`
	Mapping   string         `json:"mapping,omitzero"`
	Placement jsontext.Value `json:"placement,omitempty"`
	Command   string         `json:"command,omitzero"`

	options AssessOptions
}

// Value is the estimated value of a policy's page.
type Value struct {
	Policy string  `json:"policy"`
	Method string  `json:"method"`
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Words  string  `json:"words,omitzero"`
}

// AssessOptions configure an assessment.
type AssessOptions struct {
	Mapping   *importer.Mapping // overrides the mapping that is found, unless nil
	Placement string            // name for the printed command
	To        string            // data directory for the printed command
	Out       string            // directory for the mapping and the placement; "" writes no files
	Decisions int               // maximum number of decisions to judge policies on
	Level     float64           // confidence level of the intervals
	Seed      uint64            // seeds the drawn pages
	Progress  func(stage string, done, total int)
}

// files returns the paths of the mapping and of the placement.
func (o *AssessOptions) files() [2]string {
	return [2]string{filepath.Join(o.Out, "mapping.toml"), filepath.Join(o.Out, "placement.json")}
}

// Assess describes the log at path and the way to start a placement from it.
func Assess(ctx context.Context, path string, o AssessOptions) (*Assessment, error) {
	a := &Assessment{Log: path, options: o}
	for _, file := range o.files() { // before the log is read, which may take long
		if _, err := os.Lstat(file); err == nil && o.Out != "" {
			return nil, hint.New(fmt.Errorf("%s exists", file), "assess never overwrites: name another directory "+
				"with --out, or move the file away")
		}
	}
	found, err := importer.Recognize(ctx, path)
	if err != nil {
		return nil, err
	}
	if m := o.Mapping; m != nil {
		m.Format = cmp.Or(m.Format, found.Mapping.Format)
		*found = importer.Recognized{What: found.What, Mapping: m}
	}
	a.What, a.Notes, a.Needs = found.What, found.Notes, found.Needs
	if a.Needs != nil {
		return a, nil
	}
	log, err := importer.Open(ctx, path, found.Mapping)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	log.Progress = func(done, total int64) { o.Progress("reading", int(done), int(total)) }
	survey, err := log.Survey(ctx)
	log.Progress = nil // judging reads the log again, up to the last decision that it needs
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		a.unread("The log cannot be read whole: %v.", err)
		return a, nil
	case survey.Decisions == 0:
		a.describe(survey)
		a.Needs = append(a.Needs, "decisions: every one is left out")
		return a, nil
	}
	mapped := found.Mapping.Features
	config, notes, err := found.Propose(survey)
	a.Notes = append(a.Notes, notes...)
	a.describe(survey)
	if o.Mapping != nil && mapped != nil {
		found.Mapping.Features = mapped
	}
	if err != nil {
		a.Needs = append(a.Needs, fmt.Sprintf("features of the items, or ids that come again: %v", err))
		return a, nil
	}
	placement, err := setup.Parse(config)
	if err != nil {
		return nil, err
	}
	items, users := placement.FeatureNames()
	a.hold("features", "of items: %s; of the shopper: %s", cmp.Or(strings.Join(items, ", "), "none"),
		cmp.Or(strings.Join(users, ", "), "none"))
	if err := a.judge(ctx, log, survey, placement); err != nil || a.Needs != nil {
		return a, err
	}
	if err := a.start(found, config); err != nil {
		return nil, err
	}
	a.advise(survey)
	return a, nil
}

func (a *Assessment) unread(format string, err error) {
	a.Problems = append(a.Problems, fmt.Sprintf(format, err))
	a.Needs = append(a.Needs, "a log without this error, or a mapping (--mapping) that reads it")
}

func (a *Assessment) hold(what, format string, args ...any) {
	a.Holds = append(a.Holds, [2]string{what, fmt.Sprintf(format, args...)})
}

// describe summarizes the log's contents.
func (a *Assessment) describe(v *importer.Survey) {
	hold := a.hold
	a.Decisions = v.Decisions
	n := max(v.Decisions, 1)
	share := func(k int) string { return fmt.Sprintf("%.3g%%", 100*float64(k)/float64(n)) }
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
			list = append(list, fmt.Sprintf("%d: %.3g%%", k+1, 100*float64(p.Taken)/float64(p.Shown)))
		}
		hold("taken by position", "%s", strings.Join(list, ", "))
	}
	a.doubt(v)
}

// doubt lists the parts of the log that are left out, and those that look wrong.
func (a *Assessment) doubt(v *importer.Survey) {
	for _, reason := range slices.Sorted(maps.Keys(v.Skipped)) {
		a.Problems = append(a.Problems, fmt.Sprintf("Decisions left out because they %s: %d.", reason, v.Skipped[reason]))
	}
	if v.Sorted {
		a.Notes = append(a.Notes, "Rows of a decision are apart: the table is sorted, in a temporary file.")
	}
	if v.Decisions > 0 && v.Taken == v.Decisions && v.Shown.Most > 1 {
		a.Problems = append(a.Problems, "An item was taken on every page: pages on which nothing was taken are "+
			"missing, or were never logged. How often nothing is taken is then unknown, and values are too large.")
	}
	if v.Taken == 0 && v.Decisions > 0 {
		a.Problems = append(a.Problems, "Nothing was ever taken: the outcome may be another column.")
	}
	if len(v.Positions) > 2 && v.Positions[0].Taken > 3*(v.Positions[1].Taken+1) && v.Positions[0].Taken > 20 {
		a.Problems = append(a.Problems, "The first position is taken far more often than the second: the order "+
			"matters, and the estimates are of pages in any order.")
	}
}

func spread(r importer.Range[int]) string {
	if r.Least == r.Most {
		return fmt.Sprint(r.Most)
	}
	return fmt.Sprintf("%d to %d (mean %.3g)", r.Least, r.Most, float64(r.Sum)/float64(r.N))
}

// start prepares the files and the command that start a placement.
func (a *Assessment) start(found *importer.Recognized, config []byte) error {
	m := *found.Mapping
	if a.options.Out != "" {
		if err := os.MkdirAll(a.options.Out, 0o755); err != nil {
			return err
		}
		if m.Items != "" && !filepath.IsAbs(m.Items) {
			from, err := filepath.Rel(a.options.Out, m.Items)
			if err != nil {
				return err
			}
			m.Items = from
		}
	}
	a.Mapping, a.Placement = m.Text(), jsontext.Value(config)
	files := a.options.files()
	mapping, placement := files[0], files[1]
	a.Command = fmt.Sprintf("vitrine import %s --placement %s --create %s --mapping %s --to %s", shellWord(a.Log),
		shellWord(a.options.Placement), shellWord(placement), shellWord(mapping), shellWord(a.options.To))
	if a.options.Out == "" {
		return nil
	}
	return errors.Join(replace.File(mapping, []byte(a.Mapping)), replace.File(placement, config))
}

// shellWord quotes a word for a shell if necessary.
func shellWord(w string) string {
	if w != "" && !strings.ContainsFunc(w, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-/:+@",
			c))
	}) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// Fewest is the minimum number of decisions to judge a policy on.
const Fewest = 30

var errEnough = errors.New("enough")

// judge estimates the earnings of other policies.
func (a *Assessment) judge(ctx context.Context, log *importer.Log, v *importer.Survey, placement *setup.Config) error {
	rounds := &inspect.Rounds{Placement: a.options.Placement, Config: placement}
	numbers := 0
	_, err := log.Read(ctx, a.options.Placement, placement, func(d *page.Imported) error {
		if len(rounds.Rounds) == a.options.Decisions || numbers > maxNumbers {
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
		a.unread("The log does not fit the placement: %v.", err)
		return nil
	}
	a.Judged = len(rounds.Rounds)
	if a.Judged < Fewest {
		a.Unknown = fmt.Sprintf("%d decisions are needed, and the log holds %d", Fewest, a.Judged)
		return nil
	}
	mean, se := offpolicy.Logged(rounds.Rounds)
	z := math.Sqrt2 * math.Erfinv(a.options.Level)
	a.Values = []Value{{"as logged", "mean", mean, mean - z*se, mean + z*se, "what the log earned"}}
	switch {
	case v.Unshown == 0:
		a.Unknown = "the log lists only the items that were shown, so nothing is known about the others"
		return nil
	case v.Taken == 0:
		a.Unknown = "nothing was ever taken"
		return nil
	}
	policies := []*Policy{{Name: "uniform", Show: "uniform"}, {Name: "best", Show: "best"}}
	if v.Revenue.N > 0 {
		policies = append(policies, &Policy{Name: "revenue", Show: "revenue"})
	}
	e, err := Run(ctx, rounds, policies, Options{Utility: `{kind = "linear", intercept = true}`, Level: a.options.Level,
		Folds: 5, Resamples: 200, Seed: a.options.Seed})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.Unknown = err.Error()
		return nil
	}
	for _, r := range e.Results {
		a.Values = append(a.Values, assessedOf(r.Report, r.describe()))
		if !math.IsNaN(r.Report.Alarm) && math.Abs(r.Report.Alarm) > 2 {
			a.Problems = append(a.Problems, r.Name+": "+r.Report.AlarmWords())
		}
		for _, w := range r.Report.Support.Words() {
			if strings.Contains(w, " instead of ") || w == r.Report.Support.Tail {
				a.Problems = append(a.Problems,
					r.Name+": "+strings.Replace(w, "Their mean", "The mean of the item weights", 1))
			}
		}
	}
	if words := e.balance(); strings.HasPrefix(words, "Warning: ") {
		a.Problems = append(a.Problems, strings.TrimPrefix(words, "Warning: "))
	}
	return nil
}

// maxNumbers bounds the rounds in memory: 256 MB.
const maxNumbers = 1 << 25

// fewestEffective is the effective number of decisions from which the log can correct the model.
const fewestEffective = 10

// assessedOf returns the report's estimate that relies most on the log.
func assessedOf(r *offpolicy.Report, what string) Value {
	best, words := r.Estimate("direct"), "the model alone: nothing in the log checks it"
	for _, method := range []string{"dr-pi", "dr-sets"} {
		s := r.Estimate(method)
		if s.None != "" {
			continue
		}
		if words = fmt.Sprintf("the model: the log checks it with %.0f effective decisions only",
			s.ESS); s.ESS >= fewestEffective && s.Sales < offpolicy.MinSales {
			words = fmt.Sprintf("the model: the log checks it with %.0f sales only", s.Sales)
		} else if s.ESS >= fewestEffective {
			best, words = s, fmt.Sprintf("the model, corrected by the log; %.0f effective decisions", s.ESS)
		}
		break
	}
	return Value{r.Policy, best.Method, best.Value, best.Normal.Low, best.Normal.High, what + "; " + words}
}

// advise lists the information that should be logged in future.
func (a *Assessment) advise(v *importer.Survey) {
	say := func(format string, args ...any) { a.Advice = append(a.Advice, fmt.Sprintf(format, args...)) }
	if v.Unshown < v.Decisions {
		say("all candidates with their features, not only the items that were shown")
	}
	if v.Laws == 0 {
		say("how each page was drawn: the probability of the page, and for pages of one item that of every item. "+
			"Show random pages, or a random item in a slot, in a share of requests. If every page was drawn "+
			"uniformly already, say so in the mapping: [sampling_law] draw = \"pages\", share = 1, size = %d",
			v.Shown.Most)
	}
	if v.Revenue.N == 0 {
		say("the revenue of each item, if items differ in it")
	}
	if v.Decisions > 0 && v.Taken == v.Decisions && v.Shown.Most > 1 {
		say("pages on which nothing was taken")
	}
}

// wrapped breaks lines between words at 120 columns, and indents all but the first.
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

// Text returns the assessment for people to read.
func (a *Assessment) Text() []byte {
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
		fmt.Fprintf(&b, ", with %g%% intervals (%s%d decisions)", 100*a.options.Level, first, a.Judged)
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
	where := "Start a placement with these two files, mapping.toml and placement.json (--out writes them), and " +
		"the command"
	if a.options.Out != "" {
		where = fmt.Sprintf("Start a placement with these two files, now in %s, and the command", a.options.Out)
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
