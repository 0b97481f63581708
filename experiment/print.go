package experiment

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"vitrine/internal/hint"
)

// PrintSummary writes an experiment's summaries as a table, with two digits or more of the largest mean. If that
// takes more than twelve decimals, numbers have exponents.
func PrintSummary(out io.Writer, summaries []Summary) {
	fmt.Fprintf(out, "%s: regret after %s, %s\n", summaries[0].Experiment, hint.Count(summaries[0].Rounds, "round"),
		hint.Count(summaries[0].Seeds, "seed"))
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	first, digits, top := summaries[0].Policy, 1, 0.0
	for _, s := range summaries {
		top = max(top, s.FinalMean)
	}
	for ; 0 < top && top < 1 && digits < 12; top *= 10 {
		digits++
	}
	number := fmt.Sprintf(".%df", digits)
	if 0 < top && top < 1 {
		number = ".3g"
	}
	fmt.Fprintf(w, "policy\tmean\tsd\tminus %s\tse\tseconds a run\t\n", first)
	for _, s := range summaries {
		difference, se := "", ""
		if s.Policy != first {
			difference, se = fmt.Sprintf("%+"+number, s.PairedMean), known(s.PairedSE, number)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.3f\t\n", s.Policy, known(s.FinalMean, number), known(s.FinalSD, number),
			difference, se, s.SecondsPerRun)
	}
	w.Flush()
}

// known formats a number for a table, with a dash for NaN.
func known(v float64, number string) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%"+number, v)
}
