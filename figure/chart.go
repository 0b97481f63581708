package figure

import (
	"cmp"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// chart is a plot of lines. Its axes may be logarithmic.
type chart struct {
	caption        string
	x, y           span
	xTicks, yTicks []tick // nil means the span's own
	nameX, nameY   string // names of the axes
	lines          []series
	more           func(a axes) // draws on top, unless nil
}

// series is a line of a chart.
type series struct {
	name      string
	style     draw.LineStyle
	x, y      []float64
	low, high []float64 // bars at the points; nil for none
	bare      bool      // whether to leave out marks at the points
}

// fitted returns the chart with spans that fit its lines.
func (ch chart) fitted(logX, logY bool) chart {
	var xs, ys [][]float64
	for _, s := range ch.lines {
		xs, ys = append(xs, s.x), append(ys, s.y, s.low, s.high)
	}
	ch.x, ch.y = spanOf(logX, xs...), spanOf(logY, ys...)
	if logX {
		ch.x = ch.x.widened(0.04)
	}
	if logY {
		ch.y = ch.y.widened(0.04)
	} else {
		ch.y.low = min(ch.y.low, 0)
		ch.y.high += 0.04 * (ch.y.high - ch.y.low)
	}
	return ch
}

// draw draws the chart in its plot's rectangle.
func (ch chart) draw(c draw.Canvas) axes {
	a := axes{c, ch.x, ch.y}
	if ch.xTicks == nil {
		ch.xTicks = ch.x.ticks()
	}
	if ch.yTicks == nil {
		ch.yTicks = ch.y.ticks()
	}
	a.frame(ch.xTicks, ch.yTicks)
	a.caption(ch.caption)
	for _, s := range ch.lines {
		a.line(s.style, s.x, s.y)
		for i, x := range s.x {
			if a.y.at(s.y[i]) < 0 || a.x.at(x) < 0 {
				continue
			}
			if s.low != nil {
				a.bar(s.style, x, s.low[i], s.high[i])
			}
			if !s.bare {
				dot(a.Canvas, s.style.Color, 1.7, a.at(x, s.y[i]), draw.LineStyle{})
			}
		}
	}
	if ch.more != nil {
		ch.more(a)
	}
	return a
}

// sheet is a page with rows of equally large plots above one legend, with a note below. The plots are lettered, and
// only the axes at the left and lower edges are named.
type sheet struct {
	title  string   // may be empty
	heads  []string // above each column; may be nil
	plots  [][]chart
	tile   vg.Point
	legend legend
	note   string
	named  bool // whether every chart names its axes and comes with its own legend

	between vg.Length // two columns; 0 means tileNumber
}

// Lengths on a sheet, in points.
const (
	tileLeft   = 48 // left of the first column: numbers and name of the regret axis
	tileNumber = 36 // left of the others: numbers only
	tileTop    = 20 // caption
	tileBottom = 18 // numbers on the round axis
	tileName   = 18 // name of the round axis, under the last row
	headHeight = 20
	edge       = 14 // right margin
	noteHeight = 18 // line under the legend
)

// sheetWidth returns the width of adjacent plots.
func sheetWidth(columns int, tile, between vg.Length) vg.Length {
	return tileLeft + vg.Length(columns)*tile + vg.Length(columns-1)*between + edge
}

func (s sheet) page(width vg.Length) page {
	between, name := cmp.Or(s.between, tileNumber), func(int) vg.Length { return 0 }
	foot := vg.Length(noteHeight)
	if !s.named {
		foot += tileName + s.legend.height()
	} else {
		name = func(i int) (h vg.Length) { // under a row: the axis name and the longest legend
			for _, ch := range s.plots[i] {
				h = max(h, vg.Length(len(ch.lines))*rowHeight)
			}
			return tileName + h + space
		}
	}
	height := foot
	if s.title != "" {
		height += headHeight
	}
	if s.heads != nil {
		height += headHeight
	}
	for i := range s.plots {
		height += tileTop + s.tile.Y + tileBottom + name(i)
	}
	return page{width, height, func(c draw.Canvas) {
		y, letter := height, 'a'
		if s.title != "" {
			writeIn(c, faces().title, ink, textLine{vg.Point{X: width / 2, Y: y - 15}, centred, width - 2*space},
				s.title)
			y -= headHeight
		}
		at := func(j int) vg.Length { return tileLeft + vg.Length(j)*(s.tile.X+between) }
		for j, h := range s.heads {
			writeIn(c, faces().title, ink, textLine{vg.Point{X: at(j) + s.tile.X/2, Y: y - 15}, centred,
				s.tile.X + edge}, h)
		}
		if s.heads != nil {
			y -= headHeight
		}
		for i, row := range s.plots {
			y -= tileTop + s.tile.Y
			for j, ch := range row {
				if len(s.plots) > 1 || len(row) > 1 {
					ch.caption = "(" + string(letter) + ") " + ch.caption
				}
				letter++
				if !s.named && i < len(s.plots)-1 {
					ch.nameX = ""
				}
				if !s.named && j > 0 {
					ch.nameY = ""
				}
				a := ch.draw(part(c, at(j), y, s.tile.X, s.tile.Y))
				a.name(ch.nameX, ch.nameY, 36)
				if s.named {
					ch.legend(a)
				}
			}
			y -= tileBottom + name(i)
		}
		if !s.named {
			s.legend.draw(c, vg.Point{X: width / 2, Y: s.legend.height() + noteHeight})
		}
		writeIn(c, faces().small, faint, textLine{vg.Point{X: width / 2, Y: 6}, centred, width - 2*space}, s.note)
	}}
}

// legend names the lines under the chart.
func (ch chart) legend(a axes) {
	at := vg.Point{X: a.Min.X, Y: a.Min.Y - tileBottom - tileName - rowHeight/2}
	for _, s := range ch.lines {
		a.StrokeLine2(s.style, at.X, at.Y, at.X+sample, at.Y)
		write(a, faces().small, ink, at.Add(vg.Point{X: sample + space, Y: -ascent / 2 * faces().small.Font.Size}),
			fromLeft, s.name)
		at.Y -= rowHeight
	}
}
