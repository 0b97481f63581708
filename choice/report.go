package choice

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Text returns the estimates as a table of plain text.
func (r *Result) Text() string {
	var b strings.Builder
	width := len("coefficient")
	listed := r.Names[:r.Listed()]
	for _, name := range listed {
		width = max(width, len([]rune(name)))
	}
	fmt.Fprintf(&b, "%s: %d choices, %d rows, %s\n\n", r.Kind(), r.Choices, r.Rows, r.sets())
	fmt.Fprintf(&b, "%-*s  %12s  %10s  %8s  %8s\n", width, "coefficient", "estimate", "std. error", "z", "p")
	se, z, p := r.StandardErrors(), r.Z(), r.P()
	for j, name := range listed {
		padding := strings.Repeat(" ", width-len([]rune(name)))
		fmt.Fprintf(&b, "%s%s  %12s  %10s  %8.2f  %8.4f\n", name, padding, digits(r.Coefficients[j], 7), digits(se[j], 4), z[j], p[j])
	}
	b.WriteString("\n")
	for _, line := range r.statistics() {
		fmt.Fprintf(&b, "%-*s  %s\n", width, line[0], line[1])
	}
	for _, note := range r.notes() {
		fmt.Fprintf(&b, "%s\n", note)
	}
	return b.String()
}

// LaTeX returns the estimates as a table for the package booktabs.
func (r *Result) LaTeX() string {
	var b strings.Builder
	b.WriteString("\\begin{tabular}{lrrrr}\n\\toprule\n & estimate & std.\\ error & $z$ & $p$ \\\\\n\\midrule\n")
	se, z, p := r.StandardErrors(), r.Z(), r.P()
	for j, name := range r.Names[:r.Listed()] {
		fmt.Fprintf(&b, "%s & $%s$ & $%s$ & $%.2f$ & $%.4f$ \\\\\n", escapeLaTeX(name), digits(r.Coefficients[j], 4), digits(se[j], 3), z[j], p[j])
	}
	b.WriteString("\\midrule\n")
	for _, line := range r.statistics() {
		fmt.Fprintf(&b, "%s & \\multicolumn{4}{r}{%s} \\\\\n", escapeLaTeX(line[0]), escapeLaTeX(line[1]))
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
	for _, note := range r.notes() {
		fmt.Fprintf(&b, "%% %s\n", note)
	}
	return b.String()
}

// statistics are the lines of a table under the coefficients.
func (r *Result) statistics() [][2]string {
	lines := [][2]string{
		{"log-likelihood", fmt.Sprintf("%.6f", r.LogLikelihood)},
		{"at random", fmt.Sprintf("%.6f (rho² %.4f, adjusted %.4f)", r.Null, r.RhoSquared(), r.AdjustedRhoSquared())},
	}
	if !math.IsNaN(r.ConstantsOnly) {
		lines = append(lines, [2]string{"constants", fmt.Sprintf("%.6f (rho² %.4f)", r.ConstantsOnly, r.RhoSquaredConstants())})
	}
	return append(lines, [2]string{"AIC, BIC", fmt.Sprintf("%.2f, %.2f", r.AIC(), r.BIC())})
}

// notes are what a reader of the estimates has to know.
func (r *Result) notes() []string {
	kind := cmp.Or(r.Errors, "classic")
	notes := []string{fmt.Sprintf("Standard errors are %s.", kind)}
	if n := r.Spec.Utility.Network; n != nil {
		notes = append(notes, fmt.Sprintf("The network of %s (%v) has %d parameters, with a penalty, which are not listed.",
			strings.Join(n.Variables, ", "), n.model(), n.numParams()))
	}
	for _, v := range r.Variations() {
		notes = append(notes, fmt.Sprintf("%s varies with standard deviation %s (%s).", v.Coefficient, digits(v.SD.Value, 4), digits(v.SD.StandardError, 3)))
		for _, c := range v.Correlations {
			notes = append(notes, fmt.Sprintf("%s and %s have correlation %.4f (%.4f).", v.Coefficient, c.With, c.Value, c.StandardError))
		}
	}
	switch {
	case r.Separated != nil:
		notes = append(notes, fmt.Sprintf("There is no finite estimate: some combination of the variables of %s predicts choices perfectly.", strings.Join(r.Separated, ", ")))
	case r.Converged:
		notes = append(notes, fmt.Sprintf("Converged after %d steps.", r.Steps))
	default:
		notes = append(notes, fmt.Sprintf("Not converged after %d steps: the log-likelihood may still rise by about %.2g.", r.Steps, r.Decrement/2))
	}
	return notes
}

// sets describes the choice sets.
func (r *Result) sets() string {
	n := len(r.Alternatives)
	text := fmt.Sprintf("%d alternatives", n)
	if n == 1 {
		text = "1 alternative"
	}
	if r.Outside {
		text += " and an outside option"
	}
	return text
}

// digits writes a number with a number of significant digits, without an exponent where it would
// not be shorter.
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

// escapeLaTeX returns text with the characters that LaTeX reads as commands written out.
func escapeLaTeX(text string) string {
	var b bytes.Buffer
	for _, c := range text {
		switch c {
		case '\\':
			b.WriteString(`\textbackslash{}`)
		case '~':
			b.WriteString(`\textasciitilde{}`)
		case '^':
			b.WriteString(`\textasciicircum{}`)
		case '²':
			b.WriteString(`$^2$`)
		case '<', '>':
			fmt.Fprintf(&b, "$%c$", c)
		case '&', '%', '$', '#', '_', '{', '}':
			b.WriteByte('\\')
			fallthrough
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
