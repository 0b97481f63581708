package report

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"vitrine/service/api"
)

// chart is a picture of intervals over time, as SVG in the page's colours.
type chart struct {
	label string
	names []string
	skip  int  // a curve to leave out, or -1
	zero  bool // whether there is a line at 0
	times []time.Time
	rows  [][]api.Interval
}

const (
	chartWidth  = 760
	chartHeight = 300
	chartLeft   = 62
	chartRight  = 12
	chartTop    = 10
	chartBottom = 28
)

func (c *chart) add(t time.Time, row []api.Interval) {
	c.times, c.rows = append(c.times, t), append(c.rows, row)
}

// span returns the range of the values: of all intervals but the first quarter, which are much wider.
func (c *chart) span() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, row := range c.rows[len(c.rows)/4:] {
		for v, i := range row {
			if v != c.skip {
				low, high = min(low, i.Low), max(high, i.High)
			}
		}
	}
	if c.zero {
		low, high = min(low, 0), max(high, 0)
	}
	if !(high > low) {
		low, high = low-1, low+1
	}
	return low, high
}

// draw returns the picture, and a key below it.
func (c *chart) draw() template.HTML {
	if len(c.rows) < 2 {
		return `<p class="quiet">The picture begins with the second point in time.</p>`
	}
	low, high := c.span()
	first, last := c.times[0], c.times[len(c.times)-1]
	x := func(t time.Time) float64 {
		return chartLeft + (chartWidth-chartLeft-chartRight)*float64(t.Sub(first))/float64(max(last.Sub(first), 1))
	}
	y := func(v float64) float64 {
		return chartTop + (chartHeight-chartTop-chartBottom)*(high-v)/(high-low)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, chartWidth, chartHeight,
		template.HTMLEscapeString(c.label))
	for _, v := range ticks(low, high) {
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text class="value" x="%d" y="%.1f">%s</text>`, chartLeft, chartWidth-chartRight, y(v), y(v), chartLeft-6, y(v)+4, number(v))
	}
	if c.zero {
		fmt.Fprintf(&b, `<line class="zero" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, chartLeft, chartWidth-chartRight,
			y(0), y(0))
	}
	format := "2 Jan"
	switch span := last.Sub(first); { // the labels are a third of the span apart
	case span < 3*time.Minute:
		format = "15:04:05"
	case span < 72*time.Hour:
		format = "2 Jan 15:04"
	}
	for k := range 4 {
		t := first.Add(last.Sub(first) * time.Duration(k) / 3)
		anchor := [4]string{"start", "middle", "middle", "end"}[k]
		fmt.Fprintf(&b, `<text class="time" text-anchor="%s" x="%.1f" y="%d">%s</text>`, anchor, x(t), chartHeight-8,
			t.UTC().Format(format))
	}
	shown := func(v float64) float64 { return y(min(max(v, low), high)) }
	for v := range c.names {
		if v == c.skip {
			continue
		}
		var line, above, below strings.Builder
		for k, row := range c.rows {
			at := x(c.times[k])
			fmt.Fprintf(&line, "%s%.1f %.1f", command(k), at, shown(row[v].Estimate))
			fmt.Fprintf(&above, "%s%.1f %.1f", command(k), at, shown(row[v].High))
			back := len(c.rows) - 1 - k
			fmt.Fprintf(&below, "L%.1f %.1f", x(c.times[back]), shown(c.rows[back][v].Low))
		}
		fmt.Fprintf(&b, `<path class="band %s" d="%s%sZ"/><path class="line %s" d="%s"/>`, colour(v), above.String(),
			below.String(), colour(v), line.String())
	}
	b.WriteString(`</svg><p class="key">`)
	for v, name := range c.names {
		if v != c.skip {
			fmt.Fprintf(&b, `<span class="%s">%s</span> `, colour(v), template.HTMLEscapeString(name))
		}
	}
	b.WriteString(`</p>`)
	return template.HTML(b.String())
}

func command(k int) string {
	if k == 0 {
		return "M"
	}
	return "L"
}

// colour returns the class of a curve. The seventh gets the colour of the first one, and a dashed line.
func colour(v int) string {
	class := fmt.Sprintf("c%d", v%6+1)
	if v >= 6 {
		class += " dashed"
	}
	return class
}

// ticks returns four to eight round values in a range.
func ticks(low, high float64) (all []float64) {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, m := range []float64{1, 2, 5} {
		if (high-low)/(m*step) <= 8 {
			step *= m
			break
		}
	}
	for k := math.Ceil(low / step); k*step <= high; k++ {
		all = append(all, k*step)
	}
	return all
}
