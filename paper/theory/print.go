package theory

import (
	"fmt"
	"io"
	"text/tabwriter"

	"vitrine/internal/hint"
)

// Print writes the report's tables as text.
func (r *Report) Print(out io.Writer) {
	fmt.Fprintf(out, "theory: ONL-MNL where w* is known, %s, T = %d\n", hint.Count(len(r.Study.Seeds), "seed"),
		r.Study.Setting.Rounds)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "β_T\trounds covered\tseeds covered\tβ needed\tz ≥ f*\tin S*\tR̃ ≥ R*\tregret\t")
	for _, c := range r.Coverage {
		fmt.Fprintf(w, "%g\t%.2f\t%.2f\t%.0f\t%.2f\t%.2f\t%.2f\t%.1f\t\n", c.Beta, c.Covered, c.Always, c.Needed,
			c.Optimistic, c.Best, c.Revenue, c.Regret)
	}
	fmt.Fprintln(w, "\nconstants\tκ\tμ\tt_0\tλ\tβ_T\tleast T\tregret\t")
	for _, s := range r.Schedule {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", s.Constants,
			orDash("%.2g", s.Kappa), orDash("%.2g", s.Mu), orDash("%.3g", s.Warmup), orDash("%.2g",
				s.Lambda), orDash("%.2g", s.Beta), orDash("%.2g", s.MinRounds), orDash("%.1f", s.Regret))
	}
	fmt.Fprintln(w, "\nregret grows along\tpolicy\trounds\texponent\t95% from\tto\t")
	for _, s := range r.Slopes {
		low, high := "–", "–" // for a single seed
		if len(r.Study.Seeds) > 1 {
			low, high = fmt.Sprintf("%.2f", s.Low), fmt.Sprintf("%.2f", s.High)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%s\t%s\t\n", s.Along, s.Policy, s.Part, s.Estimate, low, high)
	}
	w.Flush()
}

// orDash formats a number in the schedule, or a dash if the schedule lacks it.
func orDash(format string, v float64) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf(format, v)
}
