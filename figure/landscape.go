package figure

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"vitrine/paper/geometry"
)

// Landscape is a loss under the generalized geometric condition: on the left its slice through the global minima and
// the lower bound (the solid line), on the right the loss over the parameter plane.
type Landscape geometry.Landscape

// Lengths in a landscape, in points.
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

// Lines and marks in a landscape.
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

// depths are the colours for the loss, from 0 up: dark for low values (the blues from ColorBrewer).
var depths = []color.NRGBA{{8, 48, 107, 255}, {33, 113, 181, 255}, {107, 174, 214, 255}, {198, 219, 239, 255},
	{247, 251, 255, 255}}

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

// slice draws the loss along the line through the global minima, and the bound below it.
func (l Landscape) slice(c draw.Canvas) {
	ch := chart{caption: "(a) the slice through the global minima", lines: []series{
		{style: convexLine}, {style: growthLine}, {style: boundLine}, {style: lossLine},
	}}
	for k, of := range []func(geometry.Point) float64{
		func(p geometry.Point) float64 { return p.StrongConvexity },
		func(p geometry.Point) float64 { return p.Growth },
		func(p geometry.Point) float64 { return p.Bound },
		func(p geometry.Point) float64 { return p.Loss },
	} {
		s := &ch.lines[k]
		s.bare = true
		for _, p := range l.Slice {
			s.x, s.y = append(s.x, p.Position), append(s.y, of(p))
		}
	}
	ch.x, ch.y = spanOf(false, ch.lines[3].x), span{0, 1.04 * slices.Max(ch.lines[3].y), false}
	a := ch.draw(c)
	a.name("position on the line", "expected squared loss", 36)
	half := geometry.Distance(l.Global[0], l.Global[1:]) / 2
	for _, position := range []float64{-half, half} {
		spot(a.Canvas, globalMark, a.at(position, 0))
	}
}

// plane draws the loss over the box in steps, with the slice and the minima.
func (l Landscape) plane(c draw.Canvas) {
	box := l.Setting.Box
	a := axes{c, span{box.Low[0], box.High[0], false}, span{box.Low[1], box.High[1], false}}
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
	a.line(sliceLine, []float64{first[0], last[0]}, []float64{first[1], last[1]})
	a.frame(nil, nil)
	a.numbers(a.x.ticks(), a.y.ticks())
	a.name("frequency w₁", "phase w₂", 36)
	a.caption("(b) the plane of parameters")
	for _, m := range l.Spurious {
		spot(a.Canvas, spuriousMark, a.at(m.W[0], m.W[1]))
	}
	for _, w := range l.Global {
		spot(a.Canvas, globalMark, a.at(w[0], w[1]))
	}
	colours := axes{part(c, a.Max.X+barGap, a.Min.Y, barWidth, areaHeight), span{0, 1, false},
		span{0, levels[len(levels)-1] + step, false}}
	var numbers []tick
	for k := 0; k < len(levels); k += 2 {
		numbers = append(numbers, tick{levels[k], number(levels[k])})
	}
	colours.key(len(levels), func(k int) color.Color { return depth(k, len(levels)) },
		func(k int) float64 { return float64(k) * step }, numbers)
}

// levels returns the values, from 0 on, at which the colour for the loss changes: two per tick.
func levels(highest float64) (levels []float64, step float64) {
	step = span{0, highest, false}.ticks()[1].value / 2
	for level := 0; float64(level)*step < highest; level++ {
		levels = append(levels, float64(level)*step)
	}
	return levels, step
}

// dotSample is a dot's sample.
func dotSample(fill color.Color) func(draw.Canvas, vg.Point) {
	return func(c draw.Canvas, at vg.Point) { spot(c, fill, at.Add(vg.Point{X: sample - dotRadius})) }
}

func spot(c draw.Canvas, fill color.Color, pt vg.Point) {
	dot(c, fill, dotRadius, pt, draw.LineStyle{Color: ink, Width: 0.5})
}

// depth returns the colour for step k of n.
func depth(k, n int) color.NRGBA { return blend(depths, float64(k)/float64(max(n-1, 1))) }
