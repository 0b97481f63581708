package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vitrine/experiment"
	"vitrine/figure"
	"vitrine/internal/hint"
	"vitrine/internal/replace"
	"vitrine/paper/experiments"
	"vitrine/paper/geometry"
	"vitrine/paper/sessions"
	"vitrine/paper/theory"
	"vitrine/paper/tractability"
)

type plotCmd struct {
	Dirs []string `arg:"" name:"dir" help:"A directory with a regret.csv or a tune.csv, one that holds such directories, or a figure in one, as out/main."`
	drawFlags
}

func (plotCmd) Help() string {
	return `Pictures are written next to the results: regret.svg, main.svg. --difference also writes difference.svg or main-difference.svg. A table in LaTeX, --format tex, is regret.tex or main.tex; it has the mean ± the standard deviation, and the paired difference to the first policy, or to the one of --difference, ± its standard error. It needs \usepackage{booktabs}.

For tunings and other results that are not regret, only --format has an effect.

` + examples(
		"vitrine plot out                                every experiment in it, and the figures that are complete",
		"vitrine plot out/main --format pdf --width 5.5in --names paper",
		"vitrine plot out/main-gaussian-realizable --difference onl-mnl --band ci",
		"vitrine plot out --policies onl-mnl,ucb-mnl,uniform --scale log",
		"vitrine plot out/main --format tex --names paper",
	)
}

func (c plotCmd) Run(t terminal) error {
	d, err := c.drawing()
	if err != nil {
		return err
	}
	var found []drawable
	for _, dir := range c.Dirs {
		here, err := findDrawables(dir)
		if err != nil {
			return err
		}
		found = append(found, here...)
	}
	return d.draw(t, found)
}

// drawable is a result that can be drawn: the regret of one experiment, or of several in a figure, or another
// result.
type drawable struct {
	path string // its name in messages

	// For regret: the files without their extensions, the layout of the figure, and the directories of the
	// experiments, in the places of the figure.
	stem, differences string
	layout            experiments.Figure
	dirs              [][]string

	// For other results, in the directory path.
	other func(dir string, formats ...figure.Format) error
}

func (f drawable) isRegret() bool { return f.dirs != nil }
func (f drawable) isFigure() bool { return f.layout.Rows != nil }

// picture returns the figure of the panels or, for an experiment, its only panel.
func (f drawable) picture(c figure.Composite, l figure.Look) figure.Picture {
	if f.isFigure() {
		return c.With(l)
	}
	return c.Rows[0][0].With(l)
}

// others are the results that are not regret: the file that marks each, and the function that draws it.
var others = []struct {
	mark string
	draw func(dir string, formats ...figure.Format) error
}{
	{"tune.csv", drawTuning},
	{geometry.Mark, drawGeometricCondition},
	{theory.Mark, drawTheory},
	{tractability.Mark, drawTractability},
	{sessions.Mark, drawSessions},
}

// regretOf returns the regret of the experiment with results in dir.
func regretOf(dir string) drawable {
	return drawable{path: dir, stem: filepath.Join(dir, "regret"), differences: filepath.Join(dir, "difference"),
		dirs: [][]string{{dir}}}
}

func figureIn(out string, f experiments.Figure) drawable {
	stem := filepath.Join(out, f.Name)
	d := drawable{path: stem, stem: stem, differences: stem + "-difference", layout: f}
	for _, row := range f.Rows {
		var dirs []string
		for _, place := range row {
			dirs = append(dirs, filepath.Join(out, place.Experiment))
		}
		d.dirs = append(d.dirs, dirs)
	}
	return d
}

// in returns the result in dir itself.
func in(dir string) (d drawable, ok bool) {
	if exists(filepath.Join(dir, "regret.csv")) {
		return regretOf(dir), true
	}
	for _, o := range others {
		if exists(filepath.Join(dir, o.mark)) {
			return drawable{path: dir, other: o.draw}, true
		}
	}
	return drawable{}, false
}

// exists reports whether there is a file of this name. An experiment may be called regret.csv.
func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// The hint if no result can be drawn.
const whence = "results come from vitrine reproduce, vitrine run and vitrine tune"

