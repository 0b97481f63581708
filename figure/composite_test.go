package figure_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/png"
	"io"
	"slices"
	"strings"
	"testing"

	"vitrine/figure"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// appendix is as large as the figures in the paper's appendix: four rows of two panels, with eight policies.
func appendix() figure.Composite {
	f := figure.Composite{Heads: []string{"Realizability (Gaussian)", "Misspecification (Gaussian)"}}
	for i := range 4 {
		var row []figure.Panel
		for j := range 2 {
			p := figure.Panel{Name: fmt.Sprint(i, j), Title: fmt.Sprintf("row %d, column %d", i, j)}
			for k, policy := range []string{"uniform", "ts-mnl", "ucb-mnl", "ofu-mnl-plus", "onl-mnl",
				"ofu-mnl-plus-tuned", "ts-mnl-tuned", "ucb-mnl-tuned"} {
				p.Curves = append(p.Curves, grow(policy, 10, 20, 1/float64(k+1)))
			}
			row = append(row, p)
		}
		f.Rows = append(f.Rows, row)
	}
	return f
}

// texts returns a picture's texts in the order in which they are written.
func texts(t *testing.T, picture string) (all []string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(picture))
	inside := false
	for {
		token, err := decoder.Token()
		switch token := token.(type) {
		case xml.StartElement:
			inside = token.Name.Local == "text"
		case xml.EndElement:
			inside = false
		case xml.CharData:
			if inside {
				all = append(all, string(token))
			}
		}
		if err == io.EOF {
			return all
		}
		fatal.If(t, err)
	}
}

func count(all []string, text string) (n int) {
	for _, s := range all {
		if s == text {
			n++
		}
	}
	return n
}

func TestCompositeLettersItsPanelsRowByRow(t *testing.T) {
	all := texts(t, svg(t, appendix()))
	captions := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !strings.HasPrefix(s, "(") })
	want := []string{
		"(a) row 0, column 0", "(b) row 0, column 1", "(c) row 1, column 0", "(d) row 1, column 1",
		"(e) row 2, column 0", "(f) row 2, column 1", "(g) row 3, column 0", "(h) row 3, column 1",
	}
	expect.Equal(t, captions, want, "captions")
}

// Heads, policies, seeds, and axis names shared by the panels appear only once.
func TestCompositeSaysThingsOnce(t *testing.T) {
	f := appendix()
	all := texts(t, svg(t, f))
	want := map[string]int{
		"round t": 2, "cumulative regret": 4,
		"mean ± 2 standard errors over 10 seeds": 1,
	}
	for _, h := range f.Heads {
		want[h] = 1
	}
	for _, c := range f.Rows[0][0].Curves {
		want[c.Policy] = 1
	}
	for text, n := range want {
		expect.Equal(t, count(all, text), n, text, "is written n times")
	}
}

// The figures in the appendix fill a page with a text area of 5.5 by 9 inches.
func TestCompositeFitsAPage(t *testing.T) {
	var picture bytes.Buffer
	fatal.If(t, figure.WritePNG(&picture, appendix()))
	size := fatal.Or(png.DecodeConfig(&picture))(t)
	if ratio := float64(size.Height) / float64(size.Width); ratio > 9/5.5 {
		t.Errorf("%d by %d dots: %.2f as high as wide, want at most %.2f", size.Width, size.Height, ratio, 9/5.5)
	}
}

// Rows may differ in length, and there may be one column.
func TestCompositeOfOtherShapes(t *testing.T) {
	p := four()
	for name, rows := range map[string][][]figure.Panel{
		"one":      {{p[0]}},
		"a column": {{p[0]}, {p[1]}},
		"a gap":    {{p[0], p[1]}, {p[2]}},
		"three":    {p[:3]},
	} {
		all := texts(t, svg(t, figure.Composite{Rows: rows}))
		for _, row := range rows {
			for _, p := range row {
				for _, c := range p.Curves {
					expect.Equal(t, count(all, c.Policy), 1, name, "the legend does not name", c.Policy, "once")
				}
			}
		}
		if slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "NaN") }) {
			t.Errorf("%s: something is not a number", name)
		}
	}
}

func TestLandscapeNamesItsConstants(t *testing.T) {
	picture := svg(t, landscape())
	all := texts(t, picture)
	for _, want := range []string{
		"local strong convexity, μ = 1", "growth, τ = 0.5, γ = 1",
		"global minima W* (2)", "spurious local minima (1)",
	} {
		expect.Equal(t, count(all, want), 1, want, "is not written once")
	}
	if strings.Contains(picture, "NaN") || strings.Contains(picture, "Inf") {
		t.Error("something has no place")
	}
}
