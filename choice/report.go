package choice

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"vitrine/internal/hint"
)

// maxFrequencies is the maximum number of alternatives for which Text prints frequencies.
const maxFrequencies = 20

// minClusters is the number of clusters from which on clustered errors are about right, and minDraws the number of draws
// from which on the error of the simulation is small.
const minClusters, minDraws = 20, 50

// Text returns the estimates as a plain text table, followed by the alternatives' frequencies unless there are many.
// Rows for coefficients without a finite estimate are blank.
func (r *Result) Text() string {
	var b strings.Builder
	if r.Separated != nil {
		fmt.Fprintf(&b, "%s.\n\n", r.Separation())
	}
	choices := fmt.Sprintf("%d choices", r.Choices)
	if r.ZeroWeight > 0 {
		choices += fmt.Sprintf(" (%d of weight 0)", r.ZeroWeight)
	}
	fmt.Fprintf(&b, "%s: %s, %d rows, %s\n\n", r.Kind(), choices, r.Rows, r.sets())
	if n := len(r.Chosen); n > 0 && n <= maxFrequencies {
		b.WriteString(align(r.frequencies()) + "\n")
	}
	rows := append([][]string{{"coefficient", "estimate", "std. error", "z", "p", "2.5%", "97.5%"}}, r.rows(7, 4)...)
	b.WriteString(align(rows) + "\n")
	for _, line := range r.statistics() {
		fmt.Fprintf(&b, "%-14s  %s\n", line[0], line[1])
	}
	for _, note := range r.notes() {
		fmt.Fprintf(&b, "%s\n", note)
	}
	return b.String()
}

// rows formats the listed coefficients with the given numbers of digits: names, estimates, standard errors, z, p and
// the ends of the 95% intervals.
func (r *Result) rows(estimate, se int) (rows [][]string) {
	errors, z, p := r.StandardErrors(), r.Z(), r.P()
	low, high := r.Intervals(0.95)
	for j, name := range r.Names[:r.Listed()] {
		row := []string{name, digits(r.Coefficients[j], estimate), digits(errors[j], se), fmt.Sprintf("%.2f",
			z[j]), fmt.Sprintf("%.4f", p[j]),
			digits(low[j], se), digits(high[j], se)}
		if slices.Contains(r.Separated, name) {
			row = append([]string{name}, make([]string, len(row)-1)...)
		}
		rows = append(rows, row)
	}
	return rows
}

// frequencies formats how often each alternative was offered and chosen.
func (r *Result) frequencies() [][]string {
	total := 0.0
	for _, n := range r.Chosen {
		total += n
	}
	rows := [][]string{{"alternative", "offered", "chosen", "share"}}
	for a, n := range r.Chosen {
		label := "(outside)"
		if a < len(r.Alternatives) {
			label = r.Alternatives[a]
		}
		rows = append(rows, []string{label, fmt.Sprintf("%.6g", r.Offered[a]), fmt.Sprintf("%.6g",
			n), fmt.Sprintf("%.4f", n/total)})
	}
	return rows
}

// Matrix formats the covariance or the correlation of the listed coefficients' estimates.
func (r *Result) Matrix(correlation bool) string {
	n := r.Listed()
	head := []string{"covariance"}
	if correlation {
		head[0] = "correlation"
	}
	rows := [][]string{head}
	for i, name := range r.Names[:n] {
		rows[0] = append(rows[0], strconv.Itoa(i+1))
		row := []string{fmt.Sprintf("%d %s", i+1, name)}
		for j := range i + 1 {
			v := r.Covariance.At(i, j)
			switch {
			case math.IsNaN(v):
				row = append(row, "")
			case correlation:
				row = append(row, fmt.Sprintf("%.4f", v/math.Sqrt(r.Covariance.At(i, i)*r.Covariance.At(j, j))))
			default:
				row = append(row, digits(v, 4))
			}
		}
		rows = append(rows, row)
	}
	return align(rows)
}

