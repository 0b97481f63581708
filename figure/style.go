package figure

import (
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// style is how a policy is drawn, everywhere.
type style struct {
	color  color.NRGBA
	dashes []vg.Length // lengths on and off in turn, in points; nil is solid
}

// line is the style as the canvas wants it.
func (s style) line() draw.LineStyle {
	return draw.LineStyle{Color: s.color, Width: lineWidth, Dashes: s.dashes}
}

// The colours of Okabe and Ito (2008), which every kind of colour vision tells
// apart, without their yellow, which is lost on paper; and a grey.
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

// known styles: where two colours are equally dark, the dashes differ.
var known = map[string]style{
	"onl-mnl":            {black, nil},
	"ucb-mnl":            {blue, []vg.Length{8, 3}},
	"ts-mnl":             {skyBlue, []vg.Length{5, 2}},
	"ofu-mnl-plus":       {green, []vg.Length{2.5, 1.8}},
	"eps-greedy-mnl":     {vermilion, []vg.Length{16, 3}},
	"eps-greedy-sets":    {vermilion, []vg.Length{10, 4, 2, 4}},
	"log-barrier-mnl":    {purple, []vg.Length{14, 2, 1.5, 2}},
	"log-barrier-online": {purple, []vg.Length{3.5, 3.5}},
	"eps-greedy-online":  {vermilion, []vg.Length{5, 1.5, 1.5, 1.5}},
	"feel-good-ts":       {green, []vg.Length{12, 2, 4, 2}},
	"feel-good-log":      {green, []vg.Length{7, 2, 1.5, 2, 1.5, 2}},
	"greedy":             {orange, []vg.Length{8, 2, 3, 2}},
	"uniform":            {grey, nil},
	"oracle":             {black, []vg.Length{1.2, 2.4}},
}

// tuned is the suffix of a policy with another policy's algorithm, and
// constants chosen by experiment.
const tuned = "-tuned"

// The styles of names that are not known: every colour meets every dash before
// a pair comes back, because the two lengths have no common divisor. Then the
// dashes gain a dot.
var (
	otherColors = []color.NRGBA{purple, green, orange, blue}
	otherDashes = [][]vg.Length{{11, 2, 2, 2, 2, 2}, {6, 4}, {18, 2, 6, 2}, {2, 4}, {4, 1.5, 1.5, 1.5}}
)

// styles gives every policy of the panels its style: known names and their
// tuned variants always the same, other names what the tables hold for them in
// the order in which they appear.
func styles(panels ...Panel) map[string]style {
	all := map[string]style{}
	others := 0
	for _, p := range panels {
		for _, c := range p.Curves {
			if _, ok := all[c.Policy]; ok {
				continue
			}
			base, isTuned := strings.CutSuffix(c.Policy, tuned)
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
			all[c.Policy] = s
		}
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
