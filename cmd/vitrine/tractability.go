package main

import (
	"context"
	"fmt"
	"path/filepath"
	"text/tabwriter"
	"time"

	"vitrine/experiment"
	"vitrine/figure"
	"vitrine/internal/hint"
	"vitrine/paper/experiments"
	"vitrine/paper/tractability"
)

// reproduceTractability measures the algorithms at the sizes not yet measured, writes and draws the results,
// and prints the largest size of each.
func reproduceTractability(ctx context.Context, t terminal, out string) error {
	v, err := fullVersion()
	if err != nil {
		return err
	}
	dir := filepath.Join(out, experiments.Tractability)
	s, err := tractability.Open(dir, tractability.Record{
		Experiment: experiments.Tractability, Version: v, Machine: machine(), Setting: tractability.Figure,
	})
	if err != nil {
		return err
	}
	algorithms := tractability.Algorithms()
	bar := newProgress(t.err, experiments.Tractability, "", len(algorithms)*len(s.Setting.Cells()))
	bar.add(len(s.Points))
	start := time.Now()
	clock := func() time.Duration { return time.Since(start) }
	err = tractability.Measure(ctx, s.Setting, algorithms, clock, s.Has, func(p tractability.Point) error {
		s.Points = append(s.Points, p)
		bar.add(1)
		return s.Write(dir)
	})
	bar.close()
	if ctx.Err() != nil {
		return experiment.ErrInterrupted
	}
	if err != nil {
		return err
	}
	if err := drawTractability(dir); err != nil {
		return err
	}
	printTractability(t, s)
	fmt.Fprintf(t.err, "vitrine: results are in %s\n", dir)
	return nil
}

// machine returns the kind and the number of processors.
func machine() string {
	m := experiment.Machine()
	return fmt.Sprintf("%v/%v, %v processors, %v", m["os"], m["arch"], m["processors"], m["go"])
}

func drawTractability(dir string, formats ...figure.Format) error {
	s, err := tractability.Read(dir)
	if err != nil {
		return err
	}
	if len(s.Points) == 0 {
		return hint.New(fmt.Errorf("%s: nothing is measured yet", filepath.Join(dir, tractability.Mark)), "vitrine reproduce tractability measures it")
	}
	return figure.Write(filepath.Join(dir, experiments.Tractability), figure.Tractability(*s), formats...)
}

// printTractability prints the cost of the algorithms at the smallest and largest sizes.
func printTractability(t terminal, s *tractability.Survey) {
	cells := []tractability.Cell{
		{Items: s.Setting.Items[0], Size: s.Setting.Size},
		{Items: s.Setting.Items[len(s.Setting.Items)-1], Size: s.Setting.Size},
		{Items: s.Setting.Among, Size: s.Setting.Sizes[len(s.Setting.Sizes)-1]},
	}
	fmt.Fprintf(t.out, "%s: an offer, and a round observed after %d rounds\n", experiments.Tractability, s.Setting.Rounds)
	w := tabwriter.NewWriter(t.out, 0, 0, 3, ' ', 0)
	fmt.Fprint(w, "  policy")
	for _, c := range cells {
		fmt.Fprintf(w, "\tN = %d, K = %d", c.Items, c.Size)
	}
	fmt.Fprintln(w)
	for _, a := range tractability.Algorithms() {
		fmt.Fprintf(w, "  %s", a.Policy)
		for _, c := range cells {
			for _, p := range s.Points {
				switch {
				case p.Policy != a.Policy || p.Cell != c:
				case p.Refused != "":
					fmt.Fprintf(w, "\trefused: %s assortments", p.Refused)
				default:
					fmt.Fprintf(w, "\t%s, %s", duration(p.Offer), duration(p.Round))
				}
			}
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

// duration formats seconds to three digits.
func duration(seconds float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}} {
		if seconds >= unit.size {
			return fmt.Sprintf("%.3g %s", seconds/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.3g ns", seconds/1e-9)
}
