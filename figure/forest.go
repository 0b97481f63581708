package figure

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Forest is a forest plot: estimates with their intervals, one under the other, and their numbers
// beside them.
type Forest struct {
	Title, Subtitle string
	Axis            string // what the estimates are
	Reference       float64
	Rows            []ForestRow
}

// ForestRow is an estimate. One that is not a finite number has a name and no mark; an interval that
// is not finite has a mark and no line.
type ForestRow struct {
	Name             string
	Value, Low, High float64
}

// Lengths of a forest plot, in points.
const (
	forestWidth = 260
	forestRow   = 17
	forestName  = 230 // the most that names take
	forestMark  = 2.4
)

// compose implements [Picture].
func (f Forest) compose() page {
	names, notes := vg.Length(0), vg.Length(0)
	for _, r := range f.Rows {
		names = max(names, textWidth(faces().text, r.Name))
		notes = max(notes, textWidth(faces().small, r.note()))
	}
	names = min(names, forestName)
	begin := names + 3*space
	width := begin + forestWidth + notes + 4*space
	height := vg.Length(len(f.Rows)) * forestRow
	return page{width, top + height + bottom, func(c draw.Canvas) {
		a := axes{part(c, begin, bottom, forestWidth, height), f.span(), span{0, float64(len(f.Rows))}}
		writeIn(c, faces().title, ink, vg.Point{X: space, Y: a.Max.Y + 20}, fromLeft, width-2*space, f.Title)
		writeIn(c, faces().small, faint, vg.Point{X: space, Y: a.Max.Y + 7}, fromLeft, width-2*space, f.Subtitle)
		a.frame(ticks(a.x), nil)
		a.nameX(f.Axis)
		if x := a.at(f.Reference, 0).X; f.Reference >= a.x.low && f.Reference <= a.x.high {
			a.StrokeLine2(axisLine, x, a.Min.Y, x, a.Max.Y)
		}
		for i, r := range f.Rows {
			y := a.at(0, float64(len(f.Rows)-i)-0.5).Y
			baseline := y - ascent/2*faces().text.Font.Size
			writeIn(c, faces().text, ink, vg.Point{X: begin - space, Y: baseline}, fromEnd, names, r.Name)
			write(c, faces().small, faint, vg.Point{X: a.Max.X + space, Y: baseline}, fromLeft, r.note())
			if !isFinite(r.Value) {
				continue
			}
			style := draw.LineStyle{Color: ink, Width: lineWidth}
			if isFinite(r.Low) && isFinite(r.High) {
				a.StrokeLine2(style, a.at(r.Low, 0).X, y, a.at(r.High, 0).X, y)
			}
			c.SetColor(ink)
			c.Fill(arc(vg.Point{X: a.at(r.Value, 0).X, Y: y}, forestMark))
		}
	}}
}

// span is what the axis shows: all that is finite, and the reference if that is near.
func (f Forest) span() span {
	s := span{math.Inf(1), math.Inf(-1)}
	for _, r := range f.Rows {
		for _, v := range []float64{r.Value, r.Low, r.High} {
			if isFinite(v) {
				s = span{min(s.low, v), max(s.high, v)}
			}
		}
	}
	if s.low > s.high {
		s = span{f.Reference, f.Reference}
	}
	if room := s.high - s.low; f.Reference > s.low-room && f.Reference < s.high+room {
		s = span{min(s.low, f.Reference), max(s.high, f.Reference)}
	}
	room := 0.04 * (s.high - s.low)
	if room == 0 {
		room = 1
	}
	return span{s.low - room, s.high + room}
}

// note is the estimate in numbers.
func (r ForestRow) note() string {
	if !isFinite(r.Value) {
		return "no estimate"
	}
	if !isFinite(r.Low) || !isFinite(r.High) {
		return minus(fmt.Sprintf("%.4g, no interval", r.Value))
	}
	return minus(fmt.Sprintf("%.4g [%.4g, %.4g]", r.Value, r.Low, r.High))
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
