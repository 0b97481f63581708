package figure

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"vitrine/internal/hint"
)

// Lengths in points.
const (
	minCell, maxCell    = 40, 64 // height of a cell in a heat map
	cellAspect          = 1.6    // maximum ratio of its width to its height
	searchWidth         = 420    // of the plot, if its cells allow it
	searchHeight        = 210
	searchTop           = 54      // space for the title
	colourWidth         = 12      // of the colour bar
	minBar, maxBar      = 60, 120 // height of the colour bar
	keyWidth, keyHeight = 18, 18  // of a sample in the key, and between lines
	settingRadius       = 3.4
	ringRadius          = 7.5 // around a dot
)

// compose implements [Picture]. The axes are the first two parameters with several values. For each pair of values the
// picture shows the best setting over the other parameters: as a heat map if every pair was tried, and otherwise as
// coloured dots. With one parameter it shows dots with their standard errors.
//
// A setting is drawn by its regret minus the winner's, on the seeds that both have played. A setting that was stopped
// after a few seeds is marked.
//
// compose panics for a tuning without settings or parameters.
func (t Tuning) compose() page {
	s := newSearch(t)
	width, height := s.size()
	return page{width, height, s.draw}
}

// search is the layout for a tuning.
type search struct {
	Tuning
	x, y     scale  // with one parameter, y shows regrets
	xAt, yAt int    // parameters on the axes; yAt is -1 with one parameter
	marks    []mark // best last, on top
	heat     bool
	regrets  span    // including error bars, with one parameter
	highest  float64 // excess regret over the winner's at the end of the colours

	plotWidth, plotHeight vg.Length
	cell                  vg.Point // cell size in the heat map
}

// mark is a setting to draw.
type mark struct {
	Setting
	winner bool
}

func newSearch(t Tuning) search {
	if len(t.Settings) == 0 || len(t.Parameters) == 0 {
		panic("figure: tuning " + t.Name + " has no settings or no parameters")
	}
	s := search{Tuning: t, yAt: -1}
	var scales []scale
	var at []int
	for i, key := range t.Parameters {
		var values []string
		for _, setting := range t.Settings {
			values = append(values, setting.Values[i])
		}
		if scale := newScale(key, values); len(scale.steps) > 1 && len(scales) < 2 {
			scales, at = append(scales, scale), append(at, i)
		}
	}
	if len(scales) == 0 {
		scales, at = []scale{newScale(t.Parameters[0], t.Settings[0].Values[:1])}, []int{0}
	}
	s.x, s.xAt = scales[0], at[0]
	if len(scales) == 2 {
		s.y, s.yAt = scales[1], at[1]
	}
	s.choose()
	s.heat = s.yAt >= 0 && s.x.few() && s.y.few() && len(s.marks) == len(s.x.steps)*len(s.y.steps)
	for _, m := range s.marks {
		s.include(m.Setting)
	}
	if _, _, ok := s.place(t.Configured); ok && s.yAt < 0 {
		s.include(t.Configured)
	}
	if s.highest < rounding {
		s.highest, s.regrets.high = 1, 1
	}
	s.regrets = s.regrets.widened(0.05)
	s.plotWidth, s.plotHeight = plotWidth, plotHeight
	if s.heat {
		columns, rows := vg.Length(len(s.x.steps)), vg.Length(len(s.y.steps))
		s.cell.Y = min(max(searchHeight/rows, minCell), maxCell)
		s.cell.X = min(s.cell.Y*cellAspect, max(searchWidth/columns, minCell*cellAspect))
		s.plotWidth, s.plotHeight = columns*s.cell.X, rows*s.cell.Y
	}
	return s
}

// include extends the range of regrets to a setting.
func (s *search) include(o Setting) {
	low, high := o.Over, o.Over
	if s.yAt < 0 && !math.IsNaN(o.OverSE) {
		low, high = o.Over-o.OverSE, o.Over+o.OverSE
	}
	s.highest = max(s.highest, high)
	s.regrets.low, s.regrets.high = min(s.regrets.low, low), s.highest
}

// axes returns the plot's axes, from 0 to 1 for a parameter.
func (s search) axes(c draw.Canvas) axes {
	a := axes{c, span{0, 1, false}, span{0, 1, false}}
	if s.yAt < 0 {
		a.y = s.regrets
	}
	return a
}

// place returns a setting's place on the axes; ok is false if its values are not on them.
func (s search) place(o Setting) (x, y float64, ok bool) {
	x, ok = s.x.at(o.Values[s.xAt])
	if s.yAt < 0 {
		return x, o.Over, ok
	}
	y, onY := s.y.at(o.Values[s.yAt])
	return x, y, ok && onY
}