// findDrawables returns the result in dir or, without one, the results in its subdirectories and its tunings, and the
// figures that these form.
func findDrawables(dir string) ([]drawable, error) {
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return findFigure(dir)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, hint.New(fmt.Errorf("%s: is a file, not a directory", dir), "name the directory that it is in")
	}
	if d, ok := in(dir); ok {
		return []drawable{d}, nil
	}
	found, err := below(dir)
	if err != nil {
		return nil, err
	}
	var played []string
	for _, d := range found {
		if d.isRegret() {
			played = append(played, filepath.Base(d.path))
		}
	}
	if tunings := filepath.Join(dir, tuningsDir); isDir(tunings) {
		tuned, err := below(tunings)
		if err != nil {
			return nil, err
		}
		found = append(found, tuned...)
	}
	switch {
	case len(found) > 0:
	case exists(filepath.Join(dir, "runs.jsonl")):
		return nil, hint.New(fmt.Errorf("%s: no regret.csv: the experiment is not finished", dir),
			"give its command again, it continues from the finished runs")
	default:
		return nil, hint.New(fmt.Errorf("%s: no regret.csv or tune.csv in it, or in a directory in it", dir), whence)
	}
	for _, f := range experiments.Figures(played) {
		found = append(found, figureIn(dir, f))
	}
	return found, nil
}

// below returns the results in the subdirectories of dir.
func below(dir string) (found []drawable, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if d, ok := in(filepath.Join(dir, e.Name())); ok {
			found = append(found, d)
		}
	}
	return found, nil
}

// findFigure returns the figure that path names in a directory of results.
func findFigure(path string) ([]drawable, error) {
	out, name := filepath.Split(filepath.Clean(path))
	out = cmp.Or(filepath.Clean(out), ".")
	all := experiments.Figures(experiments.Names())
	i := slices.IndexFunc(all, func(f experiments.Figure) bool { return f.Name == name })
	if i < 0 || !isDir(out) {
		return nil, hint.New(fmt.Errorf("%s: no such directory", path), whence)
	}
	for _, row := range all[i].Rows {
		for _, place := range row {
			if !exists(filepath.Join(out, place.Experiment, "regret.csv")) {
				return nil, hint.New(fmt.Errorf("%s: the figure needs %s, and %s has no regret.csv of it", path,
					place.Experiment, out), "vitrine reproduce "+name+" --out "+out+" plays its experiments")
			}
		}
	}
	return []drawable{figureIn(out, all[i])}, nil
}

// draw draws the results. If the flags leave a result empty, that is an error or, among several results, a warning.
func (d drawing) draw(t terminal, found []drawable) error {
	regret := slices.DeleteFunc(slices.Clone(found), func(f drawable) bool { return !f.isRegret() })
	if d.title != "" && len(regret) != 1 {
		return usagef("--title: there are %d pictures of regret here, and the title is for one: "+
			"name the directory of an experiment, or a figure such as out/main", len(regret))
	}
	panels := map[string]figure.Panel{}
	for _, f := range regret {
		for _, dir := range slices.Concat(f.dirs...) {
			if _, ok := panels[dir]; ok {
				continue
			}
			p, err := readPanel(dir)
			if err != nil {
				return err
			}
			panels[dir] = p
		}
	}
	if err := d.known(panels); err != nil {
		return err
	}
	drawn := 0
	for _, f := range found {
		var err error
		if !f.isRegret() {
			err = d.drawOther(f)
		} else {
			err = d.drawRegret(f, panels)
		}
		var none nothing
		switch {
		case errors.As(err, &none) && len(found) > 1:
			t.warn(fmt.Sprintf("not drawn: %v", err))
		case err != nil:
			return err
		default:
			drawn++
		}
	}
	if drawn == 0 {
		return errors.New("nothing was drawn, for the reasons above")
	}
	return nil
}

// nothing is the reason why a result cannot be drawn with these flags.
type nothing struct{ error }

func (n nothing) Unwrap() error { return n.error }

