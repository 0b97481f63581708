package figure

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"vitrine/paper/geometry"
)

// Landscape is a loss under the generalized geometric condition: at the left its slice through the global
// minima and the lower bound (the solid line), at the right the loss over the plane of parameters.
type Landscape geometry.Landscape

// Lengths of a landscape, in points.
const (
	sliceWidth = 196
	mapLeft    = 46
	mapWidth   = 132
	areaHeight = 170

	barGap   = 8 // between the map and its colours
	barWidth = 9
	barText  = 22

	dotRadius = 2.6
)

// The lines and marks of a landscape.
var (
	lossLine   = draw.LineStyle{Color: blue, Width: 1.4, Dashes: []vg.Length{5, 2}}
	boundLine  = draw.LineStyle{Color: black, Width: 1.8}
	convexLine = draw.LineStyle{Color: orange, Width: 1.2, Dashes: []vg.Length{1.5, 1.5}}
	growthLine = draw.LineStyle{Color: green, Width: 1.2, Dashes: []vg.Length{7, 2, 1.5, 2}}
	sliceLine  = draw.LineStyle{Color: vermilion, Width: 1, Dashes: []vg.Length{4, 2}}
	levelLine  = draw.LineStyle{Color: color.NRGBA{255, 255, 255, 90}, Width: 0.4}

	white        = color.NRGBA{255, 255, 255, 255}
	globalMark   = vermilion
	spuriousMark = white
)

// depths are the colours of the loss, from 0 up: dark where it is low (the
// blues of ColorBrewer).
var depths = []color.NRGBA{{8, 48, 107, 255}, {33, 113, 181, 255}, {107, 174, 214, 255}, {198, 219, 239, 255}, {247, 251, 255, 255}}

// compose lays the landscape out.
func (l Landscape) compose() page {
	c := l.Condition
	legend := newLegend([]entry{
		{line(lossLine), "loss"},
		{dotSample(globalMark), fmt.Sprintf("global minima W* (%d)", len(l.Global))},
		{line(boundLine), "lower bound, the lesser of these two"},
		{dotSample(spuriousMark), fmt.Sprintf("spurious local minima (%d)", len(l.Spurious))},
		{line(convexLine), fmt.Sprintf("local strong convexity, μ = %v", c.Mu)},
		{line(sliceLine), "where the slice lies"},
		{line(growthLine), fmt.Sprintf("growth, τ = %v, γ = %v", c.Tau, c.Gamma)},
	}, left+sliceWidth+mapLeft+mapWidth)
	const width = left + sliceWidth + mapLeft + mapWidth + barGap + barWidth + barText
	foot := bottom + legend.height() + space
	return page{width, headHeight + areaHeight + foot, func(c draw.Canvas) {
		l.slice(part(c, left, foot, sliceWidth, areaHeight))
		l.plane(part(c, left+sliceWidth+mapLeft, foot, mapWidth, areaHeight))
		legend.draw(c, vg.Point{X: width / 2, Y: legend.height() + space})
	}}
}

// slice draws the loss along the line through the global minima, and under it
// the bound.
func (l Landscape) slice(c draw.Canvas) {
	highest := 0.0
	for _, p := range l.Slice {
		highest = max(highest, p.Loss)
	}
	a := axes{c, span{l.Slice[0].Position, l.Slice[len(l.Slice)-1].Position}, span{0, 1.04 * highest}}
	a.frame(ticks(a.x), ticks(a.y))
	a.nameX("position on the line")
	a.nameY("expected squared loss")
	a.caption("(a) the slice through the global minima")
	for _, line := range []struct {
		style  draw.LineStyle
		height func(geometry.Point) float64
	}{
		{convexLine, func(p geometry.Point) float64 { return p.StrongConvexity }},
		{growthLine, func(p geometry.Point) float64 { return p.Growth }},
		{boundLine, func(p geometry.Point) float64 { return p.Bound }},
		{lossLine, func(p geometry.Point) float64 { return p.Loss }},
	} {
		points := make([]vg.Point, len(l.Slice))
		for k, p := range l.Slice {
			points[k] = a.at(p.Position, line.height(p))
		}
		a.StrokeLines(line.style, a.ClipLinesXY(points)...)
	}
	half := geometry.Distance(l.Global[0], l.Global[1:]) / 2
	for _, position := range []float64{-half, half} {
		dot(a.Canvas, globalMark, a.at(position, 0))
	}
}

