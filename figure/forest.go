package figure

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Forest is a forest plot: estimates with their intervals, one below the other, with the numbers next to them.
type Forest struct {
	Title, Subtitle string
	Axis            string // meaning of the estimates
	Reference       float64
	Rows            []ForestRow
}

// ForestRow is an estimate. If the estimate is not finite, only its name is drawn. If the interval is not finite, only
// the mark is drawn.
type ForestRow struct {
	Name             string
	Value, Low, High float64
}

// Lengths in a forest plot, in points.
const (
	forestWidth = 260
	forestRow   = 17
	forestName  = 230 // maximum for names
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
		a := axes{part(c, begin, bottom, forestWidth, height), f.span(), span{0, float64(len(f.Rows)), false}}
		writeIn(c, faces().title, ink, textLine{vg.Point{X: space, Y: a.Max.Y + 20}, fromLeft, width - 2*space},
			f.Title)
		writeIn(c, faces().small, faint, textLine{vg.Point{X: space, Y: a.Max.Y + 7}, fromLeft, width - 2*space},
			f.Subtitle)
		a.frame(a.x.ticks(), nil)
		a.name(f.Axis, "", 0)
		if x := a.at(f.Reference, 0).X; f.Reference >= a.x.low && f.Reference <= a.x.high {
			a.StrokeLine2(axisLine, x, a.Min.Y, x, a.Max.Y)
		}
		for i, r := range f.Rows {
			y := a.at(0, float64(len(f.Rows)-i)-0.5).Y
			baseline := y - ascent/2*faces().text.Font.Size
			writeIn(c, faces().text, ink, textLine{vg.Point{X: begin - space, Y: baseline}, fromEnd, names}, r.Name)
			write(c, faces().small, faint, vg.Point{X: a.Max.X + space, Y: baseline}, fromLeft, r.note())
			if !isFinite(r.Value) {
				continue
			}
			if isFinite(r.Low) && isFinite(r.High) {
				a.StrokeLine2(draw.LineStyle{Color: ink, Width: lineWidth}, a.at(r.Low, 0).X, y, a.at(r.High, 0).X, y)
			}
			dot(a.Canvas, ink, forestMark, vg.Point{X: a.at(r.Value, 0).X, Y: y}, draw.LineStyle{})
		}
	}}
}

// span returns the range of the axis: all finite numbers, and the reference if it is near.
func (f Forest) span() span {
	var all []float64
	for _, r := range f.Rows {
		all = append(all, r.Value, r.Low, r.High)
	}
	s := spanOf(false, all)
	if near := s.widened(1); f.Reference > near.low && f.Reference < near.high {
		s.low, s.high = min(s.low, f.Reference), max(s.high, f.Reference)
	}
	return s.widened(0.04)
}

// note formats the estimate.
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
