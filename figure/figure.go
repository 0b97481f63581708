// Package figure turns results into pictures, as SVG and as PNG: it reads the
// regret.csv of an experiment and draws, for every policy, the mean over the
// seeds with a band of one standard deviation.
//
// There are five kinds of [Picture]: a [Panel] is one plot, each [Curve] in it
// one policy; a [Composite] is a figure of the paper, panels in rows over one
// legend; a [Landscape] is the loss of the geometric condition; a [Tuning] and
// [Theory] are what they say. [ReadPanel] reads a panel, [Write] draws a picture. A policy keeps its colour and its
// line style in every picture (colour-blind safe, and told apart by the dashes
// when printed in grey).
package figure

import (
	"bytes"
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"vitrine/internal/replace"
)

// Picture is what can be drawn: a [Panel], a [Composite], a [Landscape], a
// [Tuning], a [Theory] or a [Tractability].
type Picture interface {
	compose() page
}

// page is a picture that is laid out.
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

// Panel is one plot: the policies that were played in one experiment.
type Panel struct {
	Name   string // the experiment
	Title  string // what stands above the plot; empty means Name
	Curves []Curve
}

// Curve is the cumulative expected regret of one policy over its seeds, where
// entry t-1 of a slice belongs to round t = 1, …, T.
type Curve struct {
	Policy string
	Seeds  int
	Mean   []float64 // T, mean over the seeds
	SD     []float64 // T, sample standard deviation over the seeds; nil for a single seed
}

// resolution of the PNG in dots an inch, that of print.
const resolution = 300

// Write draws the picture into stem.svg and stem.png. Each file is complete or
// untouched: it is written beside its place and then renamed. The conditions
// are those of [WriteSVG]; errors name the path.
func Write(stem string, p Picture) error {
	for _, format := range []struct {
		extension string
		write     func(io.Writer, Picture) error
	}{
		{".svg", WriteSVG},
		{".png", WritePNG},
	} {
		var picture bytes.Buffer
		if err := format.write(&picture, p); err != nil {
			return fmt.Errorf("%s%s: %w", stem, format.extension, err)
		}
		if err := replace.File(stem+format.extension, picture.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// WriteSVG draws the picture as SVG. The text is the same on every machine.
//
// It panics for a composite without panels, a panel without curves or with two
// of one policy, and a curve without rounds or with other rounds than its
// panel.
func WriteSVG(w io.Writer, p Picture) error {
	page := p.compose()
	canvas := vgsvg.New(page.width, page.height)
	page.paint(canvas)
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return err
	}
	_, err := w.Write(bytes.ReplaceAll(text.Bytes(), []byte(embedded), []byte(families)))
	return err
}

// Where the fonts that the text was measured with are not installed, these
// have the same metrics, the last excepted.
const (
	embedded = "font-family:Liberation Sans;"
	families = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"
)

// WritePNG draws the picture as PNG at print resolution, laid out as in
// [WriteSVG] and under its conditions.
func WritePNG(w io.Writer, p Picture) error {
	page := p.compose()
	canvas := vgimg.NewWith(vgimg.UseWH(page.width, page.height), vgimg.UseDPI(resolution))
	page.paint(canvas)
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}
