package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"vitrine/experiment"
	"vitrine/experiments"
	"vitrine/figure"
	"vitrine/geometry"
	"vitrine/theory"
	"vitrine/tractability"
)

type plotCmd struct {
	Dirs []string `arg:"" name:"dir" help:"A directory with a regret.csv or a tune.csv, or one that holds such directories."`
}

// Help is the tail of the command's help.
func (plotCmd) Help() string {
	return examples("vitrine plot out/main-gaussian-realizable", "vitrine plot out        every experiment in it, and the figures that are complete")
}

// Run draws what the directories hold.
func (c plotCmd) Run(t terminal) error {
	for _, dir := range c.Dirs {
		if err := plot(dir); err != nil {
			return err
		}
	}
	return nil
}

// results are the kinds of results that a directory may hold: the file that marks
// them, and how they are drawn.
var results = []struct {
	mark string
	draw func(dir string) error
}{
	{"regret.csv", drawRegret},
	{"tune.csv", drawTuning},
	{geometry.Mark, drawGeometricCondition},
	{theory.Mark, drawTheory},
	{tractability.Mark, drawTractability},
}

// draw draws the results that dir itself holds, and reports whether it does.
func draw(dir string) (drawn bool, err error) {
	for _, r := range results {
		if exists(filepath.Join(dir, r.mark)) {
			return true, r.draw(dir)
		}
	}
	return false, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// plot draws the results in dir or, where it has none, those in the
// directories below it and in its tunings, and the figures that these make up.
func plot(dir string) error {
	if drawn, err := draw(dir); drawn || err != nil {
		return err
	}
	found, err := plotBelow(dir)
	if err != nil {
		return err
	}
	drawn := len(found)
	if tunings := filepath.Join(dir, tuningsDir); isDir(tunings) {
		tuned, err := plotBelow(tunings)
		if err != nil {
			return err
		}
		drawn += len(tuned)
	}
	if drawn == 0 {
		return hinted{fmt.Errorf("%s: no regret.csv in it or below it, and no tune.csv", dir), "results come from vitrine reproduce, vitrine run and vitrine tune"}
	}
	panels := slices.DeleteFunc(found, func(name string) bool { return !exists(filepath.Join(dir, name, "regret.csv")) })
	for _, f := range experiments.Figures(panels) {
		if err := drawFigure(dir, f); err != nil {
			return err
		}
	}
	return nil
}

// plotBelow draws the results in the directories of dir, and returns the names
// of those that have some.
func plotBelow(dir string) (found []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		drawn, err := draw(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if drawn {
			found = append(found, e.Name())
		}
	}
	return found, nil
}

// drawRegret draws the regret of an experiment.
func drawRegret(dir string) error {
	p, err := readPanel(dir)
	if err != nil {
		return err
	}
	return figure.Write(filepath.Join(dir, "regret"), p)
}

// drawFigure draws a figure of the paper from the experiments in out.
func drawFigure(out string, f experiments.Figure) error {
	composite := figure.Composite{Heads: f.Heads}
	for _, places := range f.Rows {
		var row []figure.Panel
		for _, place := range places {
			p, err := readPanel(filepath.Join(out, place.Experiment))
			if err != nil {
				return err
			}
			p.Title = place.Caption
			row = append(row, p)
		}
		composite.Rows = append(composite.Rows, row)
	}
	return figure.Write(filepath.Join(out, f.Name), composite)
}

// readPanel reads the regret of an experiment, with the title that it had. A
// file that has less than was played, as one has that was cut off at the end of
// a line, is an error.
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
		whole = whole && c.Seeds == played.Seeds && len(c.Mean) == played.Rounds
	}
	if !whole {
		return p, fmt.Errorf("%s: it is not what run.json says was played, %d policies on %d seeds of %d rounds: give the command again, it continues from the finished runs", path, len(played.Policies), played.Seeds, played.Rounds)
	}
	return p, nil
}
