package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"vitrine/paper/tractability"
)

// Tractability draws the cost of algorithms on logarithmic axes: offers in the upper row and observed rounds in the
// lower, against the number of items on the left and the size of an assortment on the right. A cross at the upper edge
// marks a refused size. There must be at least one point.
type Tractability tractability.Survey

func (t Tractability) compose() page {
	styles, entries := t.styles()
	s := sheet{title: tractability.Title, plots: make([][]chart, 2), tile: vg.Point{X: 206, Y: 150},
		note: "× refused: that many assortments; " + t.Machine, between: 50}
	for _, column := range []struct {
		head, name string
		in         func(tractability.Cell) bool
		at         func(tractability.Cell) int
	}{
		{fmt.Sprintf("K = %d", t.Setting.Size), "items N", func(c tractability.Cell) bool {
			return c.Size == t.Setting.Size && slices.Contains(t.Setting.Items, c.Items)
		}, func(c tractability.Cell) int { return c.Items }},
		{fmt.Sprintf("N = %d", t.Setting.Among), "size K of an assortment", func(c tractability.Cell) bool {
			return c.Items == t.Setting.Among && slices.Contains(t.Setting.Sizes, c.Size)
		}, func(c tractability.Cell) int { return c.Size }},
	} {
		for i, quantity := range []struct {
			name string
			of   func(tractability.Point) float64
		}{
			{"an offer, median", func(p tractability.Point) float64 { return p.Offer }},
			{fmt.Sprintf("a round, mean of %d", t.Setting.Rounds),
				func(p tractability.Point) float64 { return p.Round }},
		} {
			var points []costPoint
			for _, p := range t.Points {
				if column.in(p.Cell) {
					const minimum = 1e-9 // seconds, because a measured 0 has no logarithm
					points = append(points, costPoint{p, float64(column.at(p.Cell)), max(quantity.of(p), minimum)})
				}
			}
			c := costs(points, styles)
			c.caption, c.nameX, c.nameY = quantity.name+", "+column.head, column.name, "time"
			s.plots[i] = append(s.plots[i], c)
		}
	}
	width := sheetWidth(2, s.tile.X, s.between)
	s.legend = newLegend(entries, width-2*space)
	return s.page(width)
}

// styles returns the algorithms' styles and names, in the order in which they were measured.
func (t Tractability) styles() (map[string]style, []entry) {
	var names []string
	for _, p := range t.Points {
		if !slices.Contains(names, p.Policy) {
			names = append(names, p.Policy)
		}
	}
	styles := styles(names...)
	var entries []entry
	for _, name := range names {
		entries = append(entries, entry{line(styles[name].line()), name})
	}
	return styles, entries
}

// costPoint is a measured point in a plot.
type costPoint struct {
	tractability.Point
	x, seconds float64
}

// costs returns the chart of points, with a tick at each x and at each power of ten in seconds.
func costs(points []costPoint, styles map[string]style) chart {
	var xs, ys []float64
	var refused []costPoint
	lines := map[string]*series{}
	var order []*series
	slices.SortStableFunc(points, func(a, b costPoint) int { return cmp.Compare(a.x, b.x) })
	for _, p := range points {
		xs = append(xs, p.x)
		if p.Refused != "" {
			refused = append(refused, p)
			continue
		}
		if lines[p.Policy] == nil {
			lines[p.Policy] = &series{style: styles[p.Policy].line()}
			order = append(order, lines[p.Policy])
		}
		l := lines[p.Policy]
		l.x, l.y, ys = append(l.x, p.x), append(l.y, p.seconds), append(ys, p.seconds)
	}
	c := chart{x: spanOf(true, xs), y: spanOf(true, ys)}
	c.x.low, c.x.high = c.x.low-0.04, c.x.high+0.04
	c.y.low, c.y.high = math.Floor(c.y.low), math.Ceil(c.y.high+0.7)
	for _, x := range slices.Compact(xs) {
		c.xTicks = append(c.xTicks, tick{x, number(x)})
	}
	for power := int(c.y.low); power <= int(c.y.high); power++ {
		c.yTicks = append(c.yTicks, tick{math.Pow10(power), seconds(power)})
	}
	for _, l := range slices.Backward(order) {
		c.lines = append(c.lines, *l)
	}
	c.more = func(a axes) { // marks the refused sizes, and writes the number of assortments for the first one
		const radius = 3
		for k, p := range refused {
			pt := vg.Point{X: a.X(a.x.at(p.x)), Y: a.Max.Y - 2*radius}
			a.DrawGlyph(draw.GlyphStyle{Color: styles[p.Policy].color, Radius: radius, Shape: draw.CrossGlyph{}}, pt)
			if f := faces().small; k == 0 {
				write(a, f, faint, vg.Point{X: pt.X - 2*radius, Y: pt.Y - ascent/2*f.Font.Size}, fromEnd,
					"refused: "+p.Refused)
			}
		}
	}
	return c
}

// seconds formats a power of ten in seconds, as in "10 µs".
func seconds(power int) string {
	units := []string{"ns", "µs", "ms", "s"}
	unit := min(max((power+9)/3, 0), len(units)-1)
	return number(math.Pow10(power+9-3*unit)) + " " + units[unit]
}
