package figure

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// chart is a small plot of lines over its own legend, on axes that may be
// logarithmic.
type chart struct {
	caption    string
	x, y       string // what the axes show
	logX, logY bool
	lines      []series
}

// series is a line of a chart.
type series struct {
	name      string
	style     draw.LineStyle
	x, y      []float64
	low, high []float64 // a bar at each point; nil for none
	bare      bool      // no mark at the points
}

// Lengths of a chart, in points.
const (
	chartWidth  = 190
	chartHeight = 140
	chartLeft   = 58
	chartTop    = 22
	chartBottom = 38 // numbers and name of the axis across
	chartRow    = 12 // of its legend
	barHalf     = 2
)

// chartsWidth returns the width of n charts side by side.
func chartsWidth(n int) vg.Length { return vg.Length(n)*(chartLeft+chartWidth) + edge }

// legendHeight returns the height of the longest legend in a row of charts.
func legendHeight(row []chart) (h vg.Length) {
	for _, c := range row {
		h = max(h, vg.Length(len(c.lines))*chartRow+space)
	}
	return h
}

// composeCharts lays out rows of charts, with a note below.
func composeCharts(rows [][]chart, note string) page {
	columns, height := 0, vg.Length(noteHeight)
	for _, row := range rows {
		columns = max(columns, len(row))
		height += chartTop + chartHeight + chartBottom + legendHeight(row)
	}
	width := chartsWidth(columns)
	return page{width, height, func(c draw.Canvas) {
		letter, y := 'a', height
		for _, row := range rows {
			y -= chartTop + chartHeight
			for j, ch := range row {
				area := part(c, chartLeft+vg.Length(j)*(chartLeft+chartWidth), y, chartWidth, chartHeight)
				ch.draw(area, "("+string(letter)+") ")
				letter++
			}
			y -= chartBottom + legendHeight(row)
		}
		write(c, faces().small, faint, vg.Point{X: width / 2, Y: 6}, centred, note)
	}}
}

// draw draws the chart in the rectangle of its plot, and its legend below.
func (ch chart) draw(c draw.Canvas, letter string) {
	a := axes{c, ch.span(ch.logX, func(s series) [][]float64 { return [][]float64{s.x} }), ch.span(ch.logY, func(s series) [][]float64 { return [][]float64{s.y, s.low, s.high} })}
	if !ch.logY {
		a.y.low = min(a.y.low, 0)
		a.y.high += 0.04 * (a.y.high - a.y.low)
	}
	xs, ys := places(a.x, ch.logX), places(a.y, ch.logY)
	a.frame(nil, nil)
	a.grid(xs, ys, ch.logX, ch.logY)
	a.caption(letter + ch.caption)
	a.nameX(ch.x)
	writeUp(a, faces().text, ink, vg.Point{X: a.Min.X - 38, Y: a.Center().Y}, ch.y)
	for _, s := range ch.lines {
		var points []vg.Point
		for i := range s.x {
			if x, y, ok := ch.place(s.x[i], s.y[i]); ok {
				points = append(points, a.at(x, y))
			}
		}
		a.StrokeLines(s.style, a.ClipLinesXY(points)...)
		for i := range s.x {
			x, y, ok := ch.place(s.x[i], s.y[i])
			if !ok {
				continue
			}
			if s.low != nil {
				_, low, _ := ch.place(s.x[i], s.low[i])
				_, high, _ := ch.place(s.x[i], s.high[i])
				a.bar(s.style, a.at(x, max(low, a.y.low)), a.at(x, high))
			}
			if !s.bare {
				a.DrawGlyph(draw.GlyphStyle{Color: s.style.Color, Radius: 1.7, Shape: draw.CircleGlyph{}}, a.at(x, y))
			}
		}
	}
	at := vg.Point{X: a.Min.X, Y: a.Min.Y - chartBottom - chartRow/2}
	for _, s := range ch.lines {
		c.StrokeLine2(s.style, at.X, at.Y, at.X+sample, at.Y)
		f := faces().small
		write(c, f, ink, vg.Point{X: at.X + sample + space, Y: at.Y - ascent/2*f.Font.Size}, fromLeft, s.name)
		at.Y -= chartRow
	}
}

// bar is a bar of uncertainty.
func (a axes) bar(s draw.LineStyle, from, to vg.Point) {
	s.Width, s.Dashes = 0.8, nil
	a.StrokeLine2(s, from.X, from.Y, to.X, to.Y)
	a.StrokeLine2(s, from.X-barHalf, from.Y, from.X+barHalf, from.Y)
	a.StrokeLine2(s, to.X-barHalf, to.Y, to.X+barHalf, to.Y)
}

// place returns the place of (x, y), and reports whether it is on the axes.
func (ch chart) place(x, y float64) (float64, float64, bool) {
	ok := true
	if ch.logX {
		ok = ok && x > 0
		x = math.Log10(x)
	}
	if ch.logY {
		ok = ok && y > 0
		y = math.Log10(y)
	}
	return x, y, ok
}

// span returns the range of the values of the lines, of their logarithms if
// log.
func (ch chart) span(log bool, of func(series) [][]float64) span {
	s := span{math.Inf(1), math.Inf(-1)}
	for _, l := range ch.lines {
		for _, values := range of(l) {
			for _, v := range values {
				if log && v <= 0 {
					continue
				}
				if log {
					v = math.Log10(v)
				}
				s.low, s.high = min(s.low, v), max(s.high, v)
			}
		}
	}
	if !(s.high-s.low > 1e-9) { // one value, or none
		s.low, s.high = s.low-1, s.low+1
		if math.IsInf(s.low, 0) {
			s = span{0, 1}
		}
	}
	if log {
		margin := 0.04 * (s.high - s.low)
		s.low, s.high = s.low-margin, s.high+margin
	}
	return s
}

// places returns the ticks of an axis: on a logarithmic one powers of ten, and multiples of them if there are
// few.
func places(s span, log bool) []float64 {
	if !log {
		return ticks(s)
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
	step := 1 + int(s.high-s.low)/7
	var all []float64
	for power := int(math.Floor(s.low)); power <= int(math.Ceil(s.high)); power++ {
		for _, m := range mantissas {
			if v := float64(power) + math.Log10(m); v >= s.low && v <= s.high && power%step == 0 {
				all = append(all, v)
			}
		}
	}
	return all
}

// grid draws lines through the ticks, and their numbers.
func (a axes) grid(xs, ys []float64, logX, logY bool) {
	text := func(v float64, log bool) string {
		if log {
			if v = math.Pow(10, v); v >= 1e5 || v < 1e-3 {
				return number(v)
			}
			v = math.Round(v*1000) / 1000
		}
		return number(v)
	}
	f := faces().small
	for _, v := range xs {
		x := a.at(v, 0).X
		a.StrokeLine2(gridLine, x, a.Min.Y, x, a.Max.Y)
		write(a, f, faint, vg.Point{X: x, Y: a.Min.Y - 12}, centred, text(v, logX))
	}
	for _, v := range ys {
		y := a.at(0, v).Y
		a.StrokeLine2(gridLine, a.Min.X, y, a.Max.X, y)
		write(a, f, faint, vg.Point{X: a.Min.X - 5, Y: y - ascent/2*f.Font.Size}, fromEnd, text(v, logY))
	}
}
