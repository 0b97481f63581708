package figure

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	maxPoints = 200 // per curve

	edgeWidth = 0.5
	bandAlpha = 20 // out of 255, so that the bands below show through
	edgeAlpha = 80

	roundTick  = 34 // room for a number below the round axis
	logMargin  = 0.04
	settledOff = 50 // a logarithmic axis begins with the regrets in round T/50
)

// trace is a curve at the rounds to draw: a few evenly spaced ones, ending with T.
type trace struct {
	policy string
	rounds []int
	at     []interval
}

func newTrace(c Curve, b Band) trace {
	rounds := c.rounds()
	n := min(rounds, maxPoints)
	tr := trace{c.Policy, make([]int, n), make([]interval, n)}
	for i := range n {
		tr.rounds[i] = (i + 1) * rounds / n
		tr.at[i] = b.of(c.after(tr.rounds[i]))
	}
	return tr
}

// last returns the interval after round T.
func (tr trace) last() interval { return tr.at[len(tr.at)-1] }

// regretPlot is a panel with a look, ready to be drawn.
type regretPlot struct {
	Panel
	look   Look
	traces []trace
}

func newRegretPlot(p Panel, l Look) regretPlot {
	plot := regretPlot{Panel: p, look: l}
	for _, c := range p.Curves {
		plot.traces = append(plot.traces, newTrace(c, l.Band))
	}
	return plot
}

func (p regretPlot) rounds() int { return p.Curves[0].rounds() }

// negligible bounds the panel's rounding errors: a millionth of its largest regret, but at least leastRegret and at most
// rounding. Differences do not tell how large the regrets were.
func (p Panel) negligible() float64 {
	if p.Against != "" {
		return rounding
	}
	highest := 0.0
	for _, c := range p.Curves {
		for _, run := range c.Regret {
			highest = max(highest, slices.Max(run))
		}
	}
	return min(rounding, max(rounding*highest, leastRegret))
}

// highest returns the largest magnitude of a regret or a difference in a band, or 1 if all are rounding errors.
func (p regretPlot) highest() float64 {
	span := p.extent()
	if highest := max(span.high, -span.low); highest >= p.negligible() {
		return highest
	}
	return 1
}

// extent returns the range of the bands and 0. Cumulative regret is not negative, so bands of regrets are cut off at 0.
func (p regretPlot) extent() (s span) {
	for _, tr := range p.traces {
		for _, i := range tr.at {
			s.low, s.high = min(s.low, i.low, i.mean), max(s.high, i.high, i.mean)
		}
	}
	if p.Against == "" {
		s.low = 0
	}
	return s
}

// span returns the range of the regret axis. A logarithmic axis reaches down to the smallest mean after the first
// rounds, in which all regrets are small; the curves enter the plot from below.
func (p regretPlot) span() span {
	s := p.extent()
	switch {
	case p.look.Log:
		low, negligible := math.Inf(1), p.negligible()
		for _, tr := range p.traces {
			for i, at := range tr.at {
				if at.mean >= negligible && tr.rounds[i]*settledOff >= p.rounds() {
					low = min(low, at.mean)
				}
			}
		}
		s = span{math.Log10(low), math.Log10(s.high), true}
		margin := max(logMargin*(s.high-s.low), 0.1)
		return span{s.low - margin, s.high + margin, true}
	case p.Against == "":
		return span{0, 1.04 * p.highest(), false}
	case s.high-s.low < p.negligible():
		return span{-1, 1, false}
	}
	return s.widened(0.04)
}

// Zero returns a policy with regret 0 in every round, if there is one: it cannot be drawn on a logarithmic scale.
func (p Panel) Zero() (policy string, ok bool) {
	negligible := p.negligible()
	i := slices.IndexFunc(p.Curves, func(c Curve) bool {
		return !slices.ContainsFunc(c.Regret, func(run []float64) bool { return slices.Max(run) >= negligible })
	})
	if i < 0 {
		return "", false
	}
	return p.Curves[i].Policy, true
}

// chart returns the panel's chart for a plot of a width.
func (p regretPlot) chart(styles map[string]style, width vg.Length) chart {
	c := chart{
		caption: p.title(), nameX: "round t", nameY: p.regretName("cumulative"),
		x: span{0, float64(p.rounds()), false}, y: p.span(), more: func(a axes) { p.curves(a, styles) },
	}
	c.xTicks = c.x.sparse(1, min(6, max(float64(width/roundTick), 1)))
	return c
}

// regretName returns the name of the regret axis, after an adjective of regret.
func (p regretPlot) regretName(kind string) string {
	if p.Against == "" {
		return kind + " regret"
	}
	return "regret minus " + p.look.name(p.Against)
}

// curves draws the bands and the lines above them, with the first curve on top.
func (p regretPlot) curves(a axes, styles map[string]style) {
	if p.Against != "" {
		a.line(axisLine, []float64{a.x.low, a.x.high}, []float64{0, 0})
	}
	line := func(tr trace, of func(interval) float64) []vg.Point {
		points := []vg.Point{a.at(0, 0)}
		for i, at := range tr.at {
			v := of(at)
			if p.Against == "" {
				v = max(v, 0)
			}
			points = append(points, a.at(float64(tr.rounds[i]), v))
		}
		return points
	}
	for _, tr := range slices.Backward(p.traces) {
		if last := tr.last(); last.low == last.high {
			continue
		}
		c := styles[tr.policy].color
		upper := line(tr, func(i interval) float64 { return i.high })
		lower := line(tr, func(i interval) float64 { return i.low })
		edge := draw.LineStyle{Color: transparent(c, edgeAlpha), Width: edgeWidth}
		a.StrokeLines(edge, a.ClipLinesXY(upper, lower)...)
		slices.Reverse(lower)
		a.FillPolygon(transparent(c, bandAlpha), a.ClipPolygonXY(append(upper, lower...)))
	}
	for _, tr := range slices.Backward(p.traces) {
		a.StrokeLines(styles[tr.policy].line(), a.ClipLinesXY(line(tr, func(i interval) float64 { return i.mean }))...)
	}
}

func transparent(c color.NRGBA, alpha uint8) color.NRGBA {
	c.A = alpha
	return c
}

// format returns the format for a number with decimals; differences get a sign.
func (p Panel) format() string {
	if p.Against == "" {
		return "%.*f"
	}
	return "%+.*f"
}

func (p Panel) title() string { return cmp.Or(p.Title, p.Name) }

// subtitle describes the content of the panels.
func (l Look) subtitle(panels ...Panel) string {
	minimum, maximum := panels[0].Curves[0].seeds(), 0
	for _, p := range panels {
		minimum, maximum = min(minimum, p.Curves[0].seeds()), max(maximum, p.Curves[0].seeds())
	}
	var words string
	switch {
	case maximum == 1:
		words = "1 seed"
	case minimum == maximum:
		words = l.Band.words(fmt.Sprintf("%d seeds", maximum))
	default:
		words = l.Band.words(fmt.Sprintf("%d to %d seeds", minimum, maximum))
	}
	if panels[0].Against != "" {
		words = "paired differences: " + words
	}
	return words
}
