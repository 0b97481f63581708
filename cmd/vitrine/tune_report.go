package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat/distuv"

	"vitrine/tune"
)

// maxRows is the maximal number of settings in a printed table: tune.csv has all.
const maxRows = 10

// print prints the best settings, the configured one, and the verdict.
func (s search) print(training, fresh tune.Table) {
	fmt.Fprintf(s.out, "%s: %s, regret after the last round, %s, ± standard error\n", s.Name, s.Policy, plural(len(s.Panels), "experiment"))
	fmt.Fprintf(s.out, "\n%s from %d\n", plural(len(s.Training), "training seed"), s.Training[0])
	var shown []tune.Row
	stopped := 0
	for _, r := range training.Rows {
		switch {
		case r.Outcome == tune.Stopped:
			stopped++
		case r.Outcome == tune.Configured || len(shown) < maxRows:
			shown = append(shown, r)
		}
	}
	s.rows(training, shown)
	if n := s.Settings - stopped - maxRows; n > 0 {
		fmt.Fprintf(s.out, "further settings on all seeds: %d\n", n)
	}
	if stopped > 0 {
		fmt.Fprintf(s.out, "settings stopped on fewer seeds: %d\n", stopped)
	}
	fmt.Fprintf(s.out, "\n%s from %d\n", plural(len(s.Fresh), "fresh seed"), s.Fresh[0])
	s.rows(fresh, fresh.Rows)
	fmt.Fprintf(s.out, "\n%s\n", s.verdict(fresh))
	if keys := atEnd(training); len(keys) > 0 {
		fmt.Fprintf(s.out, "The winner has an extreme of the values tried for %s: better values may lie beyond.\n", strings.Join(keys, " and "))
	}
}

// atEnd returns the parameters for which at least three numbers were tried and the winner has the smallest or
// the largest of them, other than 0, at which many ranges end.
func atEnd(t tune.Table) []string {
	var keys []string
	for i, key := range t.Parameters {
		var tried []float64
		for _, r := range t.Rows {
			v, err := strconv.ParseFloat(r.Values[i], 64)
			if r.Outcome == tune.Configured {
				continue
			}
			if err != nil {
				tried = nil
				break
			}
			tried = append(tried, v)
		}
		if len(tried) == 0 {
			continue
		}
		winner := tried[0]
		slices.Sort(tried)
		tried = slices.Compact(tried)
		if len(tried) > 2 && winner != 0 && (winner == tried[0] || winner == tried[len(tried)-1]) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (s search) rows(t tune.Table, rows []tune.Row) {
	w := tabwriter.NewWriter(s.out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\t%s\tregret\tover the winner\tover the configured\t\n", strings.Join(t.Parameters, "\t"))
	winner, configured := t.Find(tune.Winner).Score, t.Find(tune.Configured).Score
	for _, r := range rows {
		over := func(outcome string, other tune.Score) string {
			if r.Outcome == outcome {
				return "–"
			}
			return signed(r.Score.Difference(other))
		}
		name := r.Outcome
		if name == tune.Finished {
			name = ""
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t\n", name, strings.Join(r.Values, "\t"), plain(r.Score.Estimate()), over(tune.Winner, winner), over(tune.Configured, configured))
	}
	w.Flush()
}

// verdict describes in a line how the winner does on the fresh seeds. errorsAtLevel returns the number of
// standard errors that a mean over n seeds exceeds with probability 0.05 if there is no difference: Student's
// t, which is 1.98 for 100 seeds and 12.7 for two.
func errorsAtLevel(n int) float64 {
	if n < 2 {
		return math.Inf(1)
	}
	return distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile(0.975)
}

func (s search) verdict(fresh tune.Table) string {
	winner, configured := fresh.Find(tune.Winner), fresh.Find(tune.Configured)
	if s.IsConfigured(winner.Score.Setting) {
		return fmt.Sprintf("The winner is the setting in the experiments: %s on %s.", plain(winner.Score.Estimate()), plural(len(s.Fresh), "fresh seed"))
	}
	d := winner.Score.Difference(configured.Score)
	var says string
	switch level := errorsAtLevel(len(s.Fresh)); {
	case !(math.Abs(d.Mean) > level*d.SE): // also for a single seed
		says = "these seeds show no difference at the level of 5 %"
	case d.Mean < 0:
		says = "the winner is better at the level of 5 %"
	default:
		says = "the configured setting is better at the level of 5 %"
	}
	return fmt.Sprintf("On %s the winner has %s and the configured setting %s, a difference of %s: %s.",
		plural(len(s.Fresh), "fresh seed"), plain(winner.Score.Estimate()), plain(configured.Score.Estimate()), signed(d), says)
}

func plain(e tune.Estimate) string  { return estimate("%.2f", e) }
func signed(e tune.Estimate) string { return estimate("%+.2f", e) }

func estimate(format string, e tune.Estimate) string {
	text := strings.ReplaceAll(fmt.Sprintf(format, e.Mean), "-", "−")
	if math.IsNaN(e.SE) {
		return text
	}
	return text + fmt.Sprintf(" ± %.2f", e.SE)
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
