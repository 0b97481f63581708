package main

import (
	"context"
	"fmt"
	"path/filepath"
	"text/tabwriter"

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
	if err := drawGeometricCondition(dir); err != nil {
		return err
	}
	printConstants(t, l.Constants)
	fmt.Fprintf(t.err, "vitrine: results are in %s\n", dir)
	return nil
}

func drawGeometricCondition(dir string, formats ...figure.Format) error {
	l, err := geometry.Read(dir)
	if err != nil {
		return err
	}
	return figure.Write(filepath.Join(dir, experiments.GeometricCondition), figure.Landscape(*l), formats...)
}

func printConstants(t terminal, c geometry.Constants) {
	fmt.Fprintf(t.out, "%s: f_w(x) = %s, x ~ U[%v, %v]\n", c.Experiment, c.Utility, c.Setting.Contexts[0], c.Setting.Contexts[1])
	w := tabwriter.NewWriter(t.out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "  μ\t%v\tlocal strong convexity, %v of the curvature at W*\n", c.Condition.Mu, c.Setting.Share)
	fmt.Fprintf(w, "  τ\t%v\tgrowth, tight at %s\n", c.Condition.Tau, point(c.Tight))
	fmt.Fprintf(w, "  γ\t%v\n", c.Condition.Gamma)
	fmt.Fprintf(w, "  E|S|\t%.4f\tN = %d, K = %d\n", c.ExpectedSize, c.Setting.Items, c.Setting.Size)
	for _, g := range c.Global {
		fmt.Fprintf(w, "  W*\t%s\n", point(g))
	}
	fmt.Fprintf(w, "  spurious minima\t%d\n", len(c.Spurious))
	w.Flush()
}

func point(w geometry.Params) string { return fmt.Sprintf("(%.3f, %.3f)", w[0], w[1]) }
