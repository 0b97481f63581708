package figure

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

var (
	ink      = color.NRGBA{0, 0, 0, 255}
	faint    = color.NRGBA{95, 95, 95, 255}
	gridLine = draw.LineStyle{Color: color.NRGBA{228, 228, 228, 255}, Width: 0.6}
	leader   = draw.LineStyle{Color: color.NRGBA{150, 150, 150, 255}, Width: 0.5}
	axisLine = draw.LineStyle{Color: color.NRGBA{95, 95, 95, 255}, Width: 0.8}
)

const (
	lineWidth = 1.6 // points
	edgeWidth = 0.5
	bandAlpha = 28 // of 255, so that a band shows those under it
	edgeAlpha = 80

	maxPoints = 200 // of a curve
)

// axes is the rectangle of a plot, which maps rounds 0, …, T and regrets from
// 0 to the page.
type axes struct {
	draw.Canvas
	rounds  int     // T
	highest float64 // regret at the upper edge
}

func newAxes(p Panel, c draw.Canvas) axes {
	return axes{Canvas: c, rounds: len(p.Curves[0].Mean), highest: 1.04 * p.highest()}
}

// highest is the upper end of the highest band, or 1 where no policy has any
// regret beyond rounding.
func (p Panel) highest() float64 {
	highest := 0.0
	for _, c := range p.Curves {
		for t, mean := range c.Mean {
			highest = max(highest, mean+c.sd(t))
		}
	}
	if highest < rounding {
		return 1
	}
	return highest
}

func (c Curve) sd(t int) float64 {
	if c.SD == nil {
		return 0
	}
	return c.SD[t]
}

// at is the place of a regret after some rounds. Cumulative regret is not
// negative: a band that reaches below 0 is cut there.
func (a axes) at(round int, regret float64) vg.Point {
	return vg.Point{
		X: a.X(float64(round) / float64(a.rounds)),
		Y: a.Y(max(regret, 0) / a.highest),
	}
}

// draw frames the panel: title, grid and axes.
func (a axes) draw(p Panel) {
	f := faces()
	title := p.Title
	if title == "" {
		title = p.Name
	}
	write(a, f.title, ink, vg.Point{X: a.Min.X, Y: a.Max.Y + 20}, fromLeft, title)
	write(a, f.small, faint, vg.Point{X: a.Min.X, Y: a.Max.Y + 7}, fromLeft, subtitle(p))

	for _, v := range ticks(float64(a.rounds), 1) {
		x := a.at(int(v), 0).X
		a.StrokeLine2(gridLine, x, a.Min.Y, x, a.Max.Y)
		write(a, f.small, faint, vg.Point{X: x, Y: a.Min.Y - 12}, centred, number(v))
	}
	for _, v := range ticks(a.highest, 0) {
		y := a.at(0, v).Y
		a.StrokeLine2(gridLine, a.Min.X, y, a.Max.X, y)
		write(a, f.small, faint, vg.Point{X: a.Min.X - 5, Y: y - ascent/2*f.small.Font.Size}, fromEnd, number(v))
	}
	a.StrokeLines(axisLine, []vg.Point{{X: a.Min.X, Y: a.Max.Y}, a.Min, {X: a.Max.X, Y: a.Min.Y}})
	write(a, f.text, ink, vg.Point{X: a.Center().X, Y: a.Min.Y - 28}, centred, "round t")
	writeUp(a, f.text, ink, vg.Point{X: a.Min.X - 36, Y: a.Center().Y}, "cumulative expected regret")
}

// subtitle says what is drawn.
func subtitle(p Panel) string {
	seeds := p.Curves[0].Seeds
	if seeds == 1 {
		return "1 seed"
	}
	return fmt.Sprintf("mean ± one standard deviation over %d seeds", seeds)
}

// ticks are the multiples in [0, high] of 1, 2 or 5 times a power of ten, at
// least the least, that leave at most six steps.
func ticks(high, least float64) []float64 {
	power := math.Pow10(int(math.Floor(math.Log10(high / 6))))
	step := power
	for _, m := range []float64{1, 2, 5, 10} {
		if step = m * power; high/step <= 6 {
			break
		}
	}
	step = max(step, least)
	var all []float64
	for k := range int(high/step+1e-9) + 1 {
		all = append(all, float64(k)*step)
	}
	return all
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// curves draws the bands and over them the lines, the first curve on top.
func (a axes) curves(p Panel, styles map[string]style) {
	for _, c := range slices.Backward(p.Curves) {
		if c.SD == nil {
			continue
		}
		upper, lower := a.trace(c, +1), a.trace(c, -1)
		edge := draw.LineStyle{Color: transparent(styles[c.Policy].color, edgeAlpha), Width: edgeWidth}
		a.StrokeLines(edge, upper, lower)
		slices.Reverse(lower)
		a.FillPolygon(transparent(styles[c.Policy].color, bandAlpha), append(upper, lower...))
	}
	for _, c := range slices.Backward(p.Curves) {
		a.StrokeLines(styles[c.Policy].line(), a.trace(c, 0))
	}
}

// trace follows mean + k·sd from round 0, where regret is 0, at a few rounds
// that are evenly spaced and end with T.
func (a axes) trace(c Curve, k float64) []vg.Point {
	n := min(a.rounds, maxPoints)
	line := make([]vg.Point, n+1)
	line[0] = a.at(0, 0)
	for i := 1; i <= n; i++ {
		t := i * a.rounds / n
		line[i] = a.at(t, c.Mean[t-1]+k*c.sd(t-1))
	}
	return line
}

func transparent(c color.NRGBA, alpha uint8) color.NRGBA {
	c.A = alpha
	return c
}
