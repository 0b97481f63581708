package experiment

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"vitrine/internal/hint"
)

// PrintSummary writes an experiment's summaries as a table.
func PrintSummary(out io.Writer, summaries []Summary) {
	fmt.Fprintf(out, "%s: regret after %s, %s\n", summaries[0].Experiment, hint.Count(summaries[0].Rounds, "round"),
		hint.Count(summaries[0].Seeds, "seed"))
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	first := summaries[0].Policy
	fmt.Fprintf(w, "policy\tmean\tsd\tminus %s\tse\tseconds a run\t\n", first)
	for _, s := range summaries {
		difference, se := "", ""
		if s.Policy != first {
			difference, se = fmt.Sprintf("%+.1f", s.PairedMean), known(s.PairedSE)
		}
		fmt.Fprintf(w, "%s\t%.1f\t%s\t%s\t%s\t%.3f\t\n", s.Policy, s.FinalMean, known(s.FinalSD), difference, se,
			s.SecondsPerRun)
	}
	w.Flush()
}

// known formats a number for a table, with a dash for NaN.
func known(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.1f", v)
}
