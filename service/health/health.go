// Package health says in words what an operator should know of a placement.
package health

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"vitrine/internal/hint"
	"vitrine/service/api"
)

// The levels of health, the worst first.
var levels = []string{"bad", "warning", "waiting", "note"}

// Clock is the key of the finding that the clock moved, which concerns all placements at once.
const Clock = "clock"

// manyExpired is how many decisions may end before the first outcome is reported.
const manyExpired = 50

// manyEmpty is the share of empty pages from which on something is probably wrong.
const manyEmpty = 0.05

// quietRounds is for how many rounds after it was last counted something is still a warning.
const quietRounds = 1000

// levelOf returns the level of something that was last counted that many rounds ago.
func levelOf(since uint64) string {
	if since < quietRounds {
		return "warning"
	}
	return "note"
}

// withoutDigits returns what remains of a text while the numbers in it change.
func withoutDigits(text string) string {
	return strings.Map(func(c rune) rune {
		if '0' <= c && c <= '9' {
			return -1
		}
		return c
	}, text)
}

// Of lists a placement's problems for an operator, the worst first.
func Of(s *api.Stats, warnings []string) []api.Health {
	l := list{}
	l.guard(s.Guard)
	l.outcomes(s)
	l.learner(s)
	l.predictions(s)
	for _, text := range warnings {
		l.say("warning", "%s", text)
	}
	switch r := s.Relearning; {
	case r == nil:
	case r.Ready && r.LearnedLess(s.Learned):
		skips := ""
		if r.MaxSize > 0 {
			skips = " It " + api.SkipsLarger(r.MaxSize) + "."
		}
		l.say("warning", "The second learner has learned %s from the log, and the present one %s. It decides once it has "+
			"learned half as many, or when you accept it: PUT its configuration with relearn=accept, or the present "+
			"configuration to cancel it.%s",
			hint.Count(int(r.Learned), "round"), hint.Count(int(s.Learned), "round"), skips)
	default:
		l.say("note", "A second learner learns from the log: it is at entry %d of %d.", r.Entry, r.To)
	}
	Sort(l)
	return l
}

// Sort puts the worst first.
func Sort(l []api.Health) {
	slices.SortStableFunc(l, func(a, b api.Health) int {
		return slices.Index(levels, a.Level) - slices.Index(levels, b.Level)
	})
}

// OfExperiment describes the schedule of an experiment, or nil, at a time for an operator.
func OfExperiment(e *api.Experiment, now time.Time) []api.Health {
	l := list{}
	switch {
	case e == nil:
	case now.Before(e.Starts):
		l.say("note", "The experiment “%s” starts on %s.", e.Name, e.Starts.UTC().Format("2 January 2006 at 15:04 UTC"))
	case !e.Ends.IsZero() && !now.Before(e.Ends):
		l.say("warning", "The experiment “%s” ended on %s as planned. Read its result, and choose what shoppers "+
			"see from now on.", e.Name, e.Ends.UTC().Format("2 January 2006"))
	}
	return l
}

// list holds the findings.
type list []api.Health

func (l *list) say(level, format string, args ...any) {
	h := api.Health{Level: level, Text: fmt.Sprintf(format, args...), Key: format}
	if format == "%s" {
		h.Key = withoutDigits(h.Text)
	}
	*l = append(*l, h)
}

// guard finds an alarm.
func (l *list) guard(g *api.Guard) {
	if g == nil || g.Alarm == nil {
		return
	}
	a := g.Alarm
	shown := cmp.Or(map[string]string{
		api.FallbackBaseline: "Your own pages are shown until it is over", api.FallbackVersion: "The pages of an " +
			"earlier version are shown until it is over",
	}[a.Fallback], "Pages are chosen as before")
	if a.Fallback == api.FallbackVersion && a.Version == 0 {
		shown = "Pages are chosen as before, because no earlier version was kept"
	}
	if g.Held > 0 {
		wait := "wait"
		if g.Held == 1 {
			wait = "waits"
		}
		shown += fmt.Sprintf(", and learning is paused: %s %s in the log until the alarm ends",
			hint.Count(int(g.Held), "outcome"), wait)
	}
	title, rest := "", "The alarm stays until you clear it: find the cause, or roll back to an earlier version."
	switch a.Check {
	case "no-sale":
		title, rest = fmt.Sprintf("N%s.", strings.TrimPrefix(a.Detail, "n")), "Is the checkout reporting what was "+
			"bought? The alarm ends once sales are back."
	case "sales":
		title, rest = fmt.Sprintf("Sales have fallen: %s.", a.Detail), "Does every page report its outcome, and "+
			"can shoppers buy? The alarm ends once sales are back."
	case "predictions":
		title = fmt.Sprintf("Predictions are wrong: %s.", a.Detail)
	default:
		title = fmt.Sprintf("The policy earns too little: %s.", a.Detail)
		if a.Check != "chance" {
			rest = "Do other pages sell less, too? Then demand has fallen, as after Christmas: clear the alarm. Otherwise " +
				"find the cause, or roll back to an earlier version."
		}
	}
	h := api.Health{Level: "bad", Title: title, Since: &a.Time, Key: a.Check}
	h.Text = strings.Join([]string{title, fmt.Sprintf("On a placement that sells as it should, that happens %s.",
		Odds(a.Chance)), shown + ".", rest}, " ")
	*l = append(*l, h)
}

