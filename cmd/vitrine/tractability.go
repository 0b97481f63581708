package main

import (
	"context"
	"fmt"
	"path/filepath"
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
	return t.present(dir, drawTractability, s.Print)
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
		return hint.New(fmt.Errorf("%s: nothing is measured yet", filepath.Join(dir, tractability.Mark)),
			"vitrine reproduce tractability measures it")
	}
	return figure.Write(filepath.Join(dir, experiments.Tractability), figure.Tractability(*s), formats...)
}
