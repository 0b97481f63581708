package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"text/tabwriter"

	"vitrine"
	"vitrine/config"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
)

type replayCmd struct {
	logArg
	Snapshots []string `arg:"" optional:"" help:"Snapshots to compare with, beside the one in the data directory."`
}

// Help is the tail of the command's help.
func (replayCmd) Help() string {
	return `The log is replayed from its first entry on, and learned from as when it was written: what the service does when it starts without a snapshot. The state after the last entry of a snapshot must be the snapshot, byte for byte. A log whose first entries were removed is replayed from the earliest snapshot on that has them.

It prints for each snapshot whether it is equal or different, and what each placement has learned. The exit status is 1 where one is different, or where the log cannot be replayed to its end. Replaying needs the memory that the service has.

` + aboutLog + "\n\n" + examples("vitrine replay vitrine-data", "vitrine replay vitrine-data /backup/state.snapshot")
}

// savedState is a snapshot to compare with.
type savedState struct {
	*snapshotFile
	upTo uint64
}

// Run replays the log.
func (c replayCmd) Run(ctx context.Context, t terminal) (err error) {
	log, err := c.open(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	for _, path := range c.Snapshots {
		s, err := readSnapshot(path)
		if err != nil {
			return err
		}
		log.snapshots = append(log.snapshots, s)
	}
	r := replay{terminal: t, log: log}
	var base *snapshotFile
	if log.First > 1 {
		if base, r.base = log.base(ctx); base == nil {
			return fmt.Errorf("%s cannot be replayed: entries before %d were removed, and no snapshot has them", log.name, log.First)
		}
		r.state = base.data
		fmt.Fprintf(t.out, "%s: the replay begins with it, after entry %d\n", base.path, r.base)
	}
	for _, s := range log.snapshots {
		if s != base {
			r.add(ctx, s)
		}
	}
	slices.SortStableFunc(r.saved, func(a, b savedState) int { return cmp.Compare(a.upTo, b.upTo) })
	if err := r.run(ctx); err != nil {
		return err
	}
	if r.different > 0 {
		return fmt.Errorf("%s: %d of %d snapshots cannot be of this log", log.name, r.different, r.compared)
	}
	return nil
}

// replay is the replaying of a log.
type replay struct {
	terminal
	log       *logReader
	state     []byte       // to go on from
	base      uint64       // the last entry of that at the beginning
	saved     []savedState // by their entries
	compared  int          // and those that cannot be of the log
	different int
}

func (r *replay) differs(path, why string) {
	r.different++
	fmt.Fprintf(r.out, "%s: different: %s\n", path, why)
}

func (r *replay) add(ctx context.Context, s *snapshotFile) {
	upTo, err := s.entry(ctx, r.log)
	if err == nil && upTo < r.base {
		fmt.Fprintf(r.out, "%s: not compared: entries after %d were removed\n", s.path, upTo)
		return
	}
	r.compared++
	if err != nil {
		r.differs(s.path, err.Error())
		return
	}
	r.saved = append(r.saved, savedState{s, upTo})
}

// run replays from snapshot to snapshot, those that it makes itself.
func (r *replay) run(ctx context.Context) error {
	source := &section{logReader: r.log, terminal: r.terminal}
	for _, s := range r.saved {
		e, err := r.open(ctx, source, s.upTo)
		if err != nil {
			return err
		}
		r.state, _, err = e.Snapshot(ctx)
		e.Close()
		switch {
		case err != nil:
			return r.log.explain(err)
		case bytes.Equal(r.state, s.data):
			fmt.Fprintf(r.out, "%s: equal, at entry %d\n", s.path, s.upTo)
		case r.isEqual(ctx, source, s):
			fmt.Fprintf(r.out, "%s: equal, at entry %d, in the form of an earlier program, or of a learner that was behind\n", s.path, s.upTo)
		default:
			r.differs(s.path, fmt.Sprintf("the state at entry %d is another one%s", s.upTo, otherKernels(s.data)))
		}
	}
	e, err := r.open(ctx, source, r.log.Last)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.Wait(ctx); err != nil {
		return r.log.explain(err)
	}
	return r.report(e)
}

// otherKernels says that a snapshot was learned with other vector code, whose last digits differ.
func otherKernels(snapshot []byte) string {
	kernels, err := decision.SnapshotKernels(snapshot)
	here, _ := vitrine.KernelPath()
	switch {
	case err != nil || slices.Equal(kernels, []string{here}):
		return ""
	case len(kernels) == 1:
		return fmt.Sprintf(": it was learned with the vector code %s, and this is %s: compare with VITRINE_KERNEL=%s", kernels[0], here, kernels[0])
	case len(kernels) > 1:
		return fmt.Sprintf(": it was learned with several kinds of vector code, %s, whose last digits differ", strings.Join(kernels, " and "))
	}
	return ": an earlier program wrote it, which does not say with which vector code: the last digits may differ"
}

// isEqual reports whether a snapshot of an earlier program has the present state: written by this one it has its bytes.
func (r *replay) isEqual(ctx context.Context, source *section, s savedState) bool {
	source.last = s.upTo
	e, err := decision.Open(ctx, decision.Options{Store: source, Build: config.NewLearner, Snapshot: s.data})
	if err != nil {
		return false
	}
	defer e.Close()
	data, _, err := e.Snapshot(ctx)
	return err == nil && bytes.Equal(data, r.state)
}

// open makes the engine at an entry.
func (r *replay) open(ctx context.Context, source *section, last uint64) (*decision.Engine, error) {
	source.last = last
	e, err := decision.Open(ctx, decision.Options{Store: source, Build: config.NewLearner, Snapshot: r.state})
	if err != nil {
		return nil, r.log.explain(err)
	}
	return e, nil
}

func (r *replay) report(e *decision.Engine) error {
	fmt.Fprintf(r.out, "%s: replayed up to entry %d\n", r.log.name, e.Sequence())
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nplacement\tdecisions\tchosen\texpired\tevicted\topen\tlearned\tskipped\tpolicy version")
	for _, name := range e.Placements() {
		s, err := e.Stats(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", name, s.Decisions, s.Outcomes, s.Expired, s.ExpiredEarly, s.Pending, s.Learned, s.Skipped, s.PolicyVersion)
		if s.Problem != "" {
			r.warn(fmt.Sprintf("placement %q: %s", name, s.Problem))
		}
	}
	return w.Flush()
}

// section is a log up to some entry.
type section struct {
	*logReader
	terminal
	last uint64
}

var _ eventlog.Store = (*section)(nil)

// Entries implements eventlog.Store. That entries are missing after the last of the log
// is told where they would be.
func (s *section) Entries(ctx context.Context, from uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		next := from
		for entry, err := range s.entries(ctx, s.terminal, "replaying", from) {
			if next > s.last && s.last < s.logReader.Last {
				return
			}
			if !yield(entry, err) {
				return
			}
			next++
		}
	}
}