// Odds says in words how rarely something happens that has a probability.
func Odds(chance float64) string {
	switch {
	case chance >= 0.1:
		return "now and then"
	case chance < 1e-9:
		return "less than once in a billion times"
	}
	n := 1 / chance
	switch thousands := math.Round(n / 1e3); {
	case thousands >= 1e3:
		return fmt.Sprintf("about once in %.0f million times", n/1e6)
	case math.Round(n) >= 1e3:
		return fmt.Sprintf("about once in %.0f,000 times", thousands)
	}
	return fmt.Sprintf("about once in %.0f times", n)
}

// outcomes finds outcomes that do not come, or that come too late.
func (l *list) outcomes(s *api.Stats) {
	switch {
	case s.Outcomes > 0:
	case s.Expired < manyExpired:
		l.say("waiting", "Waiting for the first outcome: %s so far, and no outcome reported yet.",
			hint.Count(int(s.Decisions), "decision"))
	default:
		l.say("warning", "Waiting for the first outcome: %d decisions have ended, and no outcome was ever "+
			"reported. Is the page reporting what was bought?", s.Expired)
	}
	if h := s.Held; h != nil {
		by := time.Duration(h.Seconds * float64(time.Second)).Round(time.Second)
		l.say("warning", "The clock moved %s by %v, and the attribution windows of open decisions with it. Check the "+
			"clocks of the machines, unless the service was down, or crashed after a quiet time.",
			map[bool]string{true: "back", false: "ahead"}[by < 0], by.Abs())
		(*l)[len(*l)-1].Key = Clock
	}
	if s.EmptyShare >= manyEmpty {
		l.say("warning", "%.0f%% of the last pages show no item: no item is allowed, by the rules or by what the shopper "+
			"bought, or all revenues are 0.", 100*s.EmptyShare)
	}
	if s.ExpiredEarly > 0 {
		level := levelOf(s.SinceExpiredEarly)
		if s.ExpiredEarlyShare >= 1./api.FewLost {
			level = "bad"
		}
		l.say(level, "%s left memory before an outcome, so experiments may stop, the guard leaves out the decisions of the "+
			"same time, and means are too high: make the placement's memory_bytes or the log's [retention] larger, or report "+
			"decisions without a sale.", hint.Count(int(s.ExpiredEarly), "decision"))
	}
}

// learner finds a learner that failed, or missed something.
func (l *list) learner(s *api.Stats) {
	if s.Broken {
		l.say("bad", "The learner has failed, and its last good policy decides: %s.", cmp.Or(s.Problem, "see the service's output"))
	}
	if s.Forgotten > 0 {
		l.say(levelOf(s.Learned), "The learner lost %s, because its saved state could not be read.",
			hint.Count(int(s.Forgotten), "round"))
	}
	if s.Unlearned > 0 {
		l.say(levelOf(s.SinceUnlearned), "The learner is too slow and missed %s: give it fewer features, or a faster policy.",
			hint.Count(int(s.Unlearned), "outcome"))
	}
	if behind := max(1000, s.Learned/10); s.Lag > behind {
		l.say("warning", "The learner is %d outcomes behind.", s.Lag)
	}
	if s.Skipped > 0 && !s.Broken {
		l.say(levelOf(s.SinceSkipped), "The learner skipped %s: %s.", hint.Count(int(s.Skipped), "round"),
			cmp.Or(s.Problem, "during an alarm about missing sales it was unknown whether they sold"))
	}
	if o := s.Outliers; o != nil {
		l.say(levelOf(o.Since), "%d values of features were far beyond all others, the last one of %q, %d rounds ago. The "+
			"learner left these values out. Is a unit wrong? If the values are right, give the feature a center "+
			"and a scale, or min and max.", o.Values, o.Feature, o.Since)
	}
}

// predictions finds predictions that are wrong, and earnings that fell.
func (l *list) predictions(s *api.Stats) {
	if s.Unsound {
		l.say("bad", "The predictions cannot be right: %s. Roll back to an earlier version.",
			cmp.Or(s.Problem, "see the service's output"))
	}
	if s.Guard != nil && s.Guard.FarOff != nil {
		b := s.Guard.FarOff
		l.say("warning", "Predictions are far off: where %.0f%% of the shoppers should have bought, %.0f%% of %d "+
			"did. A feature is missing, or tastes have changed.", 100*b.Predicted, 100*b.Observed, b.Rounds)
	}
	if f := s.Fell; f != nil {
		l.say("warning", "The policy's pages earn less than before: in the last four weeks %.2f to %.2f times as much a "+
			"decision as in the weeks before. Do your other pages sell less, too? Then demand has fallen. Otherwise look for "+
			"changes of prices, stock and the reporting of outcomes. To see whether the policy is at fault, hold some "+
			"shoppers out or run an experiment. The warning ends by itself.", f.Low, f.High)
	}
}
