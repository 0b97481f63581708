package tune

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat/distuv"

	"vitrine/internal/hint"
)

// Report is the result of a tuning.
type Report struct {
	Training, Fresh           Table
	TrainingSeeds, FreshSeeds []uint64
	Settings                  int  // number of competing settings
	IsConfigured              bool // whether the winner is the setting in the experiments
}

// maxRows is the maximum number of settings in a printed table; the CSV lists all.
const maxRows = 10

// Print writes the best settings, the configured one, and the verdict.
func (r Report) Print(out io.Writer) {
	training, fresh := r.Training, r.Fresh
	fmt.Fprintf(out, "%s: %s, regret after the last round, %s, ± standard error\n", training.Tuning, training.Policy,
		hint.Count(len(training.Panels), "experiment"))
	fmt.Fprintf(out, "\n%s from %d\n", hint.Count(len(r.TrainingSeeds), "training seed"), r.TrainingSeeds[0])
	var shown []Row
	stopped := 0
	for _, row := range training.Rows {
		switch {
		case row.Outcome == Stopped:
			stopped++
		case row.Outcome == Configured || len(shown) < maxRows:
			shown = append(shown, row)
		}
	}
	training.print(out, shown)
	if n := r.Settings - stopped - maxRows; n > 0 {
		fmt.Fprintf(out, "further settings on all seeds: %d\n", n)
	}
	if stopped > 0 {
		fmt.Fprintf(out, "settings stopped on fewer seeds: %d\n", stopped)
	}
	fmt.Fprintf(out, "\n%s from %d\n", hint.Count(len(r.FreshSeeds), "fresh seed"), r.FreshSeeds[0])
	fresh.print(out, fresh.Rows)
	fmt.Fprintf(out, "\n%s\n", r.verdict())
	if keys := atEnd(training); len(keys) > 0 {
		fmt.Fprintf(out, "The winner has an extreme of the values tried for %s: better values may lie beyond.\n",
			strings.Join(keys, " and "))
	}
}

// atEnd returns the parameters with at least three tried numbers for which the winner took the smallest or the largest.
// It ignores the value 0, at which many ranges end.
func atEnd(t Table) []string {
	var keys []string
	for i, key := range t.Parameters {
		var tried []float64
		for _, r := range t.Rows {
			v, err := strconv.ParseFloat(r.Values[i], 64)
			if r.Outcome == Configured {
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

func (t Table) print(out io.Writer, rows []Row) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\t%s\tregret\tover the winner\tover the configured\t\n", strings.Join(t.Parameters, "\t"))
	winner, configured := t.Find(Winner).Score, t.Find(Configured).Score
	for _, r := range rows {
		over := func(outcome string, other Score) string {
			if r.Outcome == outcome {
				return "–"
			}
			return signed(r.Score.Difference(other))
		}
		name := r.Outcome
		if name == Finished {
			name = ""
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t\n", name, strings.Join(r.Values, "\t"), plain(r.Score.Estimate()),
			over(Winner, winner), over(Configured, configured))
	}
	w.Flush()
}

// errorsAtLevel returns how many standard errors a mean over n seeds exceeds with probability 0.05 if there is no
// difference, by Student's t: 1.98 for 100 seeds and 12.7 for two.
func errorsAtLevel(n int) float64 {
	if n < 2 {
		return math.Inf(1)
	}
	return distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile(0.975)
}

// verdict describes in a line how the winner performs on the fresh seeds.
func (r Report) verdict() string {
	winner, configured := r.Fresh.Find(Winner), r.Fresh.Find(Configured)
	if r.IsConfigured {
		return fmt.Sprintf("The winner is the setting in the experiments: %s on %s.",
			plain(winner.Score.Estimate()), hint.Count(len(r.FreshSeeds), "fresh seed"))
	}
	d := winner.Score.Difference(configured.Score)
	var says string
	switch level := errorsAtLevel(len(r.FreshSeeds)); {
	case !(math.Abs(d.Mean) > level*d.SE): // includes a single seed
		says = "these seeds show no difference at the level of 5%"
	case d.Mean < 0:
		says = "the winner is better at the level of 5%"
	default:
		says = "the configured setting is better at the level of 5%"
	}
	return fmt.Sprintf("On %s the winner has %s and the configured setting %s, a difference of %s: %s.",
		hint.Count(len(r.FreshSeeds), "fresh seed"), plain(winner.Score.Estimate()), plain(configured.Score.Estimate()),
		signed(d), says)
}

func plain(e Estimate) string  { return words("%.2f", e) }
func signed(e Estimate) string { return words("%+.2f", e) }

func words(format string, e Estimate) string {
	text := strings.ReplaceAll(fmt.Sprintf(format, e.Mean), "-", "−")
	if math.IsNaN(e.SE) {
		return text
	}
	return text + fmt.Sprintf(" ± %.2f", e.SE)
}
