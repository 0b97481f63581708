// Package report writes the page about an experiment that a person without a desk reads: one file of HTML with
// its pictures in it, which needs no script and prints well.
//
//	report.go  what the page says
//	chart.go   its pictures
//	page.html  its text
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"vitrine/internal/hint"
	"vitrine/service/api"
)

// Policy is the Content-Security-Policy of the page.
const Policy = "default-src 'none'; style-src 'unsafe-inline'"

//go:embed page.html
var source string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": number, "money": money, "gain": gain, "count": count, "percent": percent, "day": day, "moment": moment,
	"shows": shows, "colour": colour,
	"sentence": sentence, "seen": seen, "conversion": conversion, "metric": metric, "amount": amount, "change": change,
	"policy": func() string { return Policy },
}).Parse(source))

// Page writes the page about an experiment of a placement. Revenues are in the currency, which may be "". now is when
// the report was fetched.
func Page(w io.Writer, placement, currency string, r *api.ExperimentReport, now time.Time) error {
	var b strings.Builder
	if err := page.Execute(&b, view{ExperimentReport: r, Placement: placement, Currency: currency, Now: now}); err != nil {
		return err
	}
	_, err := io.WriteString(w, hint.Printable(b.String())) // the command prints the page
	return err
}

// view is the page's data.
type view struct {
	*api.ExperimentReport
	Placement string
	Currency  string
	Now       time.Time
}

// Until is the time of the last results.
func (v view) Until() time.Time {
	if v.Ended != nil {
		return *v.Ended
	}
	if v.IsOver() {
		return v.Ends
	}
	return v.Now
}

// Period says when shoppers see the variants.
func (v view) Period() string {
	switch {
	case v.Never():
		return "ended before its start on " + day(v.Starts)
	case v.Waits():
		return "not before " + moment(v.Starts)
	case v.IsOver():
		return day(v.From()) + " to " + moment(v.Until())
	}
	return day(v.From()) + " to " + moment(v.Until()) + ", still running"
}

// Waits reports whether no shopper saw the variants yet, because the experiment starts later.
func (v view) Waits() bool { return v.From().After(v.Until()) }

// Never reports whether the experiment ended before its start.
func (v view) Never() bool { return v.Waits() && v.Ended != nil }

// Sentence is the verdict in words.
func (v view) Sentence() string {
	switch {
	case v.Never():
		return "It never started."
	case v.Waits():
		return "It has not started yet."
	case v.Verdict.Result == api.Ship:
		return fmt.Sprintf("Ship “%s”.", v.Verdict.Variant)
	case v.Verdict.Result == api.Weigh && v.suffers() && v.reversible():
		return fmt.Sprintf("Your choice: “%s” earns more, but something suffers, and money that came late could reverse "+
			"the gain.", v.Verdict.Variant)
	case v.Verdict.Result == api.Weigh && v.suffers():
		return fmt.Sprintf("Your choice: “%s” earns more, and something suffers.", v.Verdict.Variant)
	case v.Verdict.Result == api.Weigh:
		return fmt.Sprintf("Your choice: “%s” earns more, but money that came late could reverse that.", v.Verdict.Variant)
	case v.Verdict.Result == api.Tie && v.Verdict.Variant != "":
		return fmt.Sprintf("A tie, so keep “%s”.", v.Verdict.Variant)
	case v.Verdict.Result == api.Tie:
		return fmt.Sprintf("A tie: keep “%s”.", strings.Join(v.Verdict.Tied, "” or “"))
	case v.Ratio.Mismatch:
		return "Stop, and find out why the shoppers are not divided as planned."
	case v.Verdict.Untrusted:
		return "Stop, and find out what went wrong."
	case v.Verdict.Result == api.Stop:
		return fmt.Sprintf("Stop, and stay with “%s”.", v.Control)
	}
	if v.IsOver() {
		return fmt.Sprintf("No winner, so stay with “%s”.", v.Control)
	}
	return "Keep going."
}

// suffers reports whether the variant to weigh is surely worse in a metric.
func (v view) suffers() bool { return v.Worse(v.Verdict.Variant) != nil }

// reversible reports whether late revenue could reverse the gain of the variant to weigh.
func (v view) reversible() bool {
	of := v.Variant(v.Verdict.Variant)
	return of != nil && v.Rival(of) != nil
}

// Defers reports whether first pages were deferred.
func (v view) Defers() bool {
	return slices.ContainsFunc(v.Variants, func(of api.VariantReport) bool { return of.Deferred > 0 })
}

// Late reports whether revenue came too late to count.
func (v view) Late() bool {
	return slices.ContainsFunc(v.Variants, func(of api.VariantReport) bool { return of.Later != 0 })
}

// IsOver reports whether the experiment has ended, by itself or by its schedule.
func (v view) IsOver() bool { return v.Ended != nil || !v.Ends.IsZero() && !v.Now.Before(v.Ends) }

// Advice says what the verdict means.
func (v view) Advice() string {
	switch {
	case v.Waits():
		return ""
	case v.Verdict.Result == api.Ship:
		return "The whole interval of its difference is above what a change is worth. You may act on that at any " +
			"time, without waiting for a planned end."
	case v.Verdict.Result == api.Weigh:
		return v.balance()
	case v.Verdict.Result == api.Tie:
		return "You may stop now. If you go on, more visits may still tell which one earns more."
	case v.Ratio.Mismatch:
		return "Something loses visits of some variants: pages that fail, outcomes that are not reported, a " +
			"cache. Until it is found the differences mean nothing."
	case v.Verdict.Untrusted:
		return ""
	case v.Verdict.Result == api.Stop:
		return "Even at best no other variant gains as much as a change is worth."
	}
	if v.IsOver() {
		return "The experiment is over, and the differences may be chance: it was too short, or the gain is too " +
			"small to show."
	}
	advice := "The differences may still be chance. More visits make the intervals narrower: four times as many " +
		"halve them."
	if l := v.Left; l != nil {
		advice += fmt.Sprintf(" About %s more visits should settle it, by %s at the present rate.",
			number(float64(l.Decisions)), day(v.Until().Add(time.Duration(l.Seconds*float64(time.Second)))))
	}
	return advice
}

