package figure

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

var (
	ink      = color.NRGBA{0, 0, 0, 255}
	faint    = color.NRGBA{95, 95, 95, 255}
	gridLine = draw.LineStyle{Color: color.NRGBA{228, 228, 228, 255}, Width: 0.6}
	leader   = draw.LineStyle{Color: color.NRGBA{150, 150, 150, 255}, Width: 0.5}
	axisLine = draw.LineStyle{Color: color.NRGBA{95, 95, 95, 255}, Width: 0.8}
)

const lineWidth = 1.6 // points

// span is the interval that an axis shows.
type span struct{ low, high float64 }

// axes is the rectangle of a plot, which maps x and y to the page.
type axes struct {
	draw.Canvas
	x, y span
}

// at returns the place of (x, y) on the page.
func (a axes) at(x, y float64) vg.Point {
	return vg.Point{
		X: a.X((x - a.x.low) / (a.x.high - a.x.low)),
		Y: a.Y((y - a.y.low) / (a.y.high - a.y.low)),
	}
}

// frame draws a grid through the ticks, their numbers, and the axes.
func (a axes) frame(xs, ys []float64) {
	for _, v := range xs {
		x := a.at(v, 0).X
		a.StrokeLine2(gridLine, x, a.Min.Y, x, a.Max.Y)
	}
	for _, v := range ys {
		y := a.at(0, v).Y
		a.StrokeLine2(gridLine, a.Min.X, y, a.Max.X, y)
	}
	a.numbers(xs, ys)
	a.StrokeLines(axisLine, []vg.Point{{X: a.Min.X, Y: a.Max.Y}, a.Min, {X: a.Max.X, Y: a.Min.Y}})
}

// numbers writes the numbers of the ticks.
func (a axes) numbers(xs, ys []float64) {
	f := faces().small
	for _, v := range xs {
		write(a, f, faint, vg.Point{X: a.at(v, 0).X, Y: a.Min.Y - 12}, centred, number(v))
	}
	for _, v := range ys {
		write(a, f, faint, vg.Point{X: a.Min.X - 5, Y: a.at(0, v).Y - ascent/2*f.Font.Size}, fromEnd, number(v))
	}
}

// nameX writes the name of the horizontal axis.
func (a axes) nameX(name string) {
	write(a, faces().text, ink, vg.Point{X: a.Center().X, Y: a.Min.Y - 28}, centred, name)
}

// nameY writes the name of the vertical axis.
func (a axes) nameY(name string) {
	writeUp(a, faces().text, ink, vg.Point{X: a.Min.X - 36, Y: a.Center().Y}, name)
}

// ticks returns the multiples in the span of the smallest step that leaves at most six steps. Steps are 1, 2 or 5 times a
// power of ten.
func ticks(s span) []float64 { return sparseTicks(s, 0, 6) }

// sparseTicks returns ticks with at most maximum steps, each at least minimum.
func sparseTicks(s span, minimum, maximum float64) []float64 {
	length := s.high - s.low
	power := math.Pow10(int(math.Floor(math.Log10(length / maximum))))
	step := power
	for _, m := range []float64{1, 2, 5, 10} {
		if step = m * power; length/step <= maximum {
			break
		}
	}
	step = max(step, minimum)
	var all []float64
	for k := int(math.Ceil(s.low/step - 1e-9)); k <= int(math.Floor(s.high/step+1e-9)); k++ {
		all = append(all, float64(k)*step)
	}
	return all
}

// number writes a tick, with the minus of print.
func number(v float64) string {
	return minus(strconv.FormatFloat(v, 'g', 6, 64))
}
