package figure

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lengths in a single panel, in points.
const (
	plotWidth  = 400 // between the axes
	plotHeight = 270
	minPlot    = 190 // minimum width if the policies are named at its right

	left   = 52 // around the plot: the regret axis,
	bottom = 40 // the round axis,
	top    = 40 // the title
	gap    = 26 // and the lines to the labels
)

// compose implements [Picture], with the default look.
func (p Panel) compose() page { return lookedPanel{p, Look{}}.compose() }

// compose lays out the panel, with its policies named at the ends of their curves or, in a narrow picture, in a legend
// below.
func (p lookedPanel) compose() page {
	p.look.check(p.Panel)
	plot := newRegretPlot(p.Panel, p.look)
	labels := labels(plot)
	beside := gap + sample + space + nameWidth(labels) + noteWidth(labels) + 2*space
	width, height := vg.Length(plotWidth), vg.Length(plotHeight)
	if p.look.Width > 0 {
		width = p.look.Width - left - beside
		height = width * plotHeight / plotWidth
	}
	if width < minPlot {
		return Composite{Rows: [][]Panel{{p.Panel}}}.With(p.look).compose()
	}
	height = max(height, vg.Length(len(labels)*labelHeight))
	return page{
		width:  left + width + beside,
		height: top + height + bottom,
		draw: func(c draw.Canvas) {
			styles := styles(policies(p.Panel)...)
			chart := plot.chart(styles, width)
			chart.caption = ""
			a := chart.draw(part(c, left, bottom, width, height))
			writeIn(c, faces().title, ink, textLine{vg.Point{X: a.Min.X, Y: a.Max.Y + 20}, fromLeft, width + beside},
				p.title())
			writeIn(c, faces().small, faint, textLine{vg.Point{X: a.Min.X, Y: a.Max.Y + 7}, fromLeft, width + beside},
				p.look.subtitle(p.Panel))
			a.name("round t", plot.regretName("cumulative expected"), 36)
			plot.ends(a, labels, styles)
		},
	}
}

// part returns a plot's rectangle, given its lower left corner and size.
func part(c draw.Canvas, x, y, width, height vg.Length) draw.Canvas {
	return draw.Canvas{Canvas: c, Rectangle: vg.Rectangle{
		Min: vg.Point{X: x, Y: y},
		Max: vg.Point{X: x + width, Y: y + height},
	}}
}

// check panics unless the look can draw the panels.
func (l Look) check(panels ...Panel) {
	if len(panels) == 0 {
		panic("figure: no panels to draw")
	}
	for _, p := range panels {
		if len(p.Curves) == 0 {
			panic("figure: panel " + p.Name + " has no curves")
		}
		first := p.Curves[0]
		for i, c := range p.Curves {
			if slices.ContainsFunc(p.Curves[:i], func(b Curve) bool { return b.Policy == c.Policy }) {
				panic("figure: panel " + p.Name + " has two curves of " + c.Policy)
			}
			wrong := func(v float64) bool { return !(math.Abs(v) <= maxValue) }
			uneven := func(run []float64) bool {
				return len(run) == 0 || len(run) != first.rounds() || slices.ContainsFunc(run, wrong)
			}
			if c.seeds() == 0 || c.seeds() != first.seeds() || slices.ContainsFunc(c.Regret, uneven) {
				panic(fmt.Sprintf("figure: curve %s of panel %s has no rounds, other seeds or rounds than its panel, or a "+
					"regret that is not a number or beyond %g", c.Policy, p.Name, maxValue))
			}
		}
		if !l.Log {
			continue
		}
		if p.Against != "" {
			panic("figure: panel " + p.Name + " is of differences, which have no logarithm")
		}
		if policy, ok := p.Zero(); ok {
			panic("figure: " + policy + " of panel " + p.Name + " has regret 0, which has no logarithm")
		}
	}
}