// balance says how to decide about the variant to weigh.
func (v view) balance() string {
	gain := "The whole interval of its difference in revenue is above what a change is worth"
	switch missing := gain + ", but revenue that came too late is missing from it. Add the amounts below"; {
	case v.suffers() && v.reversible():
		return missing + ", and decide whether the rest is worth the harm below."
	case v.suffers():
		return gain + ". Decide whether that is worth the harm below."
	default:
		return missing + " before you decide."
	}
}

// Made is the number of decisions of the variants, with those that do not count yet.
func (v view) Made() (n uint64) {
	for i := range v.Variants {
		n += v.Variants[i].Made
	}
	return n
}

// Names are the names of the variants, in their order.
func (v view) Names() []string {
	names := make([]string, len(v.Variants))
	for i := range names {
		names[i] = v.Variants[i].Name
	}
	return names
}

// Means is the picture of the revenue per visit.
func (v view) Means() template.HTML {
	c := chart{label: "Revenue per visit of each variant over time, with 95% bands", names: v.Names(), skip: -1}
	for _, p := range v.Points {
		c.add(p.Time, p.Means)
	}
	return c.draw()
}

// Differences is the picture of the differences.
func (v view) Differences() template.HTML {
	c := chart{label: "Difference to " + v.Control + " over time, with bands that hold together with 95%",
		names: v.Names(), skip: slices.Index(v.Names(), v.Control), zero: true}
	for _, p := range v.Points {
		c.add(p.Time, p.Differences)
	}
	return c.draw()
}

// shows says in words what a variant shows.
func shows(v api.VariantReport) string {
	switch {
	case v.Show == api.ShowBaseline:
		return "what the shop shows by itself"
	case v.Show == api.ShowUniform:
		return "items drawn by chance"
	}
	of := "a policy"
	if v.Learner != nil {
		of = fmt.Sprintf("the policy %v", v.Learner.Policy["name"])
		if v.Learner.Own {
			return of + ", which learns for this variant"
		}
	}
	return of + ", the one of the placement"
}

// quoted is a name in a reason.
var quoted = regexp.MustCompile(`"([^"]*)"`)

// minus is the sign of an amount in a reason.
var minus = regexp.MustCompile(` -([0-9])`)

// sentence writes a reason as a sentence.
func sentence(reason string) string {
	if reason == "" {
		return ""
	}
	reason = minus.ReplaceAllString(quoted.ReplaceAllString(reason, "“$1”"), " −$1") + "."
	first, size := utf8.DecodeRuneInString(reason)
	return string(unicode.ToUpper(first)) + reason[size:]
}

// number writes an amount with commas between thousands. From 0.1 up: four significant digits, at most two decimals.
// Below 0.1: three significant digits.
func number(v float64) string {
	if v == 0 {
		return "0"
	}
	size := int(math.Floor(math.Log10(math.Abs(v))))
	digits := 2 - size
	if math.Abs(v) >= 0.1 {
		digits = min(max(3-size, 0), 2)
	}
	text := fixed(v, digits)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// fixed writes a number with this many decimals.
func fixed(v float64, digits int) string {
	whole, fraction, isFraction := strings.Cut(strconv.FormatFloat(math.Abs(v), 'f', digits, 64), ".")
	if whole = hint.Grouped(whole); isFraction {
		whole += "." + fraction
	}
	if v < 0 {
		return "−" + whole
	}
	return whole
}

// money writes an amount of revenue, as api.Amount does: two decimals from 0.1 up, none from 100 up.
func money(v float64) string {
	switch size := math.Abs(v); {
	case size >= 100:
		return fixed(v, 0)
	case size >= 0.1, v == 0:
		return fixed(v, 2)
	}
	return number(v)
}

func gain(v float64) string { return plus(v) + money(v) }

func signed(v float64) string { return plus(v) + number(v) }

func plus(v float64) string {
	if v > 0 {
		return "+"
	}
	return ""
}

func count(v uint64) string { return hint.Grouped(strconv.FormatUint(v, 10)) }

// seen is the share of a variant's deferred first pages that were seen.
func seen(v api.VariantReport) string {
	if v.Deferred == 0 {
		return "–"
	}
	return percent(float64(v.Seen) / float64(v.Deferred))
}

// conversion is the share of a group's decisions that sold.
func conversion(g api.Totals) string {
	if g.Rounds == 0 {
		return "–"
	}
	return percent(float64(g.Purchases) / float64(g.Rounds))
}

// metric names a metric in words.
func metric(name string) string {
	switch name {
	case api.Conversion:
		return "visits with a sale"
	case api.ItemsTaken:
		return "items bought per visit"
	}
	return name
}

func amount(name string, v float64) string {
	if name == api.Conversion {
		return percent(v)
	}
	return number(v)
}

func change(name string, v float64) string {
	if name == api.Conversion {
		return signed(100*v) + " points"
	}
	return signed(v)
}

func percent(v float64) string { return number(100*v) + "%" }

func day(t time.Time) string { return t.UTC().Format("2 January 2006") }

func moment(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") }
