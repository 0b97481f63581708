package main

import (
	"context"
	"fmt"
	"path/filepath"

	"vitrine/figure"
	"vitrine/paper/sessions"
)

// reproduceSessions plays a study of package mdp's agents, by default on n seeds, writes and draws what their sessions
// earn, and prints a table.
func (c playFlags) reproduceSessions(study func(seeds []uint64) sessions.Study,
	n int) func(context.Context, terminal) error {
	return func(ctx context.Context, t terminal) error {
		s := study(c.seeds(n))
		bar := newProgress(t.err, s.Name, "", s.Runs())
		r, err := s.Run(ctx, c.Workers, bar.add)
		bar.close()
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted: the %s are written when all are played; --seeds plays fewer", s.Name)
		}
		if err != nil {
			return err
		}
		dir := filepath.Join(c.Out, s.Name)
		if err := r.Write(dir); err != nil {
			return err
		}
		return t.present(dir, drawSessions, r.Print)
	}
}

func drawSessions(dir string, formats ...figure.Format) error {
	r, err := sessions.Read(dir)
	if err != nil {
		return err
	}
	return figure.Write(filepath.Join(dir, r.Study.Name), figure.Sessions(*r), formats...)
}
