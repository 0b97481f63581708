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

// span is the interval shown by an axis; decimal logarithms if log is set.
type span struct {
	low, high float64
	log       bool
}

// at returns the place of v on the axis, in [0, 1] if it is shown. A value without a logarithm is placed below the
// axis.
func (s span) at(v float64) float64 {
	if s.log {
		v = max(math.Log10(max(v, math.SmallestNonzeroFloat64)), s.low-(s.high-s.low))
	}
	return (v - s.low) / (s.high - s.low)
}

// widened returns the span with a margin at both ends, as a fraction of its length.
func (s span) widened(part float64) span {
	margin := part * (s.high - s.low)
	return span{s.low - margin, s.high + margin, s.log}
}

// spanOf returns the range of the values, or of the logarithms of the positive ones if log is set. It is never empty.
func spanOf(log bool, lists ...[]float64) span {
	s := span{math.Inf(1), math.Inf(-1), log}
	for _, values := range lists {
		for _, v := range values {
			if log {
				v = math.Log10(v)
			}
			if isFinite(v) {
				s.low, s.high = min(s.low, v), max(s.high, v)
			}
		}
	}
	switch {
	case s.low > s.high:
		s.low, s.high = 0, 1
	case !(s.high-s.low > max(1e-300, 1e-12*max(math.Abs(s.low), math.Abs(s.high)))): // a single value
		margin := max(1, 1e-9*math.Abs(s.low))
		s.low, s.high = s.low-margin, s.low+margin
	}
	return s
}

// tick is a labelled value on an axis.
type tick struct {
	value float64
	text  string
}

// ticks returns the multiples, within the span, of the smallest step that gives at most six steps. Steps are 1, 2 or 5
// times a power of ten. On a logarithmic axis, ticks are powers of ten, and multiples of them if there are few.
func (s span) ticks() (all []tick) {
	if !s.log {
		return s.sparse(0, 6)
	}
	mantissas := []float64{1}
	switch decades := s.high - s.low; {
	case decades < 0.7:
		mantissas = []float64{1, 1.5, 2, 3, 4, 5, 7}
	case decades < 1.5:
		mantissas = []float64{1, 2, 5}
	case decades < 3:
		mantissas = []float64{1, 3}
	}
	step := 1 + int(s.high-s.low)/8
	for power := int(math.Floor(s.low)); power <= int(math.Ceil(s.high)); power++ {
		for _, m := range mantissas {
			v, _ := strconv.ParseFloat(strconv.FormatFloat(m, 'g', -1, 64)+"e"+strconv.Itoa(power), 64)
			if place := s.at(v); place >= 0 && place <= 1 && power%step == 0 {
				all = append(all, tick{v, number(v)})
			}
		}
	}
	return all
}

// sparse returns ticks for a linear axis with at most maximum steps, each at least minimum.
func (s span) sparse(minimum, maximum float64) (all []tick) {
	length := s.high - s.low
	power := math.Pow10(int(math.Floor(math.Log10(length / maximum))))
	step := power
	for _, m := range []float64{1, 2, 5, 10} {
		if step = m * power; length/step <= maximum {
			break
		}
	}
	step = max(step, minimum)
	for k := int(math.Ceil(s.low/step - 1e-9)); k <= int(math.Floor(s.high/step+1e-9)); k++ {
		all = append(all, tick{float64(k) * step, number(float64(k) * step)})
	}
	return all
}

// number formats a tick, with a typographic minus.
func number(v float64) string {
	return minus(strconv.FormatFloat(v, 'g', 6, 64))
}

// axes is the rectangle of a plot, and maps x and y to the page.
type axes struct {
	draw.Canvas
	x, y span
}

// at returns the place of (x, y) on the page.
func (a axes) at(x, y float64) vg.Point { return vg.Point{X: a.X(a.x.at(x)), Y: a.Y(a.y.at(y))} }

// frame draws the axes, their numbers, and a grid through the ticks.
func (a axes) frame(xs, ys []tick) {
	for _, t := range xs {
		x := a.X(a.x.at(t.value))
		a.StrokeLine2(gridLine, x, a.Min.Y, x, a.Max.Y)
	}
	for _, t := range ys {
		y := a.Y(a.y.at(t.value))
		a.StrokeLine2(gridLine, a.Min.X, y, a.Max.X, y)
	}
	a.numbers(xs, ys)
	a.StrokeLines(axisLine, []vg.Point{{X: a.Min.X, Y: a.Max.Y}, a.Min, {X: a.Max.X, Y: a.Min.Y}})
}

