package figure

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lengths of a lone panel, in points.
const (
	plotWidth  = 400 // between the axes
	plotHeight = 270

	left   = 52 // around the plot: the regret axis,
	bottom = 40 // the round axis,
	top    = 40 // the title
	gap    = 26 // and what leads to the labels
)

// compose lays the panel out, with its policies named where their curves end.
func (p Panel) compose() page {
	check(p)
	labels := labels(p)
	height := max(plotHeight, vg.Length(len(labels)*labelHeight))
	return page{
		width:  left + plotWidth + gap + sample + space + policyWidth(labels) + noteWidth(labels) + 2*space,
		height: top + height + bottom,
		draw: func(c draw.Canvas) {
			a := regretAxes(p, part(c, left, bottom, plotWidth, height))
			styles := styles(p)
			a.head(p)
			a.frame(a.ticks())
			a.nameX("round t")
			a.nameY("cumulative expected regret")
			a.curves(p, styles)
			a.ends(labels, styles)
		},
	}
}

func (p Panel) title() string { return cmp.Or(p.Title, p.Name) }

// part is the rectangle of a plot, by its lower left corner and its size.
func part(c draw.Canvas, x, y, width, height vg.Length) draw.Canvas {
	return draw.Canvas{Canvas: c, Rectangle: vg.Rectangle{
		Min: vg.Point{X: x, Y: y},
		Max: vg.Point{X: x + width, Y: y + height},
	}}
}

// check panics unless the panels can be drawn.
func check(panels ...Panel) {
	if len(panels) == 0 {
		panic("figure: no panels to draw")
	}
	for _, p := range panels {
		if len(p.Curves) == 0 {
			panic("figure: panel " + p.Name + " has no curves")
		}
		for i, c := range p.Curves {
			if slices.ContainsFunc(p.Curves[:i], func(b Curve) bool { return b.Policy == c.Policy }) {
				panic("figure: panel " + p.Name + " has two curves of " + c.Policy)
			}
			if n := len(c.Mean); n == 0 || n != len(p.Curves[0].Mean) || c.SD != nil && n != len(c.SD) {
				panic("figure: curve " + c.Policy + " of panel " + p.Name + " has no rounds, or other rounds than its panel")
			}
		}
	}
}
