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
)

// Lengths in points.
const (
	minCell, maxCell    = 40, 64 // height of a cell of a heat map
	cellAspect          = 1.6    // its width over its height, at the most
	searchWidth         = 420    // of the plot, where its cells allow it
	searchHeight        = 210
	searchTop           = 54      // around it: the title
	colourWidth         = 12      // of the colour bar
	minBar, maxBar      = 60, 120 // its height
	keyWidth, keyHeight = 18, 18  // of a sample in the key, and from line to line
	settingRadius       = 3.4
	ringRadius          = 7.5 // around a dot
)

// compose implements [Picture]. The axes are the first two parameters that have
// several values. For each pair of values the picture shows the best setting
// over the other parameters: as a heat map if every pair was tried, or else as
// coloured dots. With one parameter it shows dots with their standard errors.
//
// A setting is drawn by its regret minus the winner's, on the seeds that both
// have played. A setting stopped on a few seeds is marked.
//
// It panics for a tuning without settings or parameters.
func (t Tuning) compose() page {
	s := newSearch(t)
	width, height := s.size()
	return page{width, height, s.draw}
}

// search is the layout of a tuning.
type search struct {
	Tuning
	x, y     scale  // y is of regrets if there is one parameter
	xAt, yAt int    // the parameters on the axes; yAt is -1 if there is one
	marks    []mark // the best last, on top
	heat     bool
	lowest   float64 // end of the lowest error bar, if there is one parameter
	highest  float64 // regret over the winner's at the end of the colours

	plotWidth, plotHeight vg.Length
	cell                  vg.Point // size of a cell of the heat map
}

// mark is a setting that is drawn.
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
		s.highest = 1
	}
	s.plotWidth, s.plotHeight = plotWidth, plotHeight
	if s.heat {
		columns, rows := vg.Length(len(s.x.steps)), vg.Length(len(s.y.steps))
		s.cell.Y = min(max(searchHeight/rows, minCell), maxCell)
		s.cell.X = min(s.cell.Y*cellAspect, max(searchWidth/columns, minCell*cellAspect))
		s.plotWidth, s.plotHeight = columns*s.cell.X, rows*s.cell.Y
	}
	return s
}

// include widens the range of regrets to a setting.
func (s *search) include(o Setting) {
	s.highest = max(s.highest, o.Over)
	if s.yAt >= 0 {
		return
	}
	s.lowest = min(s.lowest, o.Over)
	if !math.IsNaN(o.OverSE) {
		s.lowest, s.highest = min(s.lowest, o.Over-o.OverSE), max(s.highest, o.Over+o.OverSE)
	}
}

// place returns the place of a setting, in [0, 1]; ok is false if its values
// are not on the axes.
func (s search) place(o Setting) (x, y float64, ok bool) {
	x, ok = s.x.at(o.Values[s.xAt])
	if s.yAt < 0 {
		return x, s.regretAt(o.Over), ok
	}
	y, onY := s.y.at(o.Values[s.yAt])
	return x, y, ok && onY
}

// choose takes the best setting for each place.
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
	// The configured setting can also be the best of its place.
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

// others returns the parameters that are not on an axis: the best of their
// values are shown.
func (s search) others() []string {
	var list []string
	for i, key := range s.Parameters {
		varies := slices.ContainsFunc(s.Settings, func(o Setting) bool { return o.Values[i] != s.Settings[0].Values[i] })
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

// sideWidth returns the width of the key beside the plot.
func (s search) sideWidth() vg.Length {
	widest := faces().small.Width(colourTitle)
	for _, k := range s.key() {
		widest = max(widest, keyWidth+space+faces().small.Width(k.text))
	}
	return widest
}

// sideHeight returns the height of the key.
func (s search) sideHeight() vg.Length {
	height := vg.Length(len(s.key()) * keyHeight)
	if s.yAt >= 0 {
		height += s.barHeight() + 2*keyHeight
	}
	return height
}

// barHeight returns the height of the colour bar.
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
	first := fmt.Sprintf("winner: %s, regret %s on %s", strings.Join(values, ", "), withError("%.*f", d, w.Regret, w.SE), count(w.Seeds, "seed"))
	second := fmt.Sprintf("as configured: %s over the winner's", signedError(d, s.Configured.Over, s.Configured.OverSE))
	if s.yAt < 0 && !math.IsNaN(w.OverSE) {
		second += "; bars are standard errors"
	}
	if others := s.others(); len(others) > 0 {
		second += "; each with its best " + strings.Join(others, " and ")
	}
	return [2]string{first, second}
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// withError formats an estimate with its standard error, if it has one.
func withError(format string, decimals int, v, se float64) string {
	text := strings.ReplaceAll(fmt.Sprintf(format, decimals, v), "-", "−")
	if math.IsNaN(se) {
		return text
	}
	return text + fmt.Sprintf(" ± %.*f", decimals, se)
}

func signedError(decimals int, v, se float64) string { return withError("%+.*f", decimals, v, se) }

// yTicks returns the ticks of the vertical axis.
func (s search) yTicks() []tick {
	if s.yAt >= 0 {
		return s.y.ticks()
	}
	var all []tick
	for _, v := range ticks(span{s.lowest, s.highest}) {
		all = append(all, tick{s.regretAt(v), number(v)})
	}
	return all
}

// regretAt returns the height of a regret minus the winner's, if there is one
// parameter.
func (s search) regretAt(v float64) float64 {
	return ((v-s.lowest)/(s.highest-s.lowest) + 0.05) / 1.1
}

// shade returns the colour of a regret minus the winner's. It depends on the
// square root, because small differences matter.
func (s search) shade(over float64) color.NRGBA {
	return ramp(math.Sqrt(min(max(over/s.highest, 0), 1)))
}

// ramp runs from near white over blue to near black, evenly in lightness, in
// one hue for every kind of colour vision and for print in grey.
func ramp(q float64) color.NRGBA {
	stops := []color.NRGBA{{244, 248, 252, 255}, {152, 196, 226, 255}, {38, 122, 183, 255}, {8, 48, 90, 255}}
	q *= float64(len(stops) - 1)
	i := min(int(q), len(stops)-2)
	q -= float64(i)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*(1-q) + float64(b)*q)) }
	a, b := stops[i], stops[i+1]
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// on returns the ink that is legible on a shade.
func on(shade color.NRGBA) color.NRGBA {
	if 299*int(shade.R)+587*int(shade.G)+114*int(shade.B) < 140_000 {
		return color.NRGBA{255, 255, 255, 255}
	}
	return ink
}