// choose picks the best setting for each place.
func (s *search) choose() {
	type pair struct{ x, y string }
	seen := map[pair]bool{}
	for i, o := range s.Settings {
		p := pair{x: o.Values[s.xAt]}
		if s.yAt >= 0 {
			p.y = o.Values[s.yAt]
		}
		if !seen[p] {
			seen[p] = true
			s.marks = append(s.marks, mark{o, i == 0})
		}
	}
	slices.Reverse(s.marks)
	if s.yAt < 0 {
		return
	}
	// The configured setting can also be the best at its place.
	if _, _, ok := s.place(s.Configured); !ok {
		return
	}
	for i, m := range s.marks {
		same := m.Values[s.xAt] == s.Configured.Values[s.xAt] && m.Values[s.yAt] == s.Configured.Values[s.yAt]
		if same && !m.winner && s.Configured.Over < m.Over {
			s.marks[i].Setting = s.Configured
		}
	}
}

// others returns the parameters without an axis, for which the best values are shown.
func (s search) others() []string {
	var list []string
	for i, key := range s.Parameters {
		varies := slices.ContainsFunc(s.Settings, func(o Setting) bool {
			return o.Values[i] != s.Settings[0].Values[i]
		})
		if varies && i != s.xAt && i != s.yAt {
			list = append(list, key)
		}
	}
	return list
}

func (s search) left() vg.Length {
	widest := vg.Length(0)
	for _, t := range s.yTicks() {
		widest = max(widest, faces().small.Width(t.text))
	}
	return widest + 34
}

func (s search) size() (width, height vg.Length) {
	inside := s.plotWidth + gap + s.sideWidth()
	for _, line := range s.subtitle() {
		inside = max(inside, faces().small.Width(line))
	}
	return s.left() + inside + 2*space, searchTop + max(s.plotHeight, s.sideHeight()) + bottom
}

// sideWidth returns the width of the key next to the plot.
func (s search) sideWidth() vg.Length {
	widest := faces().small.Width(colourTitle)
	for _, k := range s.key() {
		widest = max(widest, keyWidth+space+faces().small.Width(k.text))
	}
	return widest
}

func (s search) sideHeight() vg.Length {
	height := vg.Length(len(s.key()) * keyHeight)
	if s.yAt >= 0 {
		height += s.barHeight() + 2*keyHeight
	}
	return height
}

func (s search) barHeight() vg.Length {
	return min(max(s.plotHeight-vg.Length(len(s.key())+2)*keyHeight, minBar), maxBar)
}

const colourTitle = "regret over the winner's"

// subtitle describes the picture and names the winner.
func (s search) subtitle() [2]string {
	w := s.Settings[0]
	var values []string
	for i, key := range s.Parameters {
		values = append(values, key+" = "+w.Values[i])
	}
	d := decimals(s.highest)
	first := fmt.Sprintf("winner: %s, regret %s on %s",
		strings.Join(values, ", "), withError("%.*f", d, w.Regret, w.SE), hint.Count(w.Seeds, "seed"))
	second := fmt.Sprintf("as configured: %s over the winner's", signedError(d, s.Configured.Over, s.Configured.OverSE))
	if s.yAt < 0 && !math.IsNaN(w.OverSE) {
		second += "; bars are standard errors"
	}
	if others := s.others(); len(others) > 0 {
		second += "; each with its best " + strings.Join(others, " and ")
	}
	return [2]string{first, second}
}

// withError formats an estimate, with its standard error if known.
func withError(format string, decimals int, v, se float64) string {
	text := minus(fmt.Sprintf(format, decimals, v))
	if math.IsNaN(se) {
		return text
	}
	return text + fmt.Sprintf(" ± %.*f", decimals, se)
}

func signedError(decimals int, v, se float64) string { return withError("%+.*f", decimals, v, se) }

// yTicks returns the vertical axis's ticks.
func (s search) yTicks() []tick {
	if s.yAt >= 0 {
		return s.y.ticks()
	}
	return s.regrets.ticks()
}

// shade returns the colour for a regret minus the winner's. It depends on the square root, because small differences
// matter.
func (s search) shade(over float64) color.NRGBA {
	return ramp(math.Sqrt(min(max(over/s.highest, 0), 1)))
}

// ramp runs from near white over blue to near black, evenly in lightness, in one hue, which suits every kind of colour
// vision and print in greyscale.
func ramp(q float64) color.NRGBA {
	return blend([]color.NRGBA{{244, 248, 252, 255}, {152, 196, 226, 255}, {38, 122, 183, 255}, {8, 48, 90, 255}}, q)
}

// on returns a legible ink for a shade.
func on(shade color.NRGBA) color.NRGBA {
	if 299*int(shade.R)+587*int(shade.G)+114*int(shade.B) < 140_000 {
		return color.NRGBA{255, 255, 255, 255}
	}
	return ink
}

