package figure

import (
	"fmt"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Composite is a figure of several panels over one legend. The panels are lettered (a), (b), … row
// after row, and only the axes at the left and the lower edge are named.
type Composite struct {
	Title string    // above the figure; may be empty
	Heads []string  // above each column; may be nil
	Rows  [][]Panel // from top to bottom, each from left to right
}

// Lengths of a composite, in points. Two columns are as wide as the text of a
// printed page, so that its letters have the size of footnotes or more.
const (
	tileWidth  = 182 // between the axes
	tileHeight = 122
	minTile    = 84 // a narrower picture has its panels in one column

	tileLeft   = 48 // of the first column: numbers and name of the regret axis
	tileNumber = 36 // of the others: numbers only
	tileTop    = 20 // the caption
	tileBottom = 18 // numbers of the round axis
	tileName   = 18 // the name of the round axis, under the last row
	headHeight = 20
	edge       = 14 // at the right
	noteHeight = 18 // the line under the legend
)

// compose implements [Picture], with the default look.
func (f Composite) compose() page { return lookedComposite{f, Look{}}.compose() }

// compose lays out the panels.
func (f lookedComposite) compose() page {
	panels, columns := f.panels()
	f.look.check(panels...)
	tile := f.tile(columns)
	if tile.X < minTile && columns > 1 {
		f.Composite = f.stacked()
		panels, columns = f.panels()
		tile = f.tile(columns)
		tile.Y = tile.X / 2 // a column is high enough
	}
	styles := styles(panels...)
	var plots []regretPlot
	for _, p := range panels {
		plots = append(plots, newRegretPlot(p, f.look))
	}
	var entries []entry
	for _, l := range labels(plots...) {
		entries = append(entries, entry{line(styles[l.policy].line()), l.name})
	}
	width := tileLeft + vg.Length(columns)*tile.X + vg.Length(columns-1)*tileNumber + edge
	legend := newLegend(entries, width-2*space)
	if f.look.Width == 0 {
		width = max(width, legend.width()+2*space)
	} else if legend.width() > width-2*space { // one column of long names
		legend.columns[0] = width - 2*space
	}
	foot := tileName + legend.height() + noteHeight
	head := vg.Length(0)
	if f.Title != "" {
		head += headHeight
	}
	if f.Heads != nil {
		head += headHeight
	}
	row := tileTop + tile.Y + tileBottom
	height := head + vg.Length(len(f.Rows))*row + foot
	return page{width, height, func(c draw.Canvas) {
		next := 0
		for i, panels := range f.Rows {
			for j := range panels {
				p := plots[next]
				x := tileLeft + vg.Length(j)*(tile.X+tileNumber)
				y := height - head - vg.Length(i+1)*row + tileBottom
				a := p.frame(part(c, x, y, tile.X, tile.Y))
				if i == len(f.Rows)-1 {
					a.nameX("round t")
				}
				if j == 0 {
					a.nameY(p.regretName("cumulative"))
				}
				p.curves(a, styles)
				caption := p.title()
				if len(plots) > 1 {
					caption = fmt.Sprintf("(%c) %s", 'a'+next, caption)
				}
				writeIn(c, faces().caption, ink, vg.Point{X: x, Y: y + tile.Y + 6}, fromLeft, tile.X+edge, caption)
				next++
			}
		}
		if f.Title != "" {
			writeIn(c, faces().title, ink, vg.Point{X: width / 2, Y: height - 15}, centred, width-2*space, f.Title)
		}
		for j, h := range f.Heads {
			x := tileLeft + vg.Length(j)*(tile.X+tileNumber) + tile.X/2
			writeIn(c, faces().title, ink, vg.Point{X: x, Y: height - head + headHeight - 15}, centred, tile.X+edge, h)
		}
		legend.draw(c, vg.Point{X: width / 2, Y: legend.height() + noteHeight})
		writeIn(c, faces().small, faint, vg.Point{X: width / 2, Y: 6}, centred, width-2*space, f.look.subtitle(panels...))
	}}
}

// tile returns the size of a panel of a composite with the given number of columns.
func (f lookedComposite) tile(columns int) vg.Point {
	width := vg.Length(tileWidth)
	if f.look.Width > 0 {
		width = (f.look.Width - tileLeft - vg.Length(columns-1)*tileNumber - edge) / vg.Length(columns)
	}
	return vg.Point{X: width, Y: width * tileHeight / tileWidth}
}

// stacked returns the composite with its panels in one column, in their order, and the heads of their columns
// in their titles.
func (f Composite) stacked() Composite {
	column := Composite{Title: f.Title}
	for _, row := range f.Rows {
		for j, p := range row {
			if f.Heads != nil {
				p.Title = f.Heads[j] + ", " + p.title()
			}
			column.Rows = append(column.Rows, []Panel{p})
		}
	}
	return column
}

// panels returns all panels, row after row, and the number of columns.
func (f Composite) panels() (all []Panel, columns int) {
	for _, row := range f.Rows {
		all = append(all, row...)
		columns = max(columns, len(row))
	}
	return all, columns
}
