package figure

import (
	"fmt"
	"image"
	"image/color"
	"io"
	"math"
	"time"

	"codeberg.org/go-pdf/fpdf"
	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// WritePDF draws the picture as a one-page PDF in vectors. Layout and panics are as for [WriteSVG]. It embeds the
// glyphs that it uses, and its date is fixed: the same picture gives the same bytes.
func WritePDF(w io.Writer, p Picture) error {
	page := p.compose()
	c := newPDF(page.width, page.height)
	page.paint(typesetter{c})
	return c.doc.Output(w)
}

// pdf is a canvas on a PDF page. It replaces the canvas in gonum/plot, which lacks a font for ε and −, blends bands
// with black and writes the time of day.
type pdf struct {
	doc           *fpdf.Fpdf
	width, height vg.Length
}

func newPDF(width, height vg.Length) *pdf {
	doc := fpdf.NewCustom(&fpdf.InitType{UnitStr: "pt", Size: fpdf.SizeType{Wd: width.Points(), Ht: height.Points()}})
	doc.SetCreationDate(time.Unix(0, 0).UTC())
	doc.SetModificationDate(time.Unix(0, 0).UTC())
	doc.SetProducer("vitrine", false)
	doc.SetCatalogSort(true)
	doc.SetAutoPageBreak(false, 0)
	for _, weight := range []xfont.Weight{xfont.WeightNormal, xfont.WeightBold} {
		doc.AddUTF8FontFromBytes("sans", pdfStyle(weight), trueType(weight))
	}
	doc.AddPage()
	c := &pdf{doc, width, height}
	vg.Initialize(c)
	return c
}

func pdfStyle(weight xfont.Weight) string {
	if weight == xfont.WeightBold {
		return "B"
	}
	return ""
}

// raw writes an operator to the page's content, in a canvas's coordinates: points from the lower left corner.
func (c *pdf) raw(format string, args ...any) { c.doc.RawWriteStr(fmt.Sprintf(format, args...)) }

// Size implements [vg.CanvasSizer].
func (c *pdf) Size() (width, height vg.Length) { return c.width, c.height }

// SetLineWidth implements [vg.Canvas].
func (c *pdf) SetLineWidth(w vg.Length) { c.raw("%.3f w", w.Points()) }

// SetLineDash implements [vg.Canvas].
func (c *pdf) SetLineDash(dashes []vg.Length, offset vg.Length) {
	c.raw("%.3f %.3f d", dashes, offset.Points())
}

// SetColor implements [vg.Canvas].
func (c *pdf) SetColor(ink color.Color) {
	n := color.NRGBAModel.Convert(ink).(color.NRGBA)
	c.doc.SetAlpha(float64(n.A)/255, "Normal")
	c.doc.SetDrawColor(int(n.R), int(n.G), int(n.B))
	c.doc.SetFillColor(int(n.R), int(n.G), int(n.B))
	c.doc.SetTextColor(int(n.R), int(n.G), int(n.B))
}

// Push implements [vg.Canvas].
func (c *pdf) Push() { c.raw("q") }

// Pop implements [vg.Canvas].
func (c *pdf) Pop() { c.raw("Q") }

// Rotate implements [vg.Canvas].
func (c *pdf) Rotate(radians float64) {
	sin, cos := math.Sincos(radians)
	c.raw("%.6f %.6f %.6f %.6f 0 0 cm", cos, sin, -sin, cos)
}

// Translate implements [vg.Canvas].
func (c *pdf) Translate(by vg.Point) { c.raw("1 0 0 1 %.3f %.3f cm", by.X.Points(), by.Y.Points()) }

// Scale implements [vg.Canvas].
func (c *pdf) Scale(x, y float64) { c.raw("%.6f 0 0 %.6f 0 0 cm", x, y) }

// Stroke implements [vg.Canvas].
func (c *pdf) Stroke(path vg.Path) {
	c.path(path)
	c.raw("S")
}

// Fill implements [vg.Canvas].
func (c *pdf) Fill(path vg.Path) {
	c.path(path)
	c.raw("f")
}

func (c *pdf) path(path vg.Path) {
	for _, part := range path {
		x, y := part.Pos.X.Points(), part.Pos.Y.Points()
		switch part.Type {
		case vg.MoveComp:
			c.raw("%.3f %.3f m", x, y)
		case vg.LineComp:
			c.raw("%.3f %.3f l", x, y)
		case vg.ArcComp:
			const degree = math.Pi / 180
			c.doc.ArcTo(x, float64(c.height)-y, part.Radius.Points(), part.Radius.Points(), 0, part.Start/degree,
				(part.Start+part.Angle)/degree)
		case vg.CloseComp:
			c.raw("h")
		default:
			panic("figure: a path of a picture has a curve")
		}
	}
}

// FillString implements [vg.Canvas].
func (c *pdf) FillString(f font.Face, pt vg.Point, text string) {
	c.doc.SetFont("sans", pdfStyle(f.Font.Weight), f.Font.Size.Points())
	c.doc.Text(pt.X.Points(), float64(c.height-pt.Y), text)
}

// DrawImage implements [vg.Canvas]; pictures contain no images.
func (c *pdf) DrawImage(vg.Rectangle, image.Image) { panic("figure: a picture has an image") }