// plane draws the loss over the box, in steps, with the slice and the minima.
func (l Landscape) plane(c draw.Canvas) {
	box := l.Setting.Box
	a := axes{c, span{box.Low[0], box.High[0]}, span{box.Low[1], box.High[1]}}
	place := func(i, j float64) vg.Point {
		return vg.Point{X: a.X(i / float64(l.Map.N-1)), Y: a.Y(j / float64(l.Map.N-1))}
	}
	levels, step := levels(slices.Max(l.Map.Value))
	for k, level := range levels {
		region := contour(l.Map, level, place)
		a.SetColor(depth(k, len(levels)))
		a.Fill(region)
		if k > 0 {
			a.SetLineStyle(levelLine)
			a.Stroke(region)
		}
	}
	first, last := l.Slice[0].W, l.Slice[len(l.Slice)-1].W
	a.StrokeLines(sliceLine, []vg.Point{a.at(first[0], first[1]), a.at(last[0], last[1])})
	a.frame(nil, nil)
	a.numbers(ticks(a.x), ticks(a.y))
	a.nameX("frequency w₁")
	a.nameY("phase w₂")
	a.caption("(b) the plane of parameters")
	for _, m := range l.Spurious {
		dot(a.Canvas, spuriousMark, a.at(m.W[0], m.W[1]))
	}
	for _, w := range l.Global {
		dot(a.Canvas, globalMark, a.at(w[0], w[1]))
	}
	levelBar(part(c, a.Max.X+barGap, a.Min.Y, barWidth, areaHeight), levels, step)
}

// levels returns the values at which the colour of the loss changes, from 0 on: two between two ticks.
func levels(highest float64) (levels []float64, step float64) {
	ticks := ticks(span{0, highest})
	step = ticks[1] / 2
	for level := 0; float64(level)*step < highest; level++ {
		levels = append(levels, float64(level)*step)
	}
	return levels, step
}

// levelBar draws the bar of the colours, with a number at every other level.
func levelBar(c draw.Canvas, levels []float64, step float64) {
	a := axes{c, span{0, 1}, span{0, levels[len(levels)-1] + step}}
	for k, level := range levels {
		corner, opposite := a.at(0, level), a.at(1, level+step)
		a.FillPolygon(depth(k, len(levels)), []vg.Point{corner, {X: opposite.X, Y: corner.Y}, opposite, {X: corner.X, Y: opposite.Y}})
		if k%2 == 0 {
			f := faces().small
			write(a, f, faint, vg.Point{X: opposite.X + 4, Y: corner.Y - ascent/2*f.Font.Size}, fromLeft, number(level))
		}
	}
}

// caption writes the caption of a plot.
func (a axes) caption(text string) {
	writeIn(a, faces().caption, ink, vg.Point{X: a.Min.X, Y: a.Max.Y + 6}, fromLeft, a.Max.X-a.Min.X+edge, text)
}

// dotSample is the sample of a dot.
func dotSample(fill color.Color) func(draw.Canvas, vg.Point) {
	return func(c draw.Canvas, at vg.Point) { dot(c, fill, at.Add(vg.Point{X: sample - dotRadius})) }
}

// dot marks pt.
func dot(c draw.Canvas, fill color.Color, pt vg.Point) {
	c.DrawGlyph(draw.GlyphStyle{Color: fill, Radius: dotRadius, Shape: draw.CircleGlyph{}}, pt)
	c.DrawGlyph(draw.GlyphStyle{Color: ink, Radius: dotRadius, Shape: draw.RingGlyph{}}, pt)
}

// depth returns the colour of step k of n.
func depth(k, n int) color.NRGBA {
	t := float64(k) / float64(max(n-1, 1)) * float64(len(depths)-1)
	i := min(int(t), len(depths)-2)
	t -= float64(i)
	mix := func(a, b uint8) uint8 { return uint8((1-t)*float64(a) + t*float64(b) + 0.5) }
	a, b := depths[i], depths[i+1]
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}
