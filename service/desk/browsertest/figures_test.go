package browsertest

import (
	"bytes"
	"cmp"
	"flag"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"vitrine/internal/fatal"
)

var figures = flag.String("figures", "", "directory to write the pictures of the documentation to")

// maxFigure is the largest picture of the documentation, in bytes.
const maxFigure = 150 << 10

// The pictures of the documentation: a shop after a change of fashion, and a placement with a changed size.
func TestFigures(t *testing.T) {
	if *figures == "" {
		t.Skip("without -figures")
	}
	t.Run("shop", func(t *testing.T) {
		s := serve(t, withDemo)
		s.season(t)
		b := open(t, s.base)
		b.dress(1100, "light")
		b.visit("/shop")
		b.fill("You are a", "family")
		b.press("Come in")
		b.wait(`document.querySelector("main button.vase:not(:disabled)")`)
		b.on(`document.querySelector("main button.vase")`, "e.click()")
		b.wait(`document.querySelector("main [aria-live] table") && document.querySelector("main svg.plot")`)
		b.figure("shop")
		decision, _ := s.chosen(t, "auto", "visitor-family-", 1)
		b.visit("/")
		b.figure("overview")
		b.visit("/placements/auto/tastes")
		b.wait(`document.querySelectorAll("main svg.plot").length > 2`)
		b.figure("learned")
		b.visit("/placements/auto/items")
		b.wait(`document.querySelector("main .row-of-items img")?.complete`)
		b.figure("items")
		b.visit("/placements/auto/decisions/" + decision)
		b.wait(`document.querySelectorAll("main .card").length > 2 && document.querySelector("main .product img")?.complete`)
		b.figure("why")
	})
	t.Run("placement", func(t *testing.T) {
		s := serve(t, nil)
		b := open(t, s.base)
		b.dress(1100, "light")
		b.visit("/new")
		b.fill("Name", "home")
		b.press("See what this does")
		b.reads("This makes the placement")
		b.figure("new")
		b.press("Create the placement")
		b.wait(`location.hash.startsWith("#/placements/home")`)
		s.sell(t, "home", "first", 40)
		b.visit("/placements/home/settings")
		b.fill("At most", "4")
		b.press("See what this does")
		b.reads("would forget what it has learned from 40 visits")
		b.run(`document.querySelector("form.wide > .card").scrollIntoView()`)
		b.figure("change")
		fatal.Or(s.Keep(t.Context(), "home", "before the sale"))(t)
		s.sell(t, "home", "second", 40)
		b.careless = true // the browser notes that an edited form is left
		b.visit("/placements/home/versions")
		b.press("Go back to this…")
		b.reads("Vitrine forgets")
		b.figure("versions")
	})
}

// figure takes a picture of the window, with as many colours as fit into its bytes.
func (b *tab) figure(name string) {
	b.Helper()
	b.wait(rendered)
	shot := b.capture(false)
	full, err := png.Decode(bytes.NewReader(shot))
	fatal.If(b, err)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	fatal.If(b, encoder.Encode(&out, paletted(full)))
	if out.Len() > maxFigure {
		b.Errorf("%s has %d bytes, at most %d", name, out.Len(), maxFigure)
	}
	fatal.If(b, os.MkdirAll(*figures, 0o755))
	fatal.If(b, os.WriteFile(filepath.Join(*figures, name+".png"), out.Bytes(), 0o644))
}

// paletted returns a picture in its 256 most frequent colours.
func paletted(full image.Image) *image.Paletted {
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	r := full.Bounds()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return cmp.Compare(count[b], count[a]) })
	var palette color.Palette
	for _, c := range colours[:min(256, len(colours))] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	p := image.NewPaletted(r, palette)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			c := at(x, y)
			k, ok := nearest[c]
			if !ok {
				k = uint8(palette.Index(c))
				nearest[c] = k
			}
			p.SetColorIndex(x, y, k)
		}
	}
	return p
}
