package figure

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lengths in points.
const (
	singleWidth  = 400 // of the plot of a lone panel, between its axes
	singleHeight = 270
	tileWidth    = 290 // of the plot of one panel among several
	tileHeight   = 200

	left   = 52 // around a plot: the regret axis,
	bottom = 40 // the round axis,
	top    = 40 // the title
	gap    = 26 // and what leads to the labels
)

// figure is a picture before it is drawn.
type figure struct {
	panels        []Panel
	styles        map[string]style
	labels        []label // beside the plots, from top to bottom
	columns, rows int
	plotWidth     vg.Length // between the axes
	plotHeight    vg.Length
	width, height vg.Length
}

// compose lays the panels out.
func compose(panels []Panel) figure {
	check(panels)
	f := figure{
		panels:     panels,
		styles:     styles(panels),
		labels:     labels(panels),
		columns:    int(math.Ceil(math.Sqrt(float64(len(panels))))),
		plotWidth:  tileWidth,
		plotHeight: tileHeight,
	}
	if len(panels) == 1 {
		f.plotWidth, f.plotHeight = singleWidth, singleHeight
	}
	f.rows = (len(panels) + f.columns - 1) / f.columns
	f.plotHeight = max(f.plotHeight, vg.Length(len(f.labels)*labelHeight))
	f.width = vg.Length(f.columns)*(left+f.plotWidth+gap) + sample + space + f.policyWidth() + f.noteWidth() + 2*space
	f.height = vg.Length(f.rows) * (top + f.plotHeight + bottom)
	return f
}

func check(panels []Panel) {
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

// draw puts the figure on c.
func (f figure) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	for i, p := range f.panels {
		a := newAxes(p, f.tile(c, i%f.columns, f.rows-1-i/f.columns))
		a.draw(p)
		a.curves(p, f.styles)
		if len(f.panels) == 1 {
			f.labelEnds(a)
		}
	}
	if len(f.panels) > 1 {
		f.legend(c)
	}
}

// tile is the place of a plot, counted from the lower left corner.
func (f figure) tile(c draw.Canvas, column, row int) draw.Canvas {
	x := left + vg.Length(column)*(left+f.plotWidth+gap)
	y := bottom + vg.Length(row)*(top+f.plotHeight+bottom)
	return draw.Canvas{Canvas: c, Rectangle: vg.Rectangle{
		Min: vg.Point{X: x, Y: y},
		Max: vg.Point{X: x + f.plotWidth, Y: y + f.plotHeight},
	}}
}
