package figure

import (
	"fmt"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Composite is a figure of several panels over one legend. The panels are
// lettered (a), (b), … row after row, and the axes named at the left and the
// lower edge alone.
type Composite struct {
	Heads []string  // what stands above each column; nil for nothing
	Rows  [][]Panel // from top to bottom, each from left to right
}

// Lengths of a composite, in points. Two columns are as wide as the text of a
// printed page, so that its letters have the size of footnotes or more.
const (
	tileWidth  = 182 // between the axes
	tileHeight = 122

	tileLeft   = 48 // of the first column: numbers and name of the regret axis
	tileNumber = 36 // of the others: numbers alone
	tileTop    = 20 // the caption
	tileBottom = 18 // numbers of the round axis
	tileName   = 18 // the name of the round axis, under the last row
	headHeight = 20
	edge       = 14 // at the right
	noteHeight = 18 // the line under the legend
)

// compose lays the panels out.
func (f Composite) compose() page {
	panels, columns := f.panels()
	check(panels...)
	styles := styles(panels...)
	var entries []entry
	for _, l := range labels(panels...) {
		entries = append(entries, entry{line(styles[l.policy].line()), l.policy})
	}
	width := tileLeft + vg.Length(columns)*tileWidth + vg.Length(columns-1)*tileNumber + edge
	legend := newLegend(entries, width-2*space)
	width = max(width, legend.width()+2*space)
	foot := tileName + legend.height() + noteHeight
	head := vg.Length(0)
	if f.Heads != nil {
		head = headHeight
	}
	const row = tileTop + tileHeight + tileBottom
	height := head + vg.Length(len(f.Rows))*row + foot
	return page{width, height, func(c draw.Canvas) {
		letter := 'a'
		for i, panels := range f.Rows {
			for j, p := range panels {
				x := tileLeft + vg.Length(j)*(tileWidth+tileNumber)
				y := height - head - vg.Length(i+1)*row + tileBottom
				a := regretAxes(p, part(c, x, y, tileWidth, tileHeight))
				a.frame(a.ticks())
				if i == len(f.Rows)-1 {
					a.nameX("round t")
				}
				if j == 0 {
					a.nameY("cumulative regret")
				}
				a.curves(p, styles)
				a.caption(fmt.Sprintf("(%c) %s", letter, p.title()))
				letter++
			}
		}
		for j, h := range f.Heads {
			x := tileLeft + vg.Length(j)*(tileWidth+tileNumber) + tileWidth/2
			write(c, faces().title, ink, vg.Point{X: x, Y: height - 15}, centred, h)
		}
		legend.draw(c, vg.Point{X: width / 2, Y: legend.height() + noteHeight})
		write(c, faces().small, faint, vg.Point{X: width / 2, Y: 6}, centred, subtitle(panels...))
	}}
}

// panels returns all panels, row after row, and the number of columns.
func (f Composite) panels() (all []Panel, columns int) {
	for _, row := range f.Rows {
		all = append(all, row...)
		columns = max(columns, len(row))
	}
	return all, columns
}
