package figure

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

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

// span is what an axis shows.
type span struct{ low, high float64 }

// axes is the rectangle of a plot, which maps x and y to the page.
type axes struct {
	draw.Canvas
	x, y span
}

// at is the place of (x, y).
func (a axes) at(x, y float64) vg.Point {
	return vg.Point{
		X: a.X((x - a.x.low) / (a.x.high - a.x.low)),
		Y: a.Y((y - a.y.low) / (a.y.high - a.y.low)),
	}
}

// regretAxes has rounds 0, …, T across and regrets from 0 up.
func regretAxes(p Panel, c draw.Canvas) axes {
	return axes{c, span{0, float64(len(p.Curves[0].Mean))}, span{0, 1.04 * p.highest()}}
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

// head writes what stands above a lone panel.
func (a axes) head(p Panel) {
	write(a, faces().title, ink, vg.Point{X: a.Min.X, Y: a.Max.Y + 20}, fromLeft, p.title())
	write(a, faces().small, faint, vg.Point{X: a.Min.X, Y: a.Max.Y + 7}, fromLeft, subtitle(p))
}

// ticks are those of rounds and regrets.
func (a axes) ticks() (x, y []float64) { return ticks(a.x, 1), ticks(a.y, 0) }

// frame draws a grid through the ticks, their numbers, and the axes.
func (a axes) frame(xs, ys []float64) {
	for _, v := range xs {
		x := a.at(v, 0).X
		a.StrokeLine2(gridLine, x, a.Min.Y, x, a.Max.Y)
	}
	for _, v := range ys {
		y := a.at(0, v).Y
		a.StrokeLine2(gridLine, a.Min.X, y, a.Max.X, y)
	}
	a.numbers(xs, ys)
	a.StrokeLines(axisLine, []vg.Point{{X: a.Min.X, Y: a.Max.Y}, a.Min, {X: a.Max.X, Y: a.Min.Y}})
}

// numbers writes the numbers of the ticks.
func (a axes) numbers(xs, ys []float64) {
	f := faces().small
	for _, v := range xs {
		write(a, f, faint, vg.Point{X: a.at(v, 0).X, Y: a.Min.Y - 12}, centred, number(v))
	}
	for _, v := range ys {
		write(a, f, faint, vg.Point{X: a.Min.X - 5, Y: a.at(0, v).Y - ascent/2*f.Font.Size}, fromEnd, number(v))
	}
}

// nameX writes what the axis across shows.
func (a axes) nameX(name string) {
	write(a, faces().text, ink, vg.Point{X: a.Center().X, Y: a.Min.Y - 28}, centred, name)
}

// nameY writes what the axis up shows.
func (a axes) nameY(name string) {
	writeUp(a, faces().text, ink, vg.Point{X: a.Min.X - 36, Y: a.Center().Y}, name)
}

// subtitle says what is drawn.
func subtitle(panels ...Panel) string {
	least, most := panels[0].Curves[0].Seeds, 0
	for _, p := range panels {
		least, most = min(least, p.Curves[0].Seeds), max(most, p.Curves[0].Seeds)
	}
	switch {
	case most == 1:
		return "1 seed"
	case least == most:
		return fmt.Sprintf("mean ± one standard deviation over %d seeds", most)
	default:
		return fmt.Sprintf("mean ± one standard deviation over %d to %d seeds", least, most)
	}
}

// ticks are the multiples in the span of 1, 2 or 5 times a power of ten, at
// least the least, that leave at most six steps.
func ticks(s span, least float64) []float64 {
	length := s.high - s.low
	power := math.Pow10(int(math.Floor(math.Log10(length / 6))))
	step := power
	for _, m := range []float64{1, 2, 5, 10} {
		if step = m * power; length/step <= 6 {
			break
		}
	}
	step = max(step, least)
	var all []float64
	for k := int(math.Ceil(s.low/step - 1e-9)); k <= int(math.Floor(s.high/step+1e-9)); k++ {
		all = append(all, float64(k)*step)
	}
	return all
}

// number writes a tick, with the minus of print.
func number(v float64) string {
	return strings.Replace(strconv.FormatFloat(v, 'g', 6, 64), "-", "−", 1)
}

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
// that are evenly spaced and end with T. Cumulative regret is not negative: a
// band that reaches below 0 is cut there.
func (a axes) trace(c Curve, k float64) []vg.Point {
	rounds := len(c.Mean)
	n := min(rounds, maxPoints)
	line := make([]vg.Point, n+1)
	line[0] = a.at(0, 0)
	for i := 1; i <= n; i++ {
		t := i * rounds / n
		line[i] = a.at(float64(t), max(c.Mean[t-1]+k*c.sd(t-1), 0))
	}
	return line
}

func transparent(c color.NRGBA, alpha uint8) color.NRGBA {
	c.A = alpha
	return c
}