// draw puts the picture on c.
func (s search) draw(c draw.Canvas) {
	_, height := s.size()
	top := height - searchTop
	plot := draw.Canvas{Canvas: c, Rectangle: vg.Rectangle{
		Min: vg.Point{X: s.left(), Y: top - s.plotHeight},
		Max: vg.Point{X: s.left() + s.plotWidth, Y: top},
	}}
	s.frame(plot)
	if s.heat {
		s.cells(plot)
	} else {
		s.dots(plot)
	}
	s.side(c, vg.Point{X: plot.Max.X + gap, Y: plot.Max.Y})
}

// frame writes the title and the axes.
func (s search) frame(c draw.Canvas) {
	f := faces()
	title := cmp.Or(s.Title, s.Name)
	sub := s.subtitle()
	write(c, f.title, ink, vg.Point{X: c.Min.X, Y: c.Max.Y + 33}, fromLeft, title)
	write(c, f.small, faint, vg.Point{X: c.Min.X, Y: c.Max.Y + 20}, fromLeft, sub[0])
	write(c, f.small, faint, vg.Point{X: c.Min.X, Y: c.Max.Y + 8}, fromLeft, sub[1])

	for _, t := range s.x.ticks() {
		x := c.X(t.place)
		if !s.heat {
			c.StrokeLine2(gridLine, x, c.Min.Y, x, c.Max.Y)
		}
		write(c, f.small, faint, vg.Point{X: x, Y: c.Min.Y - 12}, centred, t.text)
	}
	for _, t := range s.yTicks() {
		y := c.Y(t.place)
		if !s.heat {
			c.StrokeLine2(gridLine, c.Min.X, y, c.Max.X, y)
		}
		write(c, f.small, faint, vg.Point{X: c.Min.X - 5, Y: y - ascent/2*f.small.Font.Size}, fromEnd, t.text)
	}
	if !s.heat {
		c.StrokeLines(axisLine, []vg.Point{{X: c.Min.X, Y: c.Max.Y}, c.Min, {X: c.Max.X, Y: c.Min.Y}})
	}
	write(c, f.text, ink, vg.Point{X: c.Center().X, Y: c.Min.Y - 28}, centred, s.x.key)
	upright := colourTitle
	if s.yAt >= 0 {
		upright = s.y.key
	}
	writeUp(c, f.text, ink, vg.Point{X: c.Min.X - s.left() + 14, Y: c.Center().Y}, upright)
}

// box is the cell of a setting that has one.
func (s search) box(c draw.Canvas, o Setting) vg.Rectangle {
	x, y, _ := s.place(o)
	centre, half := vg.Point{X: c.X(x), Y: c.Y(y)}, s.cell.Scale(0.5)
	return vg.Rectangle{Min: centre.Sub(half), Max: centre.Add(half)}
}

// cells draws the heat map.
func (s search) cells(c draw.Canvas) {
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

// fill fills the cell of a mark and writes its numbers.
func (s search) fill(c draw.Canvas, m mark) {
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
		lines = append(lines, count(m.Seeds, "seed"))
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
		s.corner(c, box.Max, text)
	}
}

