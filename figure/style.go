package figure

import (
	"fmt"
	"image/color"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"vitrine/bandit/policy"
)

// style is a policy's colour and dashes in all pictures.
type style struct {
	color  color.NRGBA
	dashes []vg.Length // alternating lengths on and off, in points; nil is solid
}

func (s style) line() draw.LineStyle {
	return draw.LineStyle{Color: s.color, Width: lineWidth, Dashes: s.dashes}
}

// The colours by Okabe and Ito (2008), which can be distinguished with every kind of colour vision, without their
// yellow, which is invisible on paper; and a grey.
var (
	black     = color.NRGBA{0, 0, 0, 255}
	orange    = color.NRGBA{230, 159, 0, 255}
	skyBlue   = color.NRGBA{86, 180, 233, 255}
	green     = color.NRGBA{0, 158, 115, 255}
	blue      = color.NRGBA{0, 114, 178, 255}
	vermilion = color.NRGBA{213, 94, 0, 255}
	purple    = color.NRGBA{204, 121, 167, 255}
	grey      = color.NRGBA{140, 140, 140, 255}
)

// palette maps the colour names in the table of policies to colours.
var palette = map[string]color.NRGBA{
	"black": black, "orange": orange, "sky blue": skyBlue, "green": green,
	"blue": blue, "vermilion": vermilion, "purple": purple, "grey": grey,
}

// known maps labels of known policies to their styles.
var known = knownStyles()

func knownStyles() map[string]style {
	all := map[string]style{}
	for _, p := range policy.All {
		if p.Line.Color == "" {
			continue
		}
		c, ok := palette[p.Line.Color]
		if !ok {
			panic(fmt.Sprintf("figure: policy %s has the color %q: must be one of %q",
				p.Name, p.Line.Color, slices.Sorted(maps.Keys(palette))))
		}
		all[p.Name] = style{c, points(p.Line.Dashes)}
		for _, v := range p.Line.Variants {
			all[v.Label] = style{c, points(v.Dashes)}
		}
	}
	return all
}

func points(dashes []float64) (lengths []vg.Length) {
	for _, d := range dashes {
		lengths = append(lengths, vg.Length(d))
	}
	return lengths
}

// tuned is the suffix for a policy that runs another policy's algorithm with tuned constants.
const tuned = "-tuned"

// Styles for other names. The two lengths have no common divisor, so every colour is combined with every dash before a
// pair repeats. After that, the dashes gain a dot.
var (
	otherColors = []color.NRGBA{purple, green, orange, blue}
	otherDashes = [][]vg.Length{{11, 2, 2, 2, 2, 2}, {6, 4}, {18, 2, 6, 2}, {2, 4}, {4, 1.5, 1.5, 1.5}}
)

// styles returns a style for every policy. Known names and their tuned variants always get the same one. Other names take
// styles from the tables in the order in which they appear.
func styles(policies ...string) map[string]style {
	all := map[string]style{}
	others := 0
	for _, name := range policies {
		if _, ok := all[name]; ok {
			continue
		}
		base, isTuned := strings.CutSuffix(name, tuned)
		s, ok := known[base]
		switch {
		case !ok:
			s = style{otherColors[others%len(otherColors)], otherDashes[others%len(otherDashes)]}
			for range others / (len(otherColors) * len(otherDashes)) {
				s.dashes = dotted(s.dashes)
			}
			others++
		case isTuned:
			s.dashes = dotted(s.dashes)
		}
		all[name] = s
	}
	return all
}

// dotted adds a dot to every period of the dashes.
func dotted(dashes []vg.Length) []vg.Length {
	if dashes == nil {
		dashes = []vg.Length{18, 2}
	}
	return append(slices.Clone(dashes), 1.2, 2)
}
