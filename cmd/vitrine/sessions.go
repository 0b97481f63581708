package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"vitrine/figure"
	"vitrine/paper/experiments"
	"vitrine/paper/sessions"
)

// sessionSeeds is the default number of seeds of the sessions.
const sessionSeeds = 10

// reproduceSessions plays the agents of package mdp, writes and draws what their sessions earn, and prints a table.
func (c playFlags) reproduceSessions(ctx context.Context, t terminal) error {
	if err := c.check(); err != nil {
		return err
	}
	s := sessions.Default(c.seeds(sessionSeeds))
	bar := newProgress(t.err, experiments.Sessions, "", s.Runs())
	r, err := s.Run(ctx, c.Workers, bar.add)
	bar.close()
	if ctx.Err() != nil {
		return errors.New("interrupted: the sessions are written when all are played; --seeds plays fewer")
	}
	if err != nil {
		return err
	}
	dir := filepath.Join(c.Out, experiments.Sessions)
	if err := r.Write(dir); err != nil {
		return err
	}
	if err := drawSessions(dir); err != nil {
		return err
	}
	r.Print(t.out)
	fmt.Fprintf(t.err, "vitrine: results are in %s\n", dir)
	return nil
}

func drawSessions(dir string, formats ...figure.Format) error {
	r, err := sessions.Read(dir)
	if err != nil {
		return err
	}
	return figure.Write(filepath.Join(dir, experiments.Sessions), figure.Sessions(*r), formats...)
}
