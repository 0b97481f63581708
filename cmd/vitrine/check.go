package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"vitrine/config"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
)

type checkCmd struct {
	logArg
	Against string `placeholder:"LOG" help:"Another copy of the log, such as a backup: say where the two have forked."`
}

// Help is the tail of the command's help.
func (checkCmd) Help() string {
	return `Every entry of the log is read and held to its checksum, its place in the sequence, and to what the service can have written there: an outcome is of a decision that is open and of an item that it showed, a decision of a placement that exists. Policies are built, and learn nothing: vitrine replay is the check of what was learned. A log whose first entries were removed is held to the earliest snapshot that has them; up to that one its entries are decoded alone.

A log has an identity and a running hash of its entries. With --against another copy is read, too: two copies must not both go on, and where they have, it says after which entry they differ.

It prints how many entries there are of each kind, what became of the decisions of each placement, and every fault with its entry. The exit status is 1 where there is one.

` + aboutLog + "\n\n" + examples("vitrine check vitrine-data", "vitrine check vitrine-data --against /backup/2026-01-02", "vitrine check nats://127.0.0.1:4222")
}

// kinds are the events, in the order of their numbers.
var kinds = []eventlog.Body{
	new(eventlog.PlacementPut), new(eventlog.PlacementDeleted), new(eventlog.Offered), new(eventlog.Chosen),
	new(eventlog.Expired), new(eventlog.SnapshotTaken), new(eventlog.PolicyRolledBack), new(eventlog.Activated), new(eventlog.Passed),
	new(eventlog.Evicted),
}

func kindOf(body eventlog.Body) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", body), "*eventlog.")
}

// Run checks the log.
func (c checkCmd) Run(ctx context.Context, t terminal) (err error) {
	log, err := c.open(ctx, t)
	var damage *eventlog.DamageError
	if errors.As(err, &damage) {
		fmt.Fprintf(t.out, "fault: %v\n", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	k := check{terminal: t, log: log, kinds: map[string]int{}}
	if err := k.run(ctx); err != nil {
		return err
	}
	if c.Against != "" {
		other, err := logArg{Log: c.Against}.open(ctx, t)
		if err != nil {
			return err
		}
		defer other.close()
		if err := k.against(ctx, other); err != nil {
			return err
		}
	}
	switch k.faults {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s has a fault", log.name)
	}
	return fmt.Errorf("%s has %d faults", log.name, k.faults)
}

// check is the checking of a log.
type check struct {
	terminal
	log    *logReader
	audit  *decision.Audit
	read   int
	kinds  map[string]int
	faults int
}

// mostFaults is how many are printed: one may bring others with it.
const mostFaults = 50

func (k *check) fault(err error) {
	if k.faults++; k.faults <= mostFaults {
		fmt.Fprintf(k.out, "fault: %v\n", err)
	}
}

func (k *check) run(ctx context.Context) (err error) {
	if k.audit, err = k.begin(ctx); err != nil {
		return err
	}
	defer k.audit.Close()
	from := k.log.First
	next := from
	for entry, err := range k.log.entries(ctx, k.terminal, "checking", from) {
		var damage *eventlog.DamageError
		switch {
		case err != nil && (errors.As(err, &damage) || errors.Is(err, k.log.lost)):
			k.fault(err)
			continue
		case err != nil:
			return err
		}
		k.entry(next, entry)
		next++
	}
	if n := k.faults - mostFaults; n > 0 {
		fmt.Fprintf(k.out, "and %d faults more\n", n)
	}
	return k.report(from, next-1)
}

// begin finds the state before the entries that are checked, and checks the snapshot for that.
func (k *check) begin(ctx context.Context) (*decision.Audit, error) {
	for _, s := range k.log.snapshots {
		_, err := s.entry(ctx, k.log)
		if err == nil {
			_, err = decision.VerifySnapshot(config.NewLearner, s.data)
		}
		if err != nil {
			k.fault(fmt.Errorf("%s: %w", s.path, err))
		}
	}
	if k.log.First == 1 {
		return decision.NewAudit(config.NewLearner, nil)
	}
	base, upTo := k.log.base(ctx)
	if base == nil {
		k.fault(fmt.Errorf("entries before %d were removed, and no snapshot has them: what is after them cannot be held to them", k.log.First))
		return decision.NewAudit(config.NewLearner, nil)
	}
	fmt.Fprintf(k.out, "entries before %d were removed: those after %d are held to %s\n", k.log.First, upTo, base.path)
	return decision.NewAudit(config.NewLearner, base.data)
}

// entry checks one entry. Those that a snapshot has are only decoded.
func (k *check) entry(sequence uint64, entry []byte) {
	k.read++
	var event *eventlog.Event
	var err error
	switch {
	case sequence == k.audit.Sequence()+1:
		event, err = k.audit.Entry(entry)
	default:
		var e eventlog.Event
		if e, err = eventlog.Decode(entry); err == nil {
			event = &e
		} else {
			err = fmt.Errorf("entry %d: %w", sequence, err)
		}
	}
	if event != nil {
		k.kinds[kindOf(event.Body)]++
	}
	if err != nil {
		k.fault(err)
	}
}

func (k *check) report(first, last uint64) error {
	if k.read == 0 {
		fmt.Fprintf(k.out, "%s has no entries\n", k.log.name)
		return nil
	}
	fmt.Fprintf(k.out, "%s has %d entries, %d to %d, in %d bytes\n\n", k.log.name, k.read, first, last, k.log.Bytes)
	w := tabwriter.NewWriter(k.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "event\tentries")
	for _, body := range kinds {
		if n := k.kinds[kindOf(body)]; n > 0 {
			fmt.Fprintf(w, "%s\t%d\n", kindOf(body), n)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nplacement\tdecisions\tchosen\texpired\tevicted\twithdrawn\topen")
	for _, p := range k.audit.Tallies() {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", p.Placement, p.Decisions, p.Chosen, p.Expired, p.Evicted, p.Withdrawn, p.Open)
	}
	return w.Flush()
}