// corner cuts the upper right corner of a cell, for settings that were stopped.
func (s search) corner(c draw.Canvas, at vg.Point, ink color.Color) {
	const size = 6
	c.FillPolygon(ink, []vg.Point{{X: at.X - size - 1, Y: at.Y - 1}, {X: at.X - 1, Y: at.Y - 1}, {X: at.X - 1, Y: at.Y - size - 1}})
}

var (
	winnerLine     = draw.LineStyle{Color: vermilion, Width: 2}
	configuredLine = draw.LineStyle{Color: ink, Width: 1.2, Dashes: []vg.Length{3, 2}}
)

// shown returns the mark in the cell of a setting.
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
func (s search) dots(c draw.Canvas) {
	at := func(o Setting) vg.Point {
		x, y, _ := s.place(o)
		return vg.Point{X: c.X(x), Y: c.Y(y)}
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
		if s.yAt < 0 {
			s.errorBar(c, at(o).X, o)
		}
		s.dot(c, at(o), o)
		if s.yAt < 0 && o.Stopped && s.x.few() {
			s.seeds(c, at(o), o)
		}
	}
	circle(c, at(s.Settings[0]), ringRadius, winnerLine)
	if hasConfigured {
		circle(c, at(s.Configured), ringRadius+3, configuredLine)
	}
}

// seeds writes the number of seeds beside the dot of a setting.
func (s search) seeds(c draw.Canvas, at vg.Point, o Setting) {
	offset, align := vg.Point{X: settingRadius + space, Y: -ascent / 2 * faces().small.Font.Size}, vg.Length(fromLeft)
	if at.X > c.Max.X-40 {
		offset.X, align = -offset.X, fromEnd
	}
	write(c, faces().small, faint, at.Add(offset), align, count(o.Seeds, "seed"))
}

// errorBar draws the standard error of a regret over the winner's.
func (s search) errorBar(c draw.Canvas, x vg.Length, o Setting) {
	if math.IsNaN(o.OverSE) {
		return
	}
	line := draw.LineStyle{Color: blue, Width: 1}
	low, high := c.Y(s.regretAt(o.Over-o.OverSE)), c.Y(s.regretAt(o.Over+o.OverSE))
	c.StrokeLine2(line, x, low, x, high)
	for _, y := range []vg.Length{low, high} {
		c.StrokeLine2(line, x-3, y, x+3, y)
	}
}

// dot draws a setting. A stopped setting is smaller or, with its regret on the
// axis, hollow.
func (s search) dot(c draw.Canvas, at vg.Point, o Setting) {
	fill, r := blue, vg.Length(settingRadius)
	switch {
	case s.yAt >= 0:
		fill = s.shade(o.Over)
		if !o.Stopped {
			r = 1.6 * settingRadius
		}
	case o.Stopped:
		fill = color.NRGBA{255, 255, 255, 255}
	}
	c.SetColor(fill)
	c.Fill(arc(at, r))
	circle(c, at, r, draw.LineStyle{Color: blue, Width: 0.8})
}

func arc(at vg.Point, r vg.Length) vg.Path {
	var p vg.Path
	p.Move(vg.Point{X: at.X + r, Y: at.Y})
	p.Arc(at, r, 0, 2*math.Pi)
	p.Close()
	return p
}

func circle(c draw.Canvas, at vg.Point, r vg.Length, line draw.LineStyle) {
	c.SetLineStyle(line)
	c.Stroke(arc(at, r))
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
			circle(c, middle(box), ringRadius, line)
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

// side draws the colours and the key, from at down.
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

// colours draws the colour bar with its lower left corner at.
func (s search) colours(c draw.Canvas, at vg.Point) {
	f := faces()
	const n = 100
	height := s.barHeight()
	for i := range n {
		c.SetColor(s.shade(s.highest * math.Pow((float64(i)+0.5)/n, 2)))
		low, high := vg.Length(i)/n*height, vg.Length(i+1)/n*height
		if i < n-1 {
			high += 0.3 // no seam
		}
		c.Fill(vg.Rectangle{Min: at.Add(vg.Point{Y: low}), Max: at.Add(vg.Point{X: colourWidth, Y: high})}.Path())
	}
	last := vg.Length(-labelHeight)
	for _, q := range []float64{0, 0.04, 0.16, 0.36, 0.64, 1} {
		y := vg.Length(math.Sqrt(q)) * height
		if y-last < labelHeight-3 {
			continue
		}
		last = y
		c.StrokeLine2(axisLine, at.X+colourWidth, at.Y+y, at.X+colourWidth+3, at.Y+y)
		write(c, f.small, faint, vg.Point{X: at.X + colourWidth + 6, Y: at.Y + y - ascent/2*f.small.Font.Size}, fromLeft, fmt.Sprintf("%.*f", decimals(s.highest), q*s.highest))
	}
}