// known returns an error if a policy in the flags is missing in all panels.
func (d drawing) known(panels map[string]figure.Panel) error {
	if len(panels) == 0 {
		return nil
	}
	var all []string
	for _, p := range panels {
		all = append(all, labelsOf(p)...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, wanted := range []struct {
		flag   string
		labels []string
	}{{"--policies", d.policies}, {"--difference", []string{d.against}}} {
		for _, label := range wanted.labels {
			if label != "" && !slices.Contains(all, label) {
				return hint.New(fmt.Errorf("%s: there is no policy %q in these results", wanted.flag, label),
					"they have "+strings.Join(all, ", "))
			}
		}
	}
	return nil
}

func labelsOf(p figure.Panel) (labels []string) {
	for _, c := range p.Curves {
		labels = append(labels, c.Policy)
	}
	return labels
}

func (d drawing) drawOther(f drawable) error {
	if len(d.regretOnly) > 0 {
		return nothing{hint.New(usagef("%s holds no regret, and only regret has %s", f.path,
			strings.Join(d.regretOnly, " and ")), "such results have only --format svg, png and pdf")}
	}
	return f.other(f.path, d.outputs...)
}

// drawRegret draws the regret of an experiment or a figure.
func (d drawing) drawRegret(f drawable, panels map[string]figure.Panel) error {
	regret := figure.Composite{Title: d.title, Heads: f.layout.Heads}
	differences := regret
	for i, dirs := range f.dirs {
		var row, minus []figure.Panel
		for j, dir := range dirs {
			p := panels[dir]
			if f.isFigure() {
				p.Title = f.layout.Rows[i][j].Caption
			} else if d.title != "" {
				p.Title = d.title
			}
			kept := d.keep(p)
			if len(kept.Curves) == 0 {
				return nothing{fmt.Errorf("%s has none of the policies %s", dir, strings.Join(d.policies, ", "))}
			}
			if policy, zero := kept.Zero(); zero && d.look.Log {
				return nothing{hint.New(fmt.Errorf("--scale log: %s has regret 0 in %s, which has no logarithm", policy,
					dir), "leave it out: --policies with those to be drawn")}
			}
			row = append(row, kept)
			if !d.table && d.against == "" {
				continue
			}
			against := cmp.Or(d.against, kept.Curves[0].Policy)
			difference, ok := p.Minus(against)
			if !ok {
				return nothing{fmt.Errorf("--difference: %s has no policy %s", dir, against)}
			}
			minus = append(minus, d.keep(difference))
		}
		regret.Rows, differences.Rows = append(regret.Rows, row), append(differences.Rows, minus)
	}
	if !d.noPicture {
		if err := figure.Write(f.stem, f.picture(regret, d.look), d.outputs...); err != nil {
			return err
		}
		if d.against != "" {
			d.look.Log = false // differences may be negative
			if err := figure.Write(f.differences, f.picture(differences, d.look), d.outputs...); err != nil {
				return err
			}
		}
	}
	if !d.table {
		return nil
	}
	table := figure.Table{Panels: slices.Concat(regret.Rows...), Differences: slices.Concat(differences.Rows...),
		Paper: d.look.Paper}
	if f.isFigure() {
		table.Title = d.title
	}
	var text bytes.Buffer
	if _, err := table.WriteTo(&text); err != nil {
		return err
	}
	return replace.File(f.stem+".tex", text.Bytes())
}

// keep returns the panel with only the policies to draw.
func (d drawing) keep(p figure.Panel) figure.Panel {
	if len(d.policies) > 0 {
		p.Curves = slices.DeleteFunc(slices.Clone(p.Curves), func(c figure.Curve) bool {
			return !slices.Contains(d.policies, c.Policy)
		})
	}
	return p
}

// readPanel reads the regret of an experiment and its title. A file with fewer rows than were played, such as
// a truncated one, is an error.
func readPanel(dir string) (figure.Panel, error) {
	path := filepath.Join(dir, "regret.csv")
	p, err := figure.ReadPanel(path)
	if err != nil {
		return p, err
	}
	played, ok := experiment.ReadPlayed(dir)
	if !ok {
		return p, nil
	}
	p.Title = played.Title
	whole := len(p.Curves) == len(played.Policies)
	for _, c := range p.Curves {
		whole = whole && len(c.Regret) == played.Seeds && len(c.Regret[0]) == played.Rounds
	}
	if !whole {
		return p, fmt.Errorf("%s: differs from run.json, which has %d policies on %d seeds of %d rounds: give the "+
			"command again, it continues from the finished runs", path, len(played.Policies), played.Seeds,
			played.Rounds)
	}
	return p, nil
}
