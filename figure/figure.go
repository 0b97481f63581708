// Package figure draws results as SVG, PNG and PDF. It reads an experiment's regret.csv and draws each policy's mean
// over the seeds with a [Band].
//
// There are eight kinds of [Picture]. A [Panel] is one plot with a [Curve] per policy. A [Composite] is a figure from
// the paper, with rows of panels above one legend. A [Look] configures these two, and [Panel.Minus] makes a panel of
// paired differences. A [Landscape] shows the loss under the geometric condition. A [Tuning], a [Theory], a
// [Tractability] and [Sessions] show the results of the packages with these names. A [Forest] is a forest plot.
// [ReadPanel] reads a panel, [Write] draws a picture, and a [Table] writes the same regret as LaTeX.
//
// A policy keeps its colour and its line style in every picture. The colours are safe for colour-blind readers, and the
// dashes distinguish policies in greyscale.
package figure

import (
	"bytes"
	"encoding/xml"
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

// Picture is a result that can be drawn: a [Panel], a [Composite], a [Landscape], a [Tuning], a [Theory], a
// [Tractability], [Sessions] or a [Forest].
type Picture interface {
	compose() page
}

// page is a picture's layout.
type page struct {
	width, height vg.Length
	draw          func(draw.Canvas)
}

// paint draws the page on a canvas of the same size.
func (p page) paint(c vg.CanvasSizer) {
	area := draw.New(c)
	area.SetColor(color.White)
	area.Fill(area.Rectangle.Path())
	p.draw(area)
}

// Panel is one plot: the policies in one experiment.
type Panel struct {
	Name    string // name of the experiment
	Title   string // above the plot; empty means Name
	Against string // policy to subtract; empty for none
	Curves  []Curve
}

// Curve is the cumulative expected regret of one policy. Regret[k][t−1] is the regret on seed k after round t = 1, …,
// T. All policies in a panel use the same seeds in the same order.
type Curve struct {
	Policy string
	Regret [][]float64
}

func (c Curve) seeds() int  { return len(c.Regret) }
func (c Curve) rounds() int { return len(c.Regret[0]) }

// after returns every seed's regret after round t, from 1.
func (c Curve) after(t int) []float64 {
	values := make([]float64, len(c.Regret))
	for k, run := range c.Regret {
		values[k] = run[t-1]
	}
	return values
}

// Minus returns the panel of paired differences: the regret of every policy minus the given policy's, seed by seed. ok
// is false if the panel lacks that policy.
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

// resolution is the PNG's resolution in dots per inch, enough for print.
const resolution = 300

// Format is a file format for pictures.
type Format struct {
	Name  string // also the file's extension
	Write func(io.Writer, Picture) error
}

// Formats returns all formats. Results are drawn in the first two.
func Formats() []Format {
	return []Format{{"svg", WriteSVG}, {"png", WritePNG}, {"pdf", WritePDF}}
}

// Write draws the picture into stem.svg and stem.png, or into files of other formats. Files are written under another
// name and renamed, so each file is either complete or unchanged. Write panics in the same cases as [WriteSVG]; errors
// name the path.
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
// It panics for a composite without panels, a panel without curves or with two curves for the same policy, and a curve
// without rounds, with other seeds or rounds than the rest of its panel, or with a regret that is not a number or
// beyond 1e100. On a logarithmic scale it also panics for a panel of differences, and for a panel with a policy that
// [Panel.Zero] returns.
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

// svgText matches a line of text as the canvas writes it: the part before the font in its style, its size, and the
// line.
var svgText = regexp.MustCompile(`(<text [^>]*style=")font-family:Liberation Sans;([^"]*font-size:([0-9.]+)px[^"]*">)([^<]*)</text>`)

// Fallback fonts for machines without the built-in one. All but the last share its metrics.
const families = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"

// svgLine adds alternative fonts to a line of text, and sets subscripts. Subscripts are part of the line, so that they
// follow it in any font.
func svgLine(element []byte) []byte {
	m := svgText.FindSubmatch(element)
	var f font.Face
	size, err := strconv.ParseFloat(string(m[3]), 64)
	if err != nil {
		panic(err) // the expression only matches numbers
	}
	f.Font.Size = vg.Length(size)
	line := fmt.Appendf(nil, "%s%s%s", m[1], families, m[2])
	drop := vg.Length(0)
	for _, p := range pieces(f, html.UnescapeString(string(m[4]))) {
		if p.drop == drop {
			line = append(line, escaped(p.text)...)
			continue
		}
		line = fmt.Appendf(line, `<tspan xml:space="preserve" dy="%.4g" style="font-size:%.4gpx">%s</tspan>`,
			p.drop-drop, p.face.Font.Size, escaped(p.text))
		drop = p.drop
	}
	return append(line, "</text>"...)
}

// escaped returns a text for XML, with U+FFFD for characters that XML forbids.
func escaped(text string) []byte {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a Buffer has room
	return b.Bytes()
}

// WritePNG draws the picture as PNG at print resolution. Layout and panics are as for [WriteSVG].
func WritePNG(w io.Writer, p Picture) error {
	page := p.compose()
	canvas := vgimg.NewWith(vgimg.UseWH(page.width, page.height), vgimg.UseDPI(resolution))
	page.paint(typesetter{canvas})
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}
