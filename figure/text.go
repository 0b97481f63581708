package figure

import (
	"image/color"
	"math"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// faces are the fonts of all pictures, built in so that text has the same
// width on every machine.
var faces = sync.OnceValue(func() *struct{ title, caption, text, small font.Face } {
	face := func(ttf []byte, weight xfont.Weight, size vg.Length) font.Face {
		parsed, err := opentype.Parse(ttf)
		if err != nil {
			panic(err) // the font is part of the program
		}
		return font.Face{
			Font: font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight, Size: size},
			Face: parsed,
		}
	}
	return &struct{ title, caption, text, small font.Face }{
		title:   face(liberationsansbold.TTF, xfont.WeightBold, 11.5),
		caption: face(liberationsansbold.TTF, xfont.WeightBold, 9),
		text:    face(liberationsansregular.TTF, xfont.WeightNormal, 10),
		small:   face(liberationsansregular.TTF, xfont.WeightNormal, 8.5),
	}
})

// ascent is the part of a font's size that its figures stand above the
// baseline.
const ascent = 0.7

// Where a text stands against its point, as a part of its width.
const (
	fromLeft = 0.0
	centred  = 0.5
	fromEnd  = 1.0
)

// write puts a line of text with its baseline at pt.
func write(c vg.Canvas, f font.Face, ink color.Color, pt vg.Point, align vg.Length, text string) {
	c.SetColor(ink)
	c.FillString(f, vg.Point{X: pt.X - align*f.Width(text), Y: pt.Y}, text)
}

// writeUp centres a line of text on pt, read from below.
func writeUp(c vg.Canvas, f font.Face, ink color.Color, pt vg.Point, text string) {
	c.Push()
	c.Translate(pt)
	c.Rotate(math.Pi / 2)
	write(c, f, ink, vg.Point{}, centred, text)
	c.Pop()
}
