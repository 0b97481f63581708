package figure

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lengths in points.
const (
	sample    = 34 // in a legend, before a name
	space     = 6
	rowHeight = 14 // height of a legend's row
	between   = 16 // between two names in a legend
)

// entry is a name with a sample of its line.
type entry struct {
	sample func(c draw.Canvas, at vg.Point) // from its left end on
	name   string
}

// line returns a line's sample.
func line(s draw.LineStyle) func(draw.Canvas, vg.Point) {
	return func(c draw.Canvas, at vg.Point) { c.StrokeLine2(s, at.X, at.Y, at.X+sample, at.Y) }
}

func (e entry) width() vg.Length { return sample + space + textWidth(faces().text, e.name) }

// draw draws the entry to the right of pt, within a width.
func (e entry) draw(c draw.Canvas, pt vg.Point, room vg.Length) {
	e.sample(c, pt)
	pt = pt.Add(vg.Point{X: sample + space, Y: -ascent / 2 * faces().text.Font.Size})
	writeIn(c, faces().text, ink, textLine{pt, fromLeft, room - sample - space}, e.name)
}

// legend is a block of entries in columns, filled row by row.
type legend struct {
	entries []entry
	columns []vg.Length // widths
}

// newLegend arranges the entries in as few rows as the width permits, and as evenly as possible.
func newLegend(entries []entry, width vg.Length) legend {
	for rows := 1; ; rows++ {
		l := legend{entries, make([]vg.Length, (len(entries)+rows-1)/rows)}
		for k, e := range entries {
			column := &l.columns[k%len(l.columns)]
			*column = max(*column, e.width())
		}
		if l.width() <= width || rows >= len(entries) {
			return l
		}
	}
}

func (l legend) width() vg.Length {
	w := vg.Length(len(l.columns)-1) * between
	for _, c := range l.columns {
		w += c
	}
	return w
}

func (l legend) height() vg.Length {
	return vg.Length((len(l.entries)+len(l.columns)-1)/len(l.columns)) * rowHeight
}

// draw centres the legend below top.
func (l legend) draw(c draw.Canvas, top vg.Point) {
	pt := vg.Point{Y: top.Y - rowHeight/2}
	for k, e := range l.entries {
		if k%len(l.columns) == 0 {
			pt.X = top.X - l.width()/2
		}
		e.draw(c, pt, l.columns[k%len(l.columns)])
		pt.X += l.columns[k%len(l.columns)] + between
		if (k+1)%len(l.columns) == 0 {
			pt.Y -= rowHeight
		}
	}
}
