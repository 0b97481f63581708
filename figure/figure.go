// Package figure turns regret curves into pictures: it reads the regret.csv of
// an experiment and draws, for every policy, the mean over the seeds with a
// band of one standard deviation, as SVG and as PNG.
//
// There are only two types: a [Panel] is one plot, a [Curve] one policy in it.
// [ReadPanel] reads a panel; [Write] draws one panel, or several side by side
// with one legend. A policy keeps its colour and its line style in every
// picture (colour-blind safe, and told apart by the dashes when printed in
// grey).
package figure

import (
	"bytes"
	"fmt"
	"io"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"vitrine/internal/replace"
)

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

// resolution of the PNG in dots an inch: a single panel is some 1600 dots wide.
const resolution = 200

// Write draws the panels into stem.svg and stem.png. Each file is complete or
// untouched: it is written beside its place and then renamed. The conditions
// are those of [WriteSVG]; errors name the path.
func Write(stem string, panels ...Panel) error {
	for _, format := range []struct {
		extension string
		write     func(io.Writer, ...Panel) error
	}{
		{".svg", WriteSVG},
		{".png", WritePNG},
	} {
		var picture bytes.Buffer
		if err := format.write(&picture, panels...); err != nil {
			return fmt.Errorf("%s%s: %w", stem, format.extension, err)
		}
		if err := replace.File(stem+format.extension, picture.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// WriteSVG draws the panels as SVG. One panel has its policies named where
// their curves end; several are tiled, as near to a square as they go, beside
// one legend. The text is the same on every machine.
//
// It panics for no panels, a panel without curves or with two of one policy,
// and a curve without rounds or with other rounds than its panel.
func WriteSVG(w io.Writer, panels ...Panel) error {
	f := compose(panels)
	canvas := vgsvg.New(f.width, f.height)
	f.draw(draw.New(canvas))
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

// WritePNG draws the panels as PNG at print resolution, laid out as in
// [WriteSVG] and under its conditions.
func WritePNG(w io.Writer, panels ...Panel) error {
	f := compose(panels)
	canvas := vgimg.NewWith(vgimg.UseWH(f.width, f.height), vgimg.UseDPI(resolution))
	f.draw(draw.New(canvas))
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}
