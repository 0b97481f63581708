// Package figure draws results as SVG, PNG and PDF. It reads the regret.csv of
// an experiment and draws for every policy the mean over the seeds with a
// [Band].
//
// There are seven kinds of [Picture]. A [Panel] is one plot, each [Curve] in it
// one policy; a [Composite] is a figure of the paper, panels in rows over one
// legend. A [Look] configures these two, and [Panel.Minus] makes a panel of
// paired differences. A [Landscape] is the loss of the geometric condition; a
// [Tuning], [Theory] and [Tractability] are the results of the packages with
// these names. A [Forest] is a forest plot. [ReadPanel] reads a panel, [Write]
// draws a picture, and a [Table] writes the same regret as LaTeX.
//
// A policy keeps its colour and its line style in every picture. The colours
// are safe for the colour-blind, and the dashes distinguish policies in grey.
package figure

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"
	"regexp"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"vitrine/internal/replace"
)

// Picture is a result that can be drawn: a [Panel], a [Composite], a
// [Landscape], a [Tuning], a [Theory], a [Tractability] or a [Forest].
type Picture interface {
	compose() page
}

// page is the layout of a picture.
type page struct {
	width, height vg.Length
	draw          func(draw.Canvas)
}

// paint puts the page on a canvas of its size.
func (p page) paint(c vg.CanvasSizer) {
	area := draw.New(c)
	area.SetColor(color.White)
	area.Fill(area.Rectangle.Path())
	p.draw(area)
}

// Panel is one plot: the policies of one experiment.
type Panel struct {
	Name    string // the experiment
	Title   string // above the plot; empty means Name
	Against string // the policy whose regret is subtracted; empty for none
	Curves  []Curve
}

// Curve is the cumulative expected regret of one policy. Regret[k][t−1] is the
// regret of seed k after round t = 1, …, T. The policies of a panel have the
// same seeds in the same order.
type Curve struct {
	Policy string
	Regret [][]float64
}

func (c Curve) seeds() int  { return len(c.Regret) }
func (c Curve) rounds() int { return len(c.Regret[0]) }

// after returns the regret of every seed after round t, from 1.
func (c Curve) after(t int) []float64 {
	values := make([]float64, len(c.Regret))
	for k, run := range c.Regret {
		values[k] = run[t-1]
	}
	return values
}

// Minus returns the panel of paired differences: the regret of every policy
// minus that of one of them, seed by seed. ok is false if the panel lacks that
// policy.
func (p Panel) Minus(policy string) (differences Panel, ok bool) {
	i := slices.IndexFunc(p.Curves, func(c Curve) bool { return c.Policy == policy })
	if i < 0 {
		return Panel{}, false
	}
	base := p.Curves[i].Regret
	differences = Panel{Name: p.Name, Title: p.Title, Against: policy}
	for _, c := range p.Curves {
		d := Curve{Policy: c.Policy, Regret: make([][]float64, len(c.Regret))}
		for k, run := range c.Regret {
			d.Regret[k] = make([]float64, len(run))
			floats.SubTo(d.Regret[k], run, base[k])
		}
		differences.Curves = append(differences.Curves, d)
	}
	return differences, true
}

// resolution of the PNG in dots an inch, as for print.
const resolution = 300

// Format is a format of picture files.
type Format struct {
	Name  string // and the file's extension
	Write func(io.Writer, Picture) error
}

// Formats returns all formats. Results have the first two.
func Formats() []Format {
	return []Format{{"svg", WriteSVG}, {"png", WritePNG}, {"pdf", WritePDF}}
}

// Write draws the picture into stem.svg and stem.png, or into files of other
// formats. Each file is complete or unchanged: it is written under another name
// and then renamed. Write panics as [WriteSVG] does; errors name the path.
func Write(stem string, p Picture, formats ...Format) error {
	if formats == nil {
		formats = Formats()[:2]
	}
	for _, format := range formats {
		var picture bytes.Buffer
		path := stem + "." + format.Name
		if err := format.Write(&picture, p); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := replace.File(path, picture.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// WriteSVG draws the picture as SVG. The text is the same on every machine.
//
// It panics for a composite without panels, a panel without curves or with two
// curves of one policy, and a curve without rounds or with other seeds or
// rounds than its panel. On a logarithmic scale it also panics for a panel of
// differences, and for one with a policy that [Panel.Zero] returns.
func WriteSVG(w io.Writer, p Picture) error {
	page := p.compose()
	canvas := vgsvg.New(page.width, page.height)
	page.paint(canvas)
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return err
	}
	_, err := w.Write(svgText.ReplaceAllFunc(text.Bytes(), svgLine))
	return err
}

// svgText matches a line of text as the canvas writes it: the part before the
// font of its style, its size, and the line.
var svgText = regexp.MustCompile(`(<text [^>]*style=")font-family:Liberation Sans;([^"]*font-size:([0-9.]+)px[^"]*">)([^<]*)</text>`)

// Fonts with the metrics of the built-in one, except the last, for machines
// without it.
const families = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"

// svgLine adds alternative fonts to a line of text, and sets subscripts. They
// are parts of the line, so they follow it in any font.
func svgLine(element []byte) []byte {
	m := svgText.FindSubmatch(element)
	var f font.Face
	size, err := strconv.ParseFloat(string(m[3]), 64)
	if err != nil {
		panic(err) // the expression finds only numbers
	}
	f.Font.Size = vg.Length(size)
	line := fmt.Appendf(nil, "%s%s%s", m[1], families, m[2])
	drop := vg.Length(0)
	for _, p := range pieces(f, html.UnescapeString(string(m[4]))) {
		if p.drop == drop {
			line = append(line, html.EscapeString(p.text)...)
			continue
		}
		line = fmt.Appendf(line, `<tspan xml:space="preserve" dy="%.4g" style="font-size:%.4gpx">%s</tspan>`, p.drop-drop, p.face.Font.Size, html.EscapeString(p.text))
		drop = p.drop
	}
	return append(line, "</text>"...)
}

// WritePNG draws the picture as PNG at print resolution, with the layout and
// the panics of [WriteSVG].
func WritePNG(w io.Writer, p Picture) error {
	page := p.compose()
	canvas := vgimg.NewWith(vgimg.UseWH(page.width, page.height), vgimg.UseDPI(resolution))
	page.paint(typesetter{canvas})
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}
