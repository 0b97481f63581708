package figure

import (
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// By hand: the regrets 10 and 20 of a have the mean 15 and the standard deviation √50 = 7.1; b is 2 and 6 above, 4 on
// average with the standard error √8/√2 = 2.
func TestTable(t *testing.T) {
	p := Panel{Name: "one", Title: "50 % & t_0", Curves: []Curve{
		{"onl-mnl", [][]float64{{1, 10}, {1, 20}}}, {"my_policy-tuned", [][]float64{{1, 12}, {1, 26}}},
	}}
	q := Panel{Name: "two", Curves: []Curve{{"onl-mnl", [][]float64{{0.5}}}, {"oracle", [][]float64{{0}}}}}
	table := Table{Title: "A_1 {x}", Panels: []Panel{p, q}, Paper: true}
	for _, panel := range table.Panels {
		d, _ := panel.Minus("onl-mnl")
		table.Differences = append(table.Differences, d)
	}
	var got strings.Builder
	fatal.Or(table.WriteTo(&got))(t)
	want := `\begin{tabular}{lrrrr}
\toprule
\multicolumn{5}{c}{A\_1 \{x\}} \\
\midrule
 & \multicolumn{2}{c}{50 \% \& $t_0$} & \multicolumn{2}{c}{two} \\
\cmidrule(lr){2-3}\cmidrule(lr){4-5}
policy & mean $\pm$ sd & minus ONL-MNL $\pm$ se & mean $\pm$ sd & minus ONL-MNL $\pm$ se \\
\midrule
ONL-MNL & $15.0 \pm 7.1$ & -- & $0.500$ & -- \\
my\_policy (tuned) & $19.0 \pm 9.9$ & $+4.0 \pm 2.0$ & -- & -- \\
oracle & -- & -- & $0.000$ & $-0.500$ \\
\bottomrule
\end{tabular}
`
	expect.Equal(t, got.String(), want)
}

func TestTexEscapes(t *testing.T) {
	for text, want := range map[string]string{
		`a\b`:                `a\textbackslash{}b`,
		"ε-greedy":           `$\varepsilon$-greedy`,
		"β_T = 10, t_0":      `$\beta_T$ = 10, $t_0$`,
		"‖ŵ_0 − w*‖ 100 #~^": `‖$\hat w_0$ $-$ w*‖ 100 \#\textasciitilde{}\textasciicircum{}`,
		"start_time":         `start\_time`,
	} {
		expect.Equal(t, tex(text), want, text, "is")
	}
}
