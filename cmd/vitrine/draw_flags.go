package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"

	"vitrine/figure"
)

// drawFlags say how regret is drawn. A flag that is not given is empty, so that an error can name a given
// flag without effect.
type drawFlags struct {
	Format     []string `help:"Formats to write, separated by commas: svg, png, pdf, tex (a table in LaTeX) (default: svg,png)." placeholder:"A,B" complete:"formats"`
	Band       string   `help:"Band around the mean: se, ± 2 standard errors (the default); sd, ± one standard deviation; ci, the 95% confidence interval; quantiles, from 10% to 90% of the seeds; none." placeholder:"se|sd|ci|quantiles|none" complete:"bands"`
	Scale      string   `help:"Scale of regret: linear (the default) or log." placeholder:"linear|log" complete:"scales"`
	Policies   []string `help:"Draw only these, by label, separated by commas." placeholder:"A,B" complete:"policies"`
	Difference string   `help:"Draw also the paired differences to this policy, seed by seed." placeholder:"POLICY" complete:"policies"`
	Width      string   `help:"Width of the picture with a unit (in, cm, mm, pt), as 3.3in (default: enough for its panels). Letters keep their size." placeholder:"LENGTH"`
	Names      string   `help:"Names of policies: label (the default), as in the files; paper, such as ONL-MNL for onl-mnl." placeholder:"label|paper" complete:"namings"`
	Title      string   `help:"Title of the picture, if the results make one picture." placeholder:"TEXT"`
}

// drawing is the parsed flags. The zero value draws as vitrine run does.
type drawing struct {
	outputs    []figure.Format // of pictures; nil is SVG and PNG
	table      bool            // also a table in LaTeX,
	noPicture  bool            // or only that
	look       figure.Look
	policies   []string // nil is all
	against    string   // draw paired differences to this policy, or ""
	title      string
	regretOnly []string // the flags that were given and are for regret only
}

// drawing parses the flags. An error names the flag.
func (f drawFlags) drawing() (drawing, error) {
	d := drawing{policies: f.Policies, against: f.Difference, title: f.Title}
	if err := d.setFormats(f.Format); err != nil {
		return d, err
	}
	if f.Band != "" {
		band, ok := figure.ParseBand(f.Band)
		if !ok {
			return d, usagef("--band %s: must be one of %s", f.Band, strings.Join(figure.Bands(), ", "))
		}
		d.look.Band = band
	}
	if d.look.Log = f.Scale == "log"; !d.look.Log && f.Scale != "" && f.Scale != "linear" {
		return d, usagef("--scale %s: must be linear or log", f.Scale)
	}
	if d.look.Paper = f.Names == "paper"; !d.look.Paper && f.Names != "" && f.Names != "label" {
		return d, usagef("--names %s: must be label or paper", f.Names)
	}
	if f.Width != "" {
		width, err := parseWidth(f.Width)
		if err != nil {
			return d, err
		}
		d.look.Width = width
	}
	for _, flag := range []struct {
		name    string
		given   bool
		picture bool // no effect on a table
	}{
		{"--format tex", d.table, false},
		{"--band", f.Band != "", true},
		{"--scale", f.Scale != "", true},
		{"--policies", f.Policies != nil, false},
		{"--difference", f.Difference != "", false},
		{"--width", f.Width != "", true},
		{"--names", f.Names != "", false},
		{"--title", f.Title != "", false},
	} {
		if flag.given && flag.picture && d.noPicture {
			return d, usagef("%s: has no effect on a table, and --format %s asks for no picture",
				flag.name, strings.Join(f.Format, ","))
		}
		if flag.given {
			d.regretOnly = append(d.regretOnly, flag.name)
		}
	}
	return d, nil
}

func (d *drawing) setFormats(names []string) error {
	for _, name := range names {
		all := figure.Formats()
		i := slices.IndexFunc(all, func(f figure.Format) bool { return f.Name == name })
		switch {
		case name == "tex":
			d.table = true
		case i < 0:
			return usagef("--format %s: must be one or more of svg, png, pdf and tex", name)
		default:
			d.outputs = append(d.outputs, all[i])
		}
	}
	d.noPicture = d.table && d.outputs == nil
	return nil
}

// units of a width, in points.
var units = map[string]vg.Length{"in": vg.Inch, "cm": vg.Centimeter, "mm": vg.Millimeter, "pt": 1}

var length = regexp.MustCompile(`^([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?) *([a-z]*)$`)

// parseWidth reads the width of a picture, as 3.3in.
func parseWidth(text string) (vg.Length, error) {
	wrong := func(what string) error {
		return usagef("--width %s: %s from %gin to %gin", text, what, figure.MinWidth/vg.Inch, figure.MaxWidth/vg.Inch)
	}
	m := length.FindStringSubmatch(text)
	if m == nil {
		return 0, wrong("must be a number and a unit (in, cm, mm or pt),")
	}
	value, err := strconv.ParseFloat(m[1], 64)
	unit, ok := units[m[2]]
	if err != nil || !ok {
		return 0, wrong("must be a number and a unit (in, cm, mm or pt),")
	}
	width := vg.Length(value) * unit
	if !(width >= figure.MinWidth && width <= figure.MaxWidth) {
		return 0, wrong("must be")
	}
	return width, nil
}
