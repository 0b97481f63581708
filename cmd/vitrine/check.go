package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"vitrine/service/eventlog"
	"vitrine/service/inspect"
)

type checkCmd struct {
	logArg
	Against string `placeholder:"LOG" help:"Another copy of the log, such as a backup: find where the two differ."`
}

func (checkCmd) Help() string {
	return `The command reads every entry of the log and checks its checksum, its place in the sequence, and whether the service can have written it there: an outcome must belong to an open decision and name an item that it showed, and a decision must belong to a placement that exists. Policies are built but learn nothing; vitrine replay checks what was learned. If the first entries of a log were removed, the check starts from the earliest snapshot that contains them; entries before that snapshot are only decoded.

A log has an identity and a running hash of its entries. With --against the command also reads another copy. Two copies of a log must not both grow; if they did, it names the entry after which they differ.

It prints the number of entries of each kind, the fate of the decisions of each placement, and every fault with its entry. The exit status is 1 if there is a fault.

` + aboutLog + "\n\n" + examples("vitrine check vitrine-data", "vitrine check vitrine-data --against /backup/2026-01-02", "vitrine check nats://127.0.0.1:4222")
}

// maxFaults is the number of faults printed: one may cause others.
const maxFaults = 50

func (c checkCmd) Run(ctx context.Context, t terminal) (err error) {
	log, err := c.open(ctx, t)
	if _, ok := errors.AsType[*eventlog.DamageError](err); ok {
		fmt.Fprintf(t.out, "fault: %v\n", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	faults := 0
	fault := func(err error) {
		if faults++; faults <= maxFaults {
			fmt.Fprintf(t.out, "fault: %v\n", err)
		}
	}
	report, err := log.Check(ctx, fault)
	if err != nil {
		return err
	}
	if n := faults - maxFaults; n > 0 {
		fmt.Fprintf(t.out, "and %d more faults\n", n)
	}
	if err := c.print(t, log.Name, report); err != nil {
		return err
	}
	if c.Against != "" {
		other, err := logArg{Log: c.Against}.open(ctx, t)
		if err != nil {
			return err
		}
		defer other.close()
		same, err := log.Compare(ctx, other.Log)
		switch {
		case errors.Is(err, inspect.ErrForked):
			fault(err)
		case err != nil:
			return err
		default:
			fmt.Fprintln(t.out, same)
		}
	}
	switch faults {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s has a fault", log.Name)
	}
	return fmt.Errorf("%s has %d faults", log.Name, faults)
}

func (checkCmd) print(t terminal, name string, r *inspect.Report) error {
	if r.Base != "" {
		fmt.Fprintf(t.out, "entries before %d were removed: those after %d are compared with %s\n", r.First,
			r.BaseEntry, r.Base)
	}
	if r.Entries == 0 {
		fmt.Fprintf(t.out, "%s has no entries\n", name)
		return nil
	}
	fmt.Fprintf(t.out, "%s has %d entries, %d to %d, in %d bytes\n\n", name, r.Entries, r.First, r.Last, r.Bytes)
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "event\tentries")
	for _, kind := range r.Kinds {
		fmt.Fprintf(w, "%s\t%d\n", kind.Name, kind.Entries)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nplacement\tdecisions\tchosen\texpired\tevicted\twithdrawn\topen")
	for _, p := range r.Placements {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", p.Placement, p.Decisions, p.Chosen, p.Expired, p.Evicted,
			p.Withdrawn, p.Open)
	}
	return w.Flush()
}
