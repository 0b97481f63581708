package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"vitrine/service/engine"
	"vitrine/service/inspect"
)

type replayCmd struct {
	logArg
	Snapshots []string `arg:"" optional:"" help:"Snapshots to compare with, in addition to the one in the data directory."`
}

func (replayCmd) Help() string {
	return `The command replays the log from its first entry and learns from it, as the service does when it starts without a snapshot. The state after the last entry of a snapshot must equal the snapshot byte for byte. If the first entries of a log were removed, it is replayed from the earliest snapshot that contains them.

It prints for each snapshot whether it is equal, and what each placement has learned. The exit status is 1 if a snapshot differs or the log cannot be replayed to its end. A replay needs as much memory as the service.

` + aboutLog + "\n\n" + examples("vitrine replay vitrine-data", "vitrine replay vitrine-data /backup/state.snapshot")
}

func (c replayCmd) Run(ctx context.Context, t terminal) (err error) {
	log, err := c.open(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	compared, different := 0, 0
	e, err := log.Replay(ctx, c.Snapshots, func(s inspect.Comparison) {
		if s.Equal || s.Different != "" {
			compared++
		}
		if s.Different != "" {
			different++
			fmt.Fprintf(t.out, "%s: different: %s\n", s.Path, s.Different)
			return
		}
		fmt.Fprintf(t.out, "%s: %s\n", s.Path, s.Note)
	})
	if err != nil {
		return err
	}
	defer e.Close()
	fmt.Fprintf(t.out, "%s: replayed up to entry %d\n", log.Name, e.Sequence())
	if err := c.print(t, e); err != nil {
		return err
	}
	if different > 0 {
		return fmt.Errorf("%s: %d of %d snapshots do not belong to this log", log.Name, different, compared)
	}
	return nil
}

func (replayCmd) print(t terminal, e *engine.Engine) error {
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nplacement\tdecisions\tchosen\texpired\tevicted\topen\tlearned\tskipped\tpolicy entry")
	for _, name := range e.Placements() {
		s, err := e.Stats(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", name, s.Decisions, s.Outcomes, s.Expired, s.ExpiredEarly,
			s.Pending, s.Learned, s.Skipped, s.PolicyEntry)
		if s.Problem != "" {
			t.warn(fmt.Sprintf("placement %q: %s", name, s.Problem))
		}
	}
	return w.Flush()
}
