package figure

import (
	"image/color"
	"math"
	"regexp"
	"strings"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// faces are the fonts for all pictures. They are built in, so that text has the same width on every machine.
var faces = sync.OnceValue(func() *struct{ title, caption, text, small font.Face } {
	face := func(weight xfont.Weight, size vg.Length) font.Face {
		parsed, err := opentype.Parse(trueType(weight))
		if err != nil {
			panic(err) // the font is part of the program
		}
		return font.Face{
			Font: font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight, Size: size},
			Face: parsed,
		}
	}
	return &struct{ title, caption, text, small font.Face }{
		title:   face(xfont.WeightBold, 11.5),
		caption: face(xfont.WeightBold, 9),
		text:    face(xfont.WeightNormal, 10),
		small:   face(xfont.WeightNormal, 8.5),
	}
})

// trueType returns the font file for a weight.
func trueType(weight xfont.Weight) []byte {
	if weight == xfont.WeightBold {
		return liberationsansbold.TTF
	}
	return liberationsansregular.TTF
}

// ascent is the height of digits above the baseline, as a fraction of the font size.
const ascent = 0.7

// Alignment of a text relative to its point, as a fraction of its width.
const (
	fromLeft = 0.0
	centred  = 0.5
	fromEnd  = 1.0
)

// symbol matches a symbol with its subscript, such as β_T and t_0, that is not part of a word.
var symbol = regexp.MustCompile(`(?:^|[^\pL\pN_])((?:[tCw]|ŵ|β|κ|λ)_([0-9A-Za-z]))(?:[^\pL\pN_]|$)`)

// Size and depth of a subscript, as fractions of the font size.
const (
	subscriptSize = 0.72
	subscriptDrop = 0.18
)

// piece is a part of a line of text in one face.
type piece struct {
	face font.Face
	drop vg.Length // distance below the baseline
	text string
}

// pieces splits a line of text: symbols' subscripts are set below the line.
func pieces(f font.Face, text string) []piece {
	var all []piece
	for {
		m := symbol.FindStringSubmatchIndex(text)
		if m == nil {
			break
		}
		sub := f
		sub.Font.Size *= subscriptSize
		all = append(all,
			piece{f, 0, text[:m[4]-len("_")]},
			piece{sub, subscriptDrop * f.Font.Size, text[m[4]:m[5]]})
		text = text[m[5]:]
	}
	if text != "" {
		all = append(all, piece{f, 0, text})
	}
	return all
}

// textWidth returns the width of a line of text as set by write.
func textWidth(f font.Face, text string) (w vg.Length) {
	for _, p := range pieces(f, text) {
		w += p.face.Width(p.text)
	}
	return w
}

// write writes a line of text with its baseline at pt.
func write(c vg.Canvas, f font.Face, ink color.Color, pt vg.Point, align vg.Length, text string) {
	if text == "" {
		return
	}
	c.SetColor(ink)
	c.FillString(f, vg.Point{X: pt.X - align*textWidth(f, text), Y: pt.Y}, text)
}

// typesetter is a canvas that sets subscripts, and a box for each character that the fonts lack: they would leave it
// blank, and a PDF has no room for those beyond U+FFFF. An SVG keeps them, for the fonts of its viewer.
type typesetter struct{ vg.CanvasSizer }

// FillString implements [vg.Canvas].
func (t typesetter) FillString(f font.Face, pt vg.Point, text string) {
	text = strings.Map(func(r rune) rune {
		if glyph, err := f.Face.GlyphIndex(nil, r); err != nil || glyph == 0 {
			return '□'
		}
		return r
	}, text)
	for _, p := range pieces(f, text) {
		t.CanvasSizer.FillString(p.face, vg.Point{X: pt.X, Y: pt.Y - p.drop}, p.text)
		pt.X += p.face.Width(p.text)
	}
}

// writeUp centres a vertical line of text on pt, reading upwards.
func writeUp(c vg.Canvas, f font.Face, ink color.Color, pt vg.Point, text string) {
	c.Push()
	c.Translate(pt)
	c.Rotate(math.Pi / 2)
	write(c, f, ink, vg.Point{}, centred, text)
	c.Pop()
}

// minText is the smallest size for text that is shrunk to fit.
const minText = 6

// fit shrinks a text that is too wide for the room, and truncates it if it still is.
func fit(f font.Face, room vg.Length, text string) (font.Face, string) {
	if w := textWidth(f, text); w > room+1e-6 {
		f.Font.Size = max(f.Font.Size*room/w, minText)
	}
	cut := []rune(text)
	for len(cut) > 0 && textWidth(f, text) > room+1e-6 {
		cut = cut[:len(cut)-1]
		text = strings.TrimSpace(string(cut)) + "…"
	}
	return f, text
}

// textLine is where a line of text is written: its baseline at a point, and how wide it may be.
type textLine struct {
	at          vg.Point
	align, room vg.Length
}

// writeIn writes a text that fits in a line.
func writeIn(c vg.Canvas, f font.Face, ink color.Color, in textLine, text string) {
	f, text = fit(f, in.room, text)
	write(c, f, ink, in.at, in.align, text)
}

// minus replaces the hyphens in numbers by minus signs.
func minus(number string) string { return strings.ReplaceAll(number, "-", "−") }
