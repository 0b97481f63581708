package inspect

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// Comparison is the result of comparing a snapshot with a replay.
type Comparison struct {
	Path      string // of the snapshot
	Entry     uint64 // the last entry of the snapshot
	Equal     bool
	Different string // how the snapshot differs; "" if it is equal or was not compared
	Note      string // a remark for the reader; may be ""
}

// replay is a replay in progress.
type replay struct {
	log      *Log
	state    []byte       // the state so far; nil is the state before the first entry
	base     *snapshot    // the snapshot at the beginning of the replay; nil if the log is complete
	first    uint64       // the last entry of base
	saved    []savedState // sorted by their last entries
	compared func(Comparison)
}

// savedState is a snapshot to compare with.
type savedState struct {
	*snapshot
	upTo uint64
}

// Replay replays the log from its first entry, as the service does when it starts without a snapshot. If the first
// entries were removed, the replay begins with the earliest snapshot that covers them. Replay calls compared for each
// snapshot of the data directory and for those at paths: the replayed state after a snapshot's last entry must equal
// the snapshot, byte for byte. It returns the engine at the end of the log; the caller closes it.
func (log *Log) Replay(ctx context.Context, paths []string, compared func(Comparison)) (*engine.Engine, error) {
	r := replay{log: log, compared: compared}
	snapshots := slices.Clone(log.snapshots)
	for _, path := range paths {
		s, err := readSnapshot(filepath.Dir(path), path)
		if err != nil {
			return nil, err
		}
		snapshots = append(snapshots, s)
	}
	if log.First > 1 {
		if r.base, r.first = log.base(ctx, snapshots, true); r.base == nil {
			return nil, fmt.Errorf("%s cannot be replayed: entries before %d were removed, and no snapshot has them",
				log.Name, log.First)
		}
		r.state = r.base.data
		compared(Comparison{Path: r.base.path, Entry: r.first, Note: fmt.Sprintf("the replay begins with it, "+
			"after entry %d", r.first)})
	}
	for _, s := range snapshots {
		if s != r.base {
			r.add(ctx, s)
		}
	}
	slices.SortStableFunc(r.saved, func(a, b savedState) int { return cmp.Compare(a.upTo, b.upTo) })
	return r.run(ctx)
}

// add adds a snapshot to those to compare, if it belongs to the log.
func (r *replay) add(ctx context.Context, s *snapshot) {
	upTo, err := s.entry(ctx, r.log)
	switch {
	case err != nil:
		r.compared(Comparison{Path: s.path, Entry: upTo, Different: err.Error()})
	case upTo < r.first:
		r.compared(Comparison{Path: s.path, Entry: upTo,
			Note: fmt.Sprintf("not compared: entries after %d were removed", upTo)})
	default:
		r.saved = append(r.saved, savedState{s, upTo})
	}
}

// run replays from snapshot to snapshot, and to the end.
func (r *replay) run(ctx context.Context) (*engine.Engine, error) {
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
			return nil, err
		}
	}
	e, err := r.open(ctx, source, r.log.Last)
	if err != nil {
		return nil, err
	}
	if err := e.Wait(ctx); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// otherMachines explains a difference by machines other than this one, which changes the last digits.
// It returns "" if that is not the reason.
func otherMachines(snapshot []byte) string {
	machines, err := state.SnapshotMachines(snapshot)
	if err != nil || slices.Equal(machines, []string{runtime.GOARCH}) {
		return ""
	}
	return fmt.Sprintf(": the snapshot was learned on %s, and this machine is %s: the last digits may differ",
		strings.Join(machines, " and "), runtime.GOARCH)
}

// compare compares the state of e with a snapshot. A snapshot with different bytes may hold the same
// state, of a learner that was behind, so it is loaded and the two engines are compared.
func (r *replay) compare(ctx context.Context, source *section, e *engine.Engine, s savedState) Comparison {
	c := Comparison{Path: s.path, Entry: s.upTo, Equal: true, Note: fmt.Sprintf("equal, at entry %d", s.upTo)}
	if bytes.Equal(r.state, s.data) {
		return c
	}
	different := func(of string) Comparison {
		return Comparison{Path: s.path, Entry: s.upTo,
			Different: fmt.Sprintf("the state at entry %d is another one%s%s", s.upTo, of, otherMachines(s.data))}
	}
	source.last = s.upTo
	saved, err := engine.Open(ctx, engine.Options{Store: source, Build: setup.NewLearner, Snapshot: s.data})
	if err != nil {
		return different(": " + err.Error())
	}
	defer saved.Close()
	placements, err := engine.Compare(ctx, saved, e)
	switch {
	case err != nil:
		return different(": " + err.Error())
	case len(placements) > 0:
		return different(fmt.Sprintf(", of the placements %q", placements))
	}
	c.Note += ", of a learner that was behind"
	return c
}

// open makes the engine at an entry.
func (r *replay) open(ctx context.Context, source *section, last uint64) (*engine.Engine, error) {
	source.last = last
	return engine.Open(ctx, engine.Options{Store: source, Build: setup.NewLearner, Snapshot: r.state})
}

// section is a log up to an entry.
type section struct {
	*Log
	last uint64
	busy atomic.Bool // while the replay reads
}

// Extent implements eventlog.Log, with the extent of the whole log.
func (s *section) Extent(ctx context.Context) (eventlog.Extent, error) { return s.Log.Log.Extent(ctx) }

// Entries implements eventlog.Log. If the end of the log is lost, the error comes in its place.
func (s *section) Entries(ctx context.Context, from uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if !s.busy.CompareAndSwap(false, true) { // a learner that learns from the log, beside the replay
			s.Log.Entries(ctx, from)(yield)
			return
		}
		defer s.busy.Store(false)
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
