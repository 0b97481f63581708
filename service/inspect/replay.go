package inspect

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"

	"vitrine/service/decision"
	"vitrine/service/eventlog"
)

// Comparison is what a replay says of a snapshot.
type Comparison struct {
	Path      string
	Entry     uint64 // the last one that the snapshot has
	Equal     bool
	Different string // why the snapshot cannot be of the log; "" if it is equal or was not compared
	Note      string // what else there is to say, in words
}

// replay is the replaying of a log.
type replay struct {
	log      *Log
	state    []byte       // to go on from
	base     *snapshot    // the first state; nil is that before the first entry
	first    uint64       // the last entry of base
	saved    []savedState // by their entries
	compared func(Comparison)
}

// savedState is a snapshot to compare with.
type savedState struct {
	*snapshot
	upTo uint64
}

// Replay replays the log from its first entry, as the service does when it starts without a snapshot, and calls compared
// for each snapshot of the data directory and for those at paths: the state after the last entry of a snapshot must be
// the snapshot, byte for byte. A log whose first entries were removed is replayed from the earliest snapshot that has
// them. Replay returns the engine at the end of the log, which the caller closes.
func (log *Log) Replay(ctx context.Context, paths []string, compared func(Comparison)) (*decision.Engine, error) {
	r := replay{log: log, compared: compared}
	snapshots := slices.Clone(log.snapshots)
	for _, path := range paths {
		s, err := readSnapshot(path)
		if err != nil {
			return nil, err
		}
		snapshots = append(snapshots, s)
	}
	if log.First > 1 {
		if r.base, r.first = log.base(ctx, snapshots, true); r.base == nil {
			return nil, fmt.Errorf("%s cannot be replayed: entries before %d were removed, and no snapshot has them", log.Name, log.First)
		}
		r.state = r.base.data
		compared(Comparison{Path: r.base.path, Entry: r.first, Note: fmt.Sprintf("the replay begins with it, after entry %d", r.first)})
	}
	for _, s := range snapshots {
		if s != r.base {
			r.add(ctx, s)
		}
	}
	slices.SortStableFunc(r.saved, func(a, b savedState) int { return cmp.Compare(a.upTo, b.upTo) })
	return r.run(ctx)
}

// add has a snapshot compared, if it may be one of the log.
func (r *replay) add(ctx context.Context, s *snapshot) {
	upTo, err := s.entry(ctx, r.log)
	switch {
	case err != nil:
		r.compared(Comparison{Path: s.path, Entry: upTo, Different: err.Error()})
	case upTo < r.first:
		r.compared(Comparison{Path: s.path, Entry: upTo, Note: fmt.Sprintf("not compared: entries after %d were removed", upTo)})
	default:
		r.saved = append(r.saved, savedState{s, upTo})
	}
}

// run replays from snapshot to snapshot, and to the end.
func (r *replay) run(ctx context.Context) (*decision.Engine, error) {
	source := &section{Log: r.log}
	for _, s := range r.saved {
		e, err := r.open(ctx, source, s.upTo)
		if err != nil {
			return nil, err
		}
		r.state, _, err = e.Snapshot(ctx)
		if err == nil {
			r.compared(r.compare(ctx, source, e, s))
		}
		e.Close()
		if err != nil {
			return nil, r.log.explain(err)
		}
	}
	e, err := r.open(ctx, source, r.log.Last)
	if err != nil {
		return nil, err
	}
	if err := e.Wait(ctx); err != nil {
		e.Close()
		return nil, r.log.explain(err)
	}
	return e, nil
}

// otherMachines says that a snapshot was learned where the last digits may be others.
func otherMachines(snapshot []byte) string {
	machines, err := decision.SnapshotMachines(snapshot)
	switch {
	case err != nil || slices.Equal(machines, []string{runtime.GOARCH}):
		return ""
	case machines == nil:
		return ": an earlier program wrote it, which does not say on what machine: the last digits may differ"
	}
	return fmt.Sprintf(": it was learned on %s, and this is %s: the last digits may differ", strings.Join(machines, " and "), runtime.GOARCH)
}

// compare compares the present state, that of e, with a snapshot. One that has other bytes may have the same state, in the
// form of an earlier program: an engine that begins with it tells.
func (r *replay) compare(ctx context.Context, source *section, e *decision.Engine, s savedState) Comparison {
	c := Comparison{Path: s.path, Entry: s.upTo, Equal: true, Note: fmt.Sprintf("equal, at entry %d", s.upTo)}
	if bytes.Equal(r.state, s.data) {
		return c
	}
	different := func(of string) Comparison {
		return Comparison{Path: s.path, Entry: s.upTo, Different: fmt.Sprintf("the state at entry %d is another one%s%s", s.upTo, of, otherMachines(s.data))}
	}
	source.last = s.upTo
	saved, err := decision.Open(ctx, decision.Options{Store: source, Build: decision.NewLearner, Snapshot: s.data})
	if err != nil {
		return different(": " + err.Error())
	}
	defer saved.Close()
	placements, err := decision.Compare(ctx, saved, e)
	switch {
	case err != nil:
		return different(": " + err.Error())
	case len(placements) > 0:
		return different(fmt.Sprintf(", of the placements %q", placements))
	}
	c.Note += ", in the form of an earlier program, or of a learner that was behind"
	return c
}

// open makes the engine at an entry.
func (r *replay) open(ctx context.Context, source *section, last uint64) (*decision.Engine, error) {
	source.last = last
	e, err := decision.Open(ctx, decision.Options{Store: source, Build: decision.NewLearner, Snapshot: r.state})
	if err != nil {
		return nil, r.log.explain(err)
	}
	return e, nil
}

// section is a log up to some entry.
type section struct {
	*Log
	last uint64
}

var _ eventlog.Store = (*section)(nil)

// Entries implements eventlog.Store. The error of a log that has lost its end comes where the missing entries would be.
func (s *section) Entries(ctx context.Context, from uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		next := from
		for entry, err := range s.entries(ctx, "replaying", from) {
			if next > s.last && s.last < s.Log.Last {
				return
			}
			if !yield(entry, err) {
				return
			}
			next++
		}
	}
}