func (s search) draw(c draw.Canvas) {
	_, height := s.size()
	top := height - searchTop
	a := s.axes(part(c, s.left(), top-s.plotHeight, s.plotWidth, s.plotHeight))
	f := faces()
	sub := s.subtitle()
	write(a, f.title, ink, vg.Point{X: a.Min.X, Y: a.Max.Y + 33}, fromLeft, cmp.Or(s.Title, s.Name))
	write(a, f.small, faint, vg.Point{X: a.Min.X, Y: a.Max.Y + 20}, fromLeft, sub[0])
	write(a, f.small, faint, vg.Point{X: a.Min.X, Y: a.Max.Y + 8}, fromLeft, sub[1])
	upright := colourTitle
	if s.yAt >= 0 {
		upright = s.y.key
	}
	a.name(s.x.key, upright, s.left()-14)
	if s.heat {
		a.numbers(s.x.ticks(), s.yTicks())
		s.cells(a)
	} else {
		a.frame(s.x.ticks(), s.yTicks())
		s.dots(a)
	}
	s.side(c, vg.Point{X: a.Max.X + gap, Y: a.Max.Y})
}

// box returns a setting's cell.
func (s search) box(a axes, o Setting) vg.Rectangle {
	x, y, _ := s.place(o)
	centre, half := a.at(x, y), s.cell.Scale(0.5)
	return vg.Rectangle{Min: centre.Sub(half), Max: centre.Add(half)}
}

func (s search) cells(c axes) {
	for _, m := range s.marks {
		s.fill(c, m)
	}
	c.SetLineStyle(winnerLine)
	c.Stroke(inset(s.box(c, s.Settings[0]), 1).Path())
	if _, _, ok := s.place(s.Configured); ok {
		line := configuredLine
		line.Color = on(s.shade(s.shown(s.Configured).Over))
		c.SetLineStyle(line)
		c.Stroke(inset(s.box(c, s.Configured), 5).Path())
	}
}

// fill fills a mark's cell and writes its numbers.
func (s search) fill(c axes, m mark) {
	box := s.box(c, m.Setting)
	shade := s.shade(m.Over)
	c.SetColor(shade)
	c.Fill(box.Path())
	c.SetLineStyle(draw.LineStyle{Color: color.White, Width: 1})
	c.Stroke(box.Path())

	f, text, d := faces(), on(shade), decimals(s.highest)
	lines := []string{fmt.Sprintf("%+.*f", d, m.Over)}
	switch {
	case m.winner:
		lines = []string{fmt.Sprintf("%.*f", d, m.Regret)}
		if !math.IsNaN(m.SE) {
			lines = append(lines, fmt.Sprintf("± %.*f", d, m.SE))
		}
	case !math.IsNaN(m.OverSE):
		lines = append(lines, fmt.Sprintf("± %.*f", d, m.OverSE))
	}
	if m.Stopped {
		lines = append(lines, hint.Count(m.Seeds, "seed"))
	}
	const step = 11
	at := middle(box)
	at.Y += vg.Length(len(lines)-1)*step/2 - ascent/2*f.text.Font.Size
	for i, line := range lines {
		face := f.small
		if i == 0 {
			face = f.text
		}
		write(c, face, text, vg.Point{X: at.X, Y: at.Y - vg.Length(i)*step}, centred, line)
	}
	if m.Stopped {
		s.corner(c.Canvas, box.Max, text)
	}
}

// corner cuts off the upper right corner of a cell, for stopped settings.
func (s search) corner(c draw.Canvas, at vg.Point, ink color.Color) {
	const size = 6
	c.FillPolygon(ink, []vg.Point{{X: at.X - size - 1, Y: at.Y - 1}, {X: at.X - 1, Y: at.Y - 1},
		{X: at.X - 1, Y: at.Y - size - 1}})
}

var (
	winnerLine     = draw.LineStyle{Color: vermilion, Width: 2}
	configuredLine = draw.LineStyle{Color: ink, Width: 1.2, Dashes: []vg.Length{3, 2}}
)

// shown returns the mark in a setting's cell.
func (s search) shown(o Setting) mark {
	return s.marks[slices.IndexFunc(s.marks, func(m mark) bool {
		return m.Values[s.xAt] == o.Values[s.xAt] && m.Values[s.yAt] == o.Values[s.yAt]
	})]
}

func middle(r vg.Rectangle) vg.Point { return r.Min.Add(r.Max).Scale(0.5) }

func inset(r vg.Rectangle, by vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: r.Min.Add(vg.Point{X: by, Y: by}), Max: r.Max.Sub(vg.Point{X: by, Y: by})}
}

