package main

import (
	"context"
	"path/filepath"

	"vitrine/experiment"
	"vitrine/figure"
	"vitrine/paper/experiments"
	"vitrine/paper/geometry"
)

// reproduceGeometricCondition computes the figure of the geometric condition,
// writes and draws it, and prints its constants.
func reproduceGeometricCondition(ctx context.Context, t terminal, out string) error {
	l, err := geometry.Survey(ctx, geometry.Figure)
	if ctx.Err() != nil {
		return experiment.ErrInterrupted
	}
	if err != nil {
		return err
	}
	dir := filepath.Join(out, experiments.GeometricCondition)
	if err := l.Write(dir); err != nil {
		return err
	}
	return t.present(dir, drawGeometricCondition, l.Constants.Print)
}

func drawGeometricCondition(dir string, formats ...figure.Format) error {
	l, err := geometry.Read(dir)
	if err != nil {
		return err
	}
	return figure.Write(filepath.Join(dir, experiments.GeometricCondition), figure.Landscape(*l), formats...)
}
