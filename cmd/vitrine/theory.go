package main

import (
	"context"
	"path/filepath"

	"vitrine/figure"
	"vitrine/paper/experiments"
	"vitrine/paper/theory"
)

// reproduceTheory plays the study of the theory, writes and draws it, and prints its tables.
func (c playFlags) reproduceTheory(ctx context.Context, t terminal) error {
	v, err := fullVersion()
	if err != nil {
		return err
	}
	study, dir := theory.Default(c.seeds(30)), filepath.Join(c.Out, experiments.Theory)
	bar := newProgress(t.err, experiments.Theory, "", study.Rounds())
	r, err := study.Run(ctx, v, bar.options(t, dir, c.Workers))
	bar.close()
	if err != nil {
		return err
	}
	if err := r.Write(dir); err != nil {
		return err
	}
	return t.present(dir, drawTheory, r.Print)
}

func drawTheory(dir string, formats ...figure.Format) error {
	r, err := theory.Read(dir)
	if err != nil {
		return err
	}
	return figure.Write(filepath.Join(dir, experiments.Theory), figure.Theory(*r), formats...)
}
