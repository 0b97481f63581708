package figure

import "gonum.org/v1/plot/vg"

// Composite is a figure of several panels above one legend. The panels are lettered (a), (b), … row by row, and only
// the axes at the left and lower edges are named.
type Composite struct {
	Title string    // above the figure; may be empty
	Heads []string  // above each column; may be nil
	Rows  [][]Panel // from top to bottom, each from left to right
}

// Lengths in a composite, in points. Two columns are as wide as the text on a printed page, so that letters are at
// least as large as footnotes.
const (
	tileWidth  = 182 // between the axes
	tileHeight = 122
	minTile    = 84 // a narrower picture uses a single column
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
		tile.Y = tile.X / 2 // high enough for a single column
	}
	styles := styles(policies(panels...)...)
	var plots []regretPlot
	s := sheet{title: f.Title, heads: f.Heads, tile: tile, note: f.look.subtitle(panels...)}
	for _, row := range f.Rows {
		s.plots = append(s.plots, nil)
		for _, p := range row {
			plot := newRegretPlot(p, f.look)
			plots = append(plots, plot)
			last := &s.plots[len(s.plots)-1]
			*last = append(*last, plot.chart(styles, tile.X))
		}
	}
	var entries []entry
	for _, l := range labels(plots...) {
		entries = append(entries, entry{line(styles[l.policy].line()), l.name})
	}
	width := sheetWidth(columns, tile.X, tileNumber)
	s.legend = newLegend(entries, width-2*space)
	if f.look.Width == 0 {
		width = max(width, s.legend.width()+2*space)
	} else if s.legend.width() > width-2*space { // one column for long names
		s.legend.columns[0] = width - 2*space
	}
	return s.page(width)
}

// tile returns the size of a panel in a composite with the given number of columns.
func (f lookedComposite) tile(columns int) vg.Point {
	width := vg.Length(tileWidth)
	if f.look.Width > 0 {
		width = (f.look.Width - sheetWidth(columns, 0, tileNumber)) / vg.Length(columns)
	}
	return vg.Point{X: width, Y: width * tileHeight / tileWidth}
}

// stacked returns the composite with its panels in one column, in order, and the column heads moved into their titles.
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

// panels returns all panels, row by row, and the number of columns.
func (f Composite) panels() (all []Panel, columns int) {
	for _, row := range f.Rows {
		all = append(all, row...)
		columns = max(columns, len(row))
	}
	return all, columns
}
