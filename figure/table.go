package figure

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Table is the regret after the last round as LaTeX, with rules from the package booktabs. It has a row per policy and,
// for every panel, the mean ± the sample standard deviation over the seeds and the paired difference to one policy ±
// its standard error.
type Table struct {
	Title       string  // line above the panels' titles; may be empty
	Panels      []Panel // of regret
	Differences []Panel // the same panels after [Panel.Minus] of one policy
	Paper       bool    // names as in papers
}

// WriteTo writes a tabular environment, without the float around it. If a panel lacks a policy, it gets a dash there.
//
// It panics in the same cases as [WriteSVG], and unless there is a panel of differences for every panel.
func (t Table) WriteTo(w io.Writer) (int64, error) {
	Look{}.check(t.Panels...)
	Look{}.check(t.Differences...)
	if len(t.Panels) != len(t.Differences) {
		panic(fmt.Sprintf("figure: a table of %d panels has %d panels of differences",
			len(t.Panels), len(t.Differences)))
	}
	look := Look{Paper: t.Paper}
	var out bytes.Buffer
	line := func(cells ...string) { fmt.Fprintf(&out, "%s \\\\\n", strings.Join(cells, " & ")) }
	fmt.Fprintf(&out, "\\begin{tabular}{l%s}\n\\toprule\n", strings.Repeat("rr", len(t.Panels)))
	if t.Title != "" {
		line(fmt.Sprintf("\\multicolumn{%d}{c}{%s}", 1+2*len(t.Panels), tex(t.Title)))
		out.WriteString("\\midrule\n")
	}
	titles, rules, heads := []string{""}, "", []string{"policy"}
	for k, p := range t.Panels {
		titles = append(titles, fmt.Sprintf("\\multicolumn{2}{c}{%s}", tex(p.title())))
		rules += fmt.Sprintf("\\cmidrule(lr){%d-%d}", 2*k+2, 2*k+3)
		heads = append(heads, "mean $\\pm$ sd", "minus "+tex(look.name(t.Differences[k].Against))+" $\\pm$ se")
	}
	line(titles...)
	fmt.Fprintln(&out, rules)
	line(heads...)
	out.WriteString("\\midrule\n")
	for _, policy := range policies(t.Panels...) {
		cells := []string{tex(look.name(policy))}
		for k, p := range t.Panels {
			digits := decimals(newRegretPlot(p, look).highest())
			cells = append(cells, cell(p, policy, digits), cell(t.Differences[k], policy, digits))
		}
		line(cells...)
	}
	out.WriteString("\\bottomrule\n\\end{tabular}\n")
	return out.WriteTo(w)
}

// policies returns the policies in the panels, each once.
func policies(panels ...Panel) (all []string) {
	for _, p := range panels {
		for _, c := range p.Curves {
			if !slices.Contains(all, c.Policy) {
				all = append(all, c.Policy)
			}
		}
	}
	return all
}

// cell returns a policy's regret or difference in a panel.
func cell(p Panel, policy string, digits int) string {
	i := slices.IndexFunc(p.Curves, func(c Curve) bool { return c.Policy == policy })
	if i < 0 || policy == p.Against {
		return "--"
	}
	c := p.Curves[i]
	sd := SD.of(c.after(c.rounds()))
	spread := sd.high - sd.mean
	if p.Against != "" {
		spread /= math.Sqrt(float64(c.seeds()))
	}
	text := "$" + fmt.Sprintf(p.format(), digits, sd.mean)
	if c.seeds() > 1 {
		text += fmt.Sprintf(" \\pm %.*f", digits, spread)
	}
	return text + "$"
}

// special maps characters that LaTeX interprets, or cannot print directly.
var special = strings.NewReplacer(
	`\`, `\textbackslash{}`, `{`, `\{`, `}`, `\}`, `&`, `\&`, `%`, `\%`, `$`, `\$`, `#`, `\#`, `_`, `\_`,
	`~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`, `<`, `$<$`, `>`, `$>$`, `|`, `$|$`, `"`, `''`,
	"α", `$\alpha$`, "β", `$\beta$`, "γ", `$\gamma$`, "δ", `$\delta$`, "ε", `$\varepsilon$`, "η", `$\eta$`,
	"θ", `$\theta$`, "κ", `$\kappa$`, "λ", `$\lambda$`, "μ", `$\mu$`, "π", `$\pi$`, "σ", `$\sigma$`, "τ", `$\tau$`,
	"−", `$-$`, "±", `$\pm$`, "×", `$\times$`, "√", `$\surd$`, "≤", `$\leq$`, "≥", `$\geq$`, "…", `\ldots{}`,
)

// tex formats a text for LaTeX, with symbols as in the pictures.
func tex(text string) string {
	var out strings.Builder
	for {
		m := symbol.FindStringSubmatchIndex(text)
		if m == nil {
			out.WriteString(special.Replace(text))
			return out.String()
		}
		base := strings.ReplaceAll(special.Replace(text[m[2]:m[4]-len("_")]), "$", "")
		base = strings.ReplaceAll(base, "ŵ", `\hat w`)
		fmt.Fprintf(&out, "%s$%s_%s$", special.Replace(text[:m[2]]), base, text[m[4]:m[5]])
		text = text[m[5]:]
	}
}
