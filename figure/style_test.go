package figure

import (
	"image/color"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vitrine/internal/expect"
)

func panelOf(policies ...string) Panel {
	var p Panel
	for _, name := range policies {
		p.Curves = append(p.Curves, Curve{Policy: name})
	}
	return p
}

// In greyscale, any two policies differ in their dashes or by 20 points of lightness (CIE L*, 0 to 100).
func TestStylesAreToldApartInGrey(t *testing.T) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(known)) {
		names = append(names, name, name+tuned)
	}
	all := styles(append(names, "one of mine", "another")...)
	for a, s := range all {
		for b, r := range all {
			if a < b && slices.Equal(s.dashes, r.dashes) && math.Abs(lightness(s.color)-lightness(r.color)) < 20 {
				t.Errorf("%s and %s look alike in grey", a, b)
			}
		}
	}
}

// lightness returns L* (CIE 1976) for an sRGB colour.
func lightness(c color.NRGBA) float64 {
	linear := func(v uint8) float64 { return math.Pow(float64(v)/255, 2.2) }
	y := 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
	return 116*math.Cbrt(y) - 16
}

func TestStylesTunedKeepsTheColour(t *testing.T) {
	all := styles("ucb-mnl", "ucb-mnl-tuned")
	if all["ucb-mnl"].color != all["ucb-mnl-tuned"].color {
		t.Error("ucb-mnl-tuned has another colour than ucb-mnl")
	}
	if slices.Equal(all["ucb-mnl"].dashes, all["ucb-mnl-tuned"].dashes) {
		t.Error("ucb-mnl-tuned has the dashes of ucb-mnl")
	}
}

// Known policies do not use up the styles for the others.
func TestStylesOfOtherNamesFollowTheirOrder(t *testing.T) {
	a := styles("onl-mnl", "x", "greedy", "y", "x")
	b := styles("x", "y")
	for _, name := range []string{"x", "y"} {
		expect.Equal(t, a[name], b[name], name, cmp.AllowUnexported(style{}))
	}
}

func TestStylesTwentyOtherNamesAllDiffer(t *testing.T) {
	var names []string
	for k := range 20 {
		names = append(names, "policy "+strconv.Itoa(k))
	}
	all := styles(names...)
	for i, a := range names {
		for _, b := range names[:i] {
			if all[a].color == all[b].color && slices.Equal(all[a].dashes, all[b].dashes) {
				t.Errorf("%s and %s share a style", a, b)
			}
		}
	}
}
