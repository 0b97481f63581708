package figure

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"vitrine/internal/hint"
	"vitrine/paper/theory"
)

// Theory draws the study of the theory: coverage and optimism against the confidence radius; the distance from the
// truth and the potential over the rounds; the growth of regret with T, N, K and d_w; the pilot's error, and the cost
// of committing to it.
type Theory theory.Report

// Lines in the study.
var (
	theoryColors = []draw.LineStyle{
		{Color: black, Width: 1.4},
		{Color: vermilion, Width: 1.4, Dashes: []vg.Length{5, 2}},
		{Color: blue, Width: 1.4, Dashes: []vg.Length{8, 2, 2, 2}},
		{Color: green, Width: 1.4, Dashes: []vg.Length{2, 2}},
		{Color: orange, Width: 1.4, Dashes: []vg.Length{10, 3}},
	}
	theoryBound = draw.LineStyle{Color: grey, Width: 1.2, Dashes: []vg.Length{3, 2}}
)

func (r Theory) compose() page {
	growth := []chart{
		r.growth(theory.Rounds, "growth with the horizon", "horizon T", "regret"),
		r.growth(theory.Items, "growth with the items", "items N", "regret"),
		r.growth(theory.Sizes, "growth with the size of a set", "size K", "regret"),
	}
	more := []chart{
		r.growth(theory.Params, "growth with the parameters", "parameters", "regret"),
		r.growth(theory.Warmup, "the pilot's error", "rounds t_0 of Phase I", "squared error"),
		r.growth(theory.Commits, "explore, then commit", "horizon T", "regret"),
	}
	note := hint.Count(len(r.Study.Seeds), "seed") + " of the realizable panel; bars are standard errors, in (b) from " +
		"the 10 % to the 90 % point"
	s := sheet{plots: [][]chart{{r.coverage(), r.distance(), r.potential()}, growth, more},
		tile: vg.Point{X: 190, Y: 140}, note: note, named: true, between: 58}
	return s.page(sheetWidth(3, s.tile.X, s.between))
}

// coverage returns the chart of how often the theory's statements hold.
func (r Theory) coverage() chart {
	c := chart{caption: "coverage and optimism", nameX: "β_T", nameY: "share"}
	for k, l := range []struct {
		name  string
		value func(theory.Coverage) float64
	}{
		{"rounds in which the set has w*", func(c theory.Coverage) float64 { return c.Covered }},
		{"seeds in which it always has", func(c theory.Coverage) float64 { return c.Always }},
		{"z ≥ f*, all items", func(c theory.Coverage) float64 { return c.Optimistic }},
		{"z ≥ f*, the optimal set", func(c theory.Coverage) float64 { return c.Best }},
		{"optimistic revenue ≥ R(S*)", func(c theory.Coverage) float64 { return c.Revenue }},
	} {
		s := series{name: l.name, style: theoryColors[k]}
		for _, row := range r.Coverage {
			s.x, s.y = append(s.x, row.Beta), append(s.y, l.value(row))
		}
		c.lines = append(c.lines, s)
	}
	return c.fitted(true, false)
}

// beta returns the middle β_T, for which the rounds are drawn.
func (r Theory) beta() float64 { return r.Coverage[len(r.Coverage)/2].Beta }

// shown returns the rounds for that β_T.
func (r Theory) shown() (path []theory.Path) {
	for _, p := range r.Path {
		if p.Beta == r.beta() {
			path = append(path, p)
		}
	}
	return path
}

func (r Theory) distance() chart {
	d := series{name: "‖ŵ − w*‖² in the norm of V", style: theoryColors[0]}
	radius := series{name: fmt.Sprintf("β_t, where β_T = %g", r.beta()), style: theoryBound, bare: true}
	for _, p := range r.shown() {
		t := float64(p.Round)
		d.x, d.y, d.low, d.high = append(d.x, t), append(d.y, p.Distance), append(d.low, p.Low), append(d.high, p.High)
		radius.x, radius.y = append(radius.x, t), append(radius.y, p.Radius)
	}
	return chart{caption: "how far the truth is from the centre", nameX: "round t", nameY: "squared distance",
		lines: []series{d, radius}}.fitted(false, true)
}

func (r Theory) potential() chart {
	sum := series{name: "elliptical-potential sum", style: theoryColors[0]}
	bound := series{name: "its bound", style: theoryBound, bare: true}
	for _, p := range r.shown() {
		t := float64(p.Round)
		sum.x, sum.y = append(sum.x, t), append(sum.y, p.Potential)
		bound.x, bound.y = append(bound.x, t), append(bound.y, p.Bound)
	}
	return chart{caption: "the potential", nameX: "round t", nameY: "sum", lines: []series{sum, bound}}.fitted(false,
		false)
}

// lines names the lines in the charts of growth: by axis and policy, or by policy on all axes.
var lines = map[[2]string]string{
	{theory.Rounds, theory.Scaled}: "t_0 and λ as √T",
	{theory.Params, theory.Scaled}: "growing t_0, λ, β_T",
	{"", theory.Fixed}:             "t_0 = 50",
	{"", theory.Uniform}:           "uniform",
	{"", theory.Adam}:              "Adam",
	{"", theory.MAP}:               "MAP",
	{"", theory.Committed}:         "Adam",
	{"", theory.CommittedMAP}:      "MAP",
}

// growth returns the chart of the regret along an axis, or of the pilot's error, on logarithmic scales.
func (r Theory) growth(along, caption, x, y string) chart {
	c := chart{caption: caption + ": exponents", nameX: x, nameY: y}
	for _, e := range r.Slopes {
		if e.Along != along || e.Part == theory.Kappa || e.Part == theory.KappaBall {
			continue
		}
		name := two(e.Estimate)
		if len(r.Study.Seeds) > 1 { // a single seed gives no interval
			name += fmt.Sprintf(" (%s to %s)", two(e.Low), two(e.High))
		}
		name += ", " + cmp.Or(lines[[2]string{along, e.Policy}], lines[[2]string{"", e.Policy}])
		switch e.Part {
		case theory.Phase2:
			name += ", Phase II"
		case theory.Distance:
			name += ", parameters"
		case theory.UtilityError:
			name += ", utilities"
		}
		s := series{name: name, style: theoryColors[len(c.lines)%len(theoryColors)]}
		for _, g := range r.Growth {
			if g.Along == along && g.Policy == e.Policy && g.Part == e.Part {
				s.x, s.y = append(s.x, float64(g.Value)), append(s.y, g.Mean)
				s.low, s.high = append(s.low, g.Mean-g.SE), append(s.high, g.Mean+g.SE)
			}
		}
		c.lines = append(c.lines, s)
	}
	return c.fitted(true, true)
}

func two(v float64) string {
	return strings.NewReplacer("-0.00", "0.00", "-", "−").Replace(strconv.FormatFloat(v, 'f', 2, 64))
}