// align formats rows as columns, the first aligned left and the others right.
func align(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for k, cell := range row {
			if k == len(widths) {
				widths = append(widths, 0)
			}
			widths[k] = max(widths[k], len([]rune(cell)))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		line := ""
		for k, cell := range row {
			padding := strings.Repeat(" ", widths[k]-len([]rune(cell)))
			if k == 0 {
				line = cell + padding
			} else {
				line += "  " + padding + cell
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// LaTeX returns the estimates as a LaTeX table for the package booktabs.
func (r *Result) LaTeX() string {
	var b strings.Builder
	if r.Separated != nil {
		fmt.Fprintf(&b, "%% %s.\n", r.Separation())
	}
	b.WriteString("\\begin{tabular}{lrrrr}\n\\toprule\n & estimate & std.\\ error & $z$ & $p$ \\\\\n\\midrule\n")
	for _, row := range r.rows(4, 3) {
		b.WriteString(latex.Replace(row[0]))
		for _, cell := range row[1:5] {
			if cell != "" {
				cell = "$" + cell + "$"
			}
			b.WriteString(" & " + cell)
		}
		b.WriteString(" \\\\\n")
	}
	b.WriteString("\\midrule\n")
	for _, line := range r.statistics() {
		fmt.Fprintf(&b, "%s & \\multicolumn{4}{r}{%s} \\\\\n", latex.Replace(line[0]), latex.Replace(line[1]))
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
	for _, note := range r.notes() {
		fmt.Fprintf(&b, "%% %s\n", note)
	}
	return b.String()
}

// statistics returns the lines below the coefficients in a table.
func (r *Result) statistics() [][2]string {
	against := func(null float64, format string, rho ...any) string {
		text := fmt.Sprintf("%.6f", null)
		if null != 0 { // otherwise rho² is undefined
			text += fmt.Sprintf(format, rho...)
		}
		return text
	}
	lines := [][2]string{
		{"log-likelihood", fmt.Sprintf("%.6f", r.LogLikelihood)},
		{"at random", against(r.Null, " (rho² %.4f, adjusted %.4f)", r.RhoSquared(), r.AdjustedRhoSquared())},
	}
	if !math.IsNaN(r.ConstantsOnly) {
		lines = append(lines, [2]string{"constants", against(r.ConstantsOnly, " (rho² %.4f)", r.RhoSquaredConstants())})
	}
	return append(lines, [2]string{"AIC, BIC", fmt.Sprintf("%.2f, %.2f", r.AIC(), r.BIC())})
}

// notes lists caveats for readers of the estimates.
func (r *Result) notes() []string {
	kind := cmp.Or(r.Errors, "classic")
	if r.Clusters > 0 {
		kind += fmt.Sprintf(", by %d clusters", r.Clusters)
	}
	if r.Clusters > 0 && r.Clusters < minClusters {
		kind += fmt.Sprintf(": with fewer than %d they are too small, and the intervals too narrow", minClusters)
	}
	notes := []string{fmt.Sprintf("Standard errors are %s.", kind)}
	if n := r.Spec.Utility.Network; n != nil {
		notes = append(notes,
			fmt.Sprintf("The network of %s (%v) has %d parameters, with a penalty, which are not listed.",
				strings.Join(n.Variables, ", "), n.model(), n.numParams()), bestOf(n.starts(), n.Seed))
	}
	switch m := &r.Spec.Model; m.Kind {
	case "nested":
		notes = append(notes, "z and p of a dissimilarity compare it with 1.")
		for j, z := range r.Z() {
			if name := r.Names[j]; usual(name) == 1 && z > 1.96 {
				notes = append(notes, fmt.Sprintf("%s is significantly above 1: the model contradicts utility "+
					"maximisation there, so try other nests.", name))
			}
		}
	case "mixed":
		notes = append(notes, fmt.Sprintf("The likelihood is simulated with %d Halton draws for each decision maker.",
			m.draws()))
		if m.draws() < minDraws {
			notes = append(notes, fmt.Sprintf("With fewer than %d draws, estimates depend on their number: take more.",
				minDraws))
		}
		for _, v := range m.Random {
			if v.Distribution == "lognormal" {
				notes = append(notes, fmt.Sprintf("The estimates for %s describe its logarithm: it is above 0 for "+
					"everyone. If people dislike its variable, negate the variable.", v.Coefficient))
			}
		}
		notes = append(notes, "p of a spread is too small near 0: compare with the model without it by a likelihood ratio.")
		if kind != "classic" { // the scores of a spread vanish at 0
			notes = append(notes, fmt.Sprintf("For a spread close to 0, %s errors are too small: trust classic ones.",
				r.Errors))
		}
	case "latent":
		notes = append(notes, bestOf(m.starts(), m.Seed))
	}
	for _, v := range r.Variations() {
		notes = append(notes, fmt.Sprintf("%s varies with standard deviation %s (%s).",
			v.Coefficient, digits(v.SD.Value, 4), digits(v.SD.StandardError, 3)))
		for _, c := range v.Correlations {
			notes = append(notes, fmt.Sprintf("%s and %s have correlation %.4f (%.4f).",
				v.Coefficient, c.With, c.Value, c.StandardError))
		}
	}
	switch {
	case r.Separated != nil: // already at the top of Text
	case r.Converged:
		notes = append(notes, fmt.Sprintf("Converged after %d steps.", r.Steps))
	default:
		notes = append(notes,
			fmt.Sprintf("Not converged after %d steps: the log-likelihood may still rise by about %.2g.",
				r.Steps, r.Decrement/2))
	}
	return notes
}

// bestOf describes the random starts.
func bestOf(starts int, seed uint64) string {
	return fmt.Sprintf("The estimate is the best of %d random starts with seed %d.", starts, seed)
}

// sets describes the choice sets.
func (r *Result) sets() string {
	text := hint.Count(len(r.Alternatives), "alternative")
	if r.Outside {
		text += " and an outside option"
	}
	return text
}

// digits formats a number with n significant digits, without an exponent unless that is shorter.
func digits(v float64, n int) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprint(v)
	}
	places := n - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	if places > 12 || places < -3 {
		return strconv.FormatFloat(v, 'e', n-1, 64)
	}
	return strconv.FormatFloat(v, 'f', max(places, 0), 64)
}

// latex escapes characters with a special meaning in LaTeX.
var latex = strings.NewReplacer(`\`, `\textbackslash{}`, `~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`, `²`, `$^2$`,
	`<`, `$<$`, `>`, `$>$`, `&`, `\&`, `%`, `\%`, `$`, `\$`, `#`, `\#`, `_`, `\_`, `{`, `\{`, `}`, `\}`)