// numbers writes the numbers at the ticks. If neighbours on the horizontal axis would overlap, it keeps the first.
func (a axes) numbers(xs, ys []tick) {
	f := faces().small
	last := vg.Length(math.Inf(-1))
	for _, t := range xs {
		x, half := a.X(a.x.at(t.value)), f.Width(t.text)/2
		if x-half < last {
			continue
		}
		last = x + half + 2
		write(a, f, faint, vg.Point{X: x, Y: a.Min.Y - 12}, centred, t.text)
	}
	for _, t := range ys {
		write(a, f, faint, vg.Point{X: a.Min.X - 5, Y: a.Y(a.y.at(t.value)) - ascent/2*f.Font.Size}, fromEnd, t.text)
	}
}

// name writes the names of the axes, the vertical one at a distance from its axis. Either name may be empty.
func (a axes) name(x, y string, distance vg.Length) {
	write(a, faces().text, ink, vg.Point{X: a.Center().X, Y: a.Min.Y - 28}, centred, x)
	if y != "" {
		writeUp(a, faces().text, ink, vg.Point{X: a.Min.X - distance, Y: a.Center().Y}, y)
	}
}

func (a axes) caption(text string) {
	writeIn(a, faces().caption, ink, textLine{vg.Point{X: a.Min.X, Y: a.Max.Y + 6}, fromLeft, a.Max.X - a.Min.X + edge},
		text)
}

// line draws a line through the points that can be placed, clipped to the axes.
func (a axes) line(s draw.LineStyle, x, y []float64) {
	var points []vg.Point
	for i := range x {
		if !(a.x.log && x[i] <= 0 || a.y.log && y[i] <= 0) {
			points = append(points, a.at(x[i], y[i]))
		}
	}
	a.StrokeLines(s, a.ClipLinesXY(points)...)
}

// bar draws an error bar from low to high.
func (a axes) bar(s draw.LineStyle, x, low, high float64) {
	const half = 2.5
	s.Width, s.Dashes = 0.8, nil
	from, to := a.at(x, low), a.at(x, high)
	from.Y = max(from.Y, a.Min.Y)
	a.StrokeLine2(s, from.X, from.Y, to.X, to.Y)
	a.StrokeLine2(s, from.X-half, from.Y, from.X+half, from.Y)
	a.StrokeLine2(s, to.X-half, to.Y, to.X+half, to.Y)
}

// dot marks pt, with an edge unless its width is 0.
func dot(c draw.Canvas, fill color.Color, r vg.Length, pt vg.Point, edge draw.LineStyle) {
	c.DrawGlyph(draw.GlyphStyle{Color: fill, Radius: r, Shape: draw.CircleGlyph{}}, pt)
	ring(c, r, pt, edge)
}

// ring draws a circle around pt.
func ring(c draw.Canvas, r vg.Length, pt vg.Point, line draw.LineStyle) {
	var p vg.Path
	p.Move(vg.Point{X: pt.X + r, Y: pt.Y})
	p.Arc(pt, r, 0, 2*math.Pi)
	p.Close()
	if line.Width > 0 {
		c.SetLineStyle(line)
		c.Stroke(p)
	}
}

// blend interpolates at q in [0, 1] between evenly spaced colours.
func blend(stops []color.NRGBA, q float64) color.NRGBA {
	q *= float64(len(stops) - 1)
	i := min(int(q), len(stops)-2)
	q -= float64(i)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*(1-q) + float64(b)*q)) }
	a, b := stops[i], stops[i+1]
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// key draws a colour bar, with numbers at its right. The bottom of step k of n is at level(k).
func (a axes) key(n int, shade func(k int) color.Color, level func(k int) float64, ticks []tick) {
	for k := range n {
		low, high := a.at(0, level(k)), a.at(1, level(k+1))
		if k < n-1 {
			high.Y += 0.3 // avoids a seam
		}
		a.FillPolygon(shade(k), []vg.Point{low, {X: high.X, Y: low.Y}, high, {X: low.X, Y: high.Y}})
	}
	f := faces().small
	last := vg.Length(math.Inf(-1))
	for _, t := range ticks {
		y := a.Y(a.y.at(t.value))
		if y-last < labelHeight-3 {
			continue
		}
		last = y
		a.StrokeLine2(axisLine, a.Max.X, y, a.Max.X+2, y)
		write(a, f, faint, vg.Point{X: a.Max.X + 5, Y: y - ascent/2*f.Font.Size}, fromLeft, t.text)
	}
}