// dots draws the marks as dots.
func (s search) dots(a axes) {
	at := func(o Setting) vg.Point {
		x, y, _ := s.place(o)
		return a.at(x, y)
	}
	_, _, hasConfigured := s.place(s.Configured)
	settings := make([]Setting, 0, len(s.marks)+1)
	for _, m := range s.marks {
		if m.winner || !slices.Equal(m.Values, s.Configured.Values) { // which has played all seeds
			settings = append(settings, m.Setting)
		}
	}
	if hasConfigured {
		settings = append(settings, s.Configured)
	}
	for _, o := range settings {
		if x, _, _ := s.place(o); s.yAt < 0 && !math.IsNaN(o.OverSE) {
			a.bar(draw.LineStyle{Color: blue}, x, o.Over-o.OverSE, o.Over+o.OverSE)
		}
		s.dot(a.Canvas, at(o), o)
		if s.yAt < 0 && o.Stopped && s.x.few() {
			s.seeds(a.Canvas, at(o), o)
		}
	}
	ring(a.Canvas, ringRadius, at(s.Settings[0]), winnerLine)
	if hasConfigured {
		ring(a.Canvas, ringRadius+3, at(s.Configured), configuredLine)
	}
}

// seeds writes the number of seeds next to a setting's dot.
func (s search) seeds(c draw.Canvas, at vg.Point, o Setting) {
	offset, align := vg.Point{X: settingRadius + space, Y: -ascent / 2 * faces().small.Font.Size}, vg.Length(fromLeft)
	if at.X > c.Max.X-40 {
		offset.X, align = -offset.X, fromEnd
	}
	write(c, faces().small, faint, at.Add(offset), align, hint.Count(o.Seeds, "seed"))
}

// dot draws a setting. A stopped setting is smaller or, if the axis shows regret, hollow.
func (s search) dot(c draw.Canvas, at vg.Point, o Setting) {
	fill, r := blue, vg.Length(settingRadius)
	switch {
	case s.yAt >= 0:
		fill = s.shade(o.Over)
		if !o.Stopped {
			r = 1.6 * settingRadius
		}
	case o.Stopped:
		fill = white
	}
	dot(c, fill, r, at, draw.LineStyle{Color: blue, Width: 0.8})
}

// keyLine explains a mark.
type keyLine struct {
	text   string
	sample func(c draw.Canvas, box vg.Rectangle)
}

// key explains the marks in the picture.
func (s search) key() []keyLine {
	outline := func(line draw.LineStyle) func(draw.Canvas, vg.Rectangle) {
		return func(c draw.Canvas, box vg.Rectangle) {
			if s.heat {
				c.SetLineStyle(line)
				c.Stroke(box.Path())
				return
			}
			ring(c, ringRadius, middle(box), line)
		}
	}
	lines := []keyLine{{"winner", outline(winnerLine)}}
	if _, _, ok := s.place(s.Configured); ok {
		lines = append(lines, keyLine{"as configured", outline(configuredLine)})
	}
	if slices.ContainsFunc(s.marks, func(m mark) bool { return m.Stopped }) {
		lines = append(lines, keyLine{"stopped on fewer seeds", func(c draw.Canvas, box vg.Rectangle) {
			if s.heat {
				c.SetColor(ramp(0.3))
				c.Fill(box.Path())
				s.corner(c, box.Max, ink)
				return
			}
			s.dot(c, middle(box), Setting{Stopped: true, Over: s.highest / 10})
		}})
	}
	return lines
}

// side draws the colours and the key, downwards from at.
func (s search) side(c draw.Canvas, at vg.Point) {
	f := faces()
	y := at.Y - 8
	if s.yAt >= 0 {
		write(c, f.small, ink, vg.Point{X: at.X, Y: y}, fromLeft, colourTitle)
		y -= 10
		s.colours(c, vg.Point{X: at.X, Y: y - s.barHeight()})
		y -= s.barHeight() + keyHeight
	}
	for _, k := range s.key() {
		k.sample(c, vg.Rectangle{Min: vg.Point{X: at.X, Y: y - 3}, Max: vg.Point{X: at.X + keyWidth, Y: y + 9}})
		write(c, f.small, ink, vg.Point{X: at.X + keyWidth + space, Y: y}, fromLeft, k.text)
		y -= keyHeight
	}
}

// colours draws the colour bar, with its lower left corner at at.
func (s search) colours(c draw.Canvas, at vg.Point) {
	const n = 100
	a := axes{part(c, at.X, at.Y, colourWidth, s.barHeight()), span{0, 1, false}, span{0, 1, false}}
	var ticks []tick
	for _, q := range []float64{0, 0.04, 0.16, 0.36, 0.64, 1} {
		ticks = append(ticks, tick{math.Sqrt(q), fmt.Sprintf("%.*f", decimals(s.highest), q*s.highest)})
	}
	a.key(n, func(k int) color.Color { return ramp((float64(k) + 0.5) / n) },
		func(k int) float64 { return float64(k) / n }, ticks)
}
