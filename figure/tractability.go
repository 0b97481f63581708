package figure

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"vitrine/paper/tractability"
)

// Tractability draws the cost of algorithms on logarithmic axes: offers in the upper row and observed rounds
// in the lower, against the number of items at the left and the size of an assortment at the right. A cross
// at the upper edge marks a refused size. It must have at least one point.
type Tractability tractability.Survey

// Lengths of a tractability figure, in points.
const (
	costWidth  = 212
	costHeight = 150
	costGap    = 50 // between the columns: numbers
	costLeft   = 62

	markRadius  = 1.5
	crossRadius = 3
)

// compose lays out the figure.
func (t Tractability) compose() page {
	styles, entries := t.styles()
	width := vg.Length(costLeft + 2*costWidth + costGap + edge)
	legend := newLegend(entries, width-2*space)
	foot := vg.Length(tileName) + legend.height() + noteHeight
	const row = tileTop + costHeight + tileBottom
	return page{width, headHeight + 2*row + foot, func(c draw.Canvas) {
		for j, column := range []struct {
			head, name string
			in         func(tractability.Cell) bool
			at         func(tractability.Cell) int
		}{
			{fmt.Sprintf("K = %d", t.Setting.Size), "items N", func(c tractability.Cell) bool {
				return c.Size == t.Setting.Size && slices.Contains(t.Setting.Items, c.Items)
			}, func(c tractability.Cell) int { return c.Items }},
			{fmt.Sprintf("N = %d", t.Setting.Among), "size K of an assortment", func(c tractability.Cell) bool {
				return c.Items == t.Setting.Among && slices.Contains(t.Setting.Sizes, c.Size)
			}, func(c tractability.Cell) int { return c.Size }},
		} {
			x := costLeft + vg.Length(j)*(costWidth+costGap)
			for i, quantity := range []struct {
				name string
				of   func(tractability.Point) float64
			}{
				{"an offer, median", func(p tractability.Point) float64 { return p.Offer }},
				{fmt.Sprintf("a round, mean of %d", t.Setting.Rounds), func(p tractability.Point) float64 { return p.Round }},
			} {
				plot := costPlot{styles: styles}
				for _, p := range t.Points {
					if column.in(p.Cell) {
						plot.add(p, float64(column.at(p.Cell)), quantity.of(p))
					}
				}
				a := plot.draw(part(c, x, foot+vg.Length(1-i)*row+tileBottom, costWidth, costHeight))
				a.caption(fmt.Sprintf("(%c) %s, %s", 'a'+rune(2*i+j), quantity.name, column.head))
				if i == 1 {
					a.nameX(column.name)
				}
				if j == 0 {
					writeUp(a, faces().text, ink, vg.Point{X: a.Min.X - 46, Y: a.Center().Y}, "time")
				}
			}
		}
		write(c, faces().title, ink, vg.Point{X: costLeft, Y: headHeight + 2*row + foot - 13}, fromLeft, tractability.Title)
		legend.draw(c, vg.Point{X: width / 2, Y: legend.height() + noteHeight})
		write(c, faces().small, faint, vg.Point{X: width / 2, Y: 6}, centred, "× refused: that many assortments; "+t.Machine)
	}}
}

// styles returns how the algorithms are drawn, and their names, in the order in
// which they were measured.
func (t Tractability) styles() (map[string]style, []entry) {
	var names Panel
	for _, p := range t.Points {
		if !slices.ContainsFunc(names.Curves, func(c Curve) bool { return c.Policy == p.Policy }) {
			names.Curves = append(names.Curves, Curve{Policy: p.Policy})
		}
	}
	styles := styles(names)
	var entries []entry
	for _, c := range names.Curves {
		entries = append(entries, entry{line(styles[c.Policy].line()), c.Policy})
	}
	return styles, entries
}

// costPlot is one plot of the figure.
type costPlot struct {
	styles  map[string]style
	order   []string
	curves  map[string][]vg.Point // log10 of x and of seconds
	refused []refusal
	xs      []float64
}

type refusal struct {
	policy, count string
	x             float64
}

