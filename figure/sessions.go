package figure

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"vitrine/paper/sessions"
)

// Sessions draws the earnings of sessions of pages, as a share of the optimum, against the number of sessions: a panel for each
// world, and the exact plans as level lines.
type Sessions sessions.Report

// compose lays out the figure.
func (r Sessions) compose() page {
	report := sessions.Report(r)
	names := []string{sessions.Optimum}
	for _, p := range r.Study.Policies {
		names = append(names, p.Label)
	}
	styles := styles(names...)
	var entries []entry
	for k, label := range report.Labels() {
		if _, ok := styles[label]; !ok {
			styles[label] = style{grey, []vg.Length{3, vg.Length(2 * k * k)}}
		}
		entries = append(entries, entry{line(styles[label].line()), label})
	}
	s := sheet{title: r.Study.Title, tile: vg.Point{X: 182, Y: 130}, note: fmt.Sprintf("%s; each point is the "+
		"mean of %d sessions", r.Study.Over(), r.Study.Sessions/max(r.Study.Points, 1))}
	columns := 0
	for _, worlds := range r.Study.Worlds {
		columns = max(columns, len(worlds))
		var row []chart
		for _, w := range worlds {
			c := chart{caption: w.String(), nameX: "session", nameY: "share of the optimum"}
			for _, label := range slices.Backward(report.Labels()) {
				at, mean, se := report.Curve(w, label)
				c.lines = append(c.lines, r.series(styles[label].line(), at, mean, se))
			}
			row = append(row, c.fitted(false, false))
		}
		s.plots = append(s.plots, row)
	}
	width := sheetWidth(columns, s.tile.X, tileNumber)
	s.legend = newLegend(entries, width-2*space)
	return s.page(width)
}

// series returns the line of a policy. An exact plan has one point, which becomes a level line.
func (r Sessions) series(style draw.LineStyle, at, mean, se []float64) series {
	s := series{style: style, x: at, y: mean, bare: true}
	if at[0] == 0 {
		s.x, s.y = []float64{0, float64(r.Study.Sessions)}, []float64{mean[0], mean[0]}
		return s
	}
	for i, m := range mean {
		s.low, s.high = append(s.low, m-se[i]), append(s.high, m+se[i])
	}
	return s
}