func (p *costPlot) add(point tractability.Point, x, seconds float64) {
	if !slices.Contains(p.xs, x) {
		p.xs = append(p.xs, x)
	}
	if point.Refused != "" {
		p.refused = append(p.refused, refusal{point.Policy, point.Refused, x})
		return
	}
	if p.curves == nil {
		p.curves = map[string][]vg.Point{}
	}
	if p.curves[point.Policy] == nil {
		p.order = append(p.order, point.Policy)
	}
	const minimum = 1e-9 // seconds: a measured 0 has no logarithm
	p.curves[point.Policy] = append(p.curves[point.Policy], vg.Point{X: vg.Length(math.Log10(x)), Y: vg.Length(math.Log10(max(seconds, minimum)))})
}

// draw draws the curves in the rectangle of c.
func (p *costPlot) draw(c draw.Canvas) axes {
	a := axes{c, span{math.Inf(1), math.Inf(-1)}, span{math.Inf(1), math.Inf(-1)}}
	for _, x := range p.xs {
		a.x = span{min(a.x.low, math.Log10(x)), max(a.x.high, math.Log10(x))}
	}
	for _, curve := range p.curves {
		for _, pt := range curve {
			a.y = span{min(a.y.low, math.Floor(float64(pt.Y))), max(a.y.high, math.Ceil(float64(pt.Y)+0.7))}
		}
	}
	if len(p.curves) == 0 {
		a.y = span{-6, 0}
	}
	if len(p.xs) == 0 {
		a.x = span{0, 1}
	}
	a.x = span{a.x.low - 0.04, a.x.high + 0.04}
	p.frame(a)
	for _, policy := range slices.Backward(p.order) {
		s := p.styles[policy]
		var line []vg.Point
		for _, pt := range p.curves[policy] {
			line = append(line, a.at(float64(pt.X), float64(pt.Y)))
		}
		slices.SortFunc(line, func(a, b vg.Point) int { return int(math.Copysign(1, float64(a.X-b.X))) })
		a.StrokeLines(s.line(), line)
		for _, pt := range line {
			a.DrawGlyph(draw.GlyphStyle{Color: s.color, Radius: markRadius, Shape: draw.CircleGlyph{}}, pt)
		}
	}
	p.crosses(a)
	return a
}

// crosses marks the refused sizes, and writes the number of assortments of the first one.
func (p *costPlot) crosses(a axes) {
	for k, r := range p.refused {
		pt := a.at(math.Log10(r.x), a.y.high)
		pt.Y -= 2 * crossRadius
		a.DrawGlyph(draw.GlyphStyle{Color: p.styles[r.policy].color, Radius: crossRadius, Shape: draw.CrossGlyph{}}, pt)
		if k == 0 {
			f := faces().small
			text := "refused: " + r.count
			align := vg.Length(fromEnd)
			write(a, f, faint, vg.Point{X: pt.X - 2*crossRadius, Y: pt.Y - ascent/2*f.Font.Size}, align, text)
		}
	}
}

// frame draws a grid of the decades, and their numbers.
func (p *costPlot) frame(a axes) {
	f := faces().small
	last := vg.Length(math.Inf(-1))
	slices.Sort(p.xs)
	for _, x := range p.xs {
		at := a.at(math.Log10(x), a.y.low)
		text := number(x)
		if at.X-f.Width(text)/2 < last {
			continue
		}
		last = at.X + f.Width(text)/2 + 4
		a.StrokeLine2(gridLine, at.X, a.Min.Y, at.X, a.Max.Y)
		write(a, f, faint, vg.Point{X: at.X, Y: a.Min.Y - 12}, centred, text)
	}
	for power := a.y.low; power <= a.y.high; power++ {
		y := a.at(a.x.low, power).Y
		a.StrokeLine2(gridLine, a.Min.X, y, a.Max.X, y)
		write(a, f, faint, vg.Point{X: a.Min.X - 5, Y: y - ascent/2*f.Font.Size}, fromEnd, seconds(int(power)))
	}
	a.StrokeLines(axisLine, []vg.Point{{X: a.Min.X, Y: a.Max.Y}, a.Min, {X: a.Max.X, Y: a.Min.Y}})
}

// seconds formats a power of ten of seconds, as "10 µs".
func seconds(power int) string {
	units := []string{"ns", "µs", "ms", "s"}
	unit := min(max((power+9)/3, 0), len(units)-1)
	return number(math.Pow10(power+9-3*unit)) + " " + units[unit]
}
