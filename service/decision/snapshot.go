package decision

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"vitrine"
	"vitrine/internal/state"
	"vitrine/service/catalogue"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/learner"
	"vitrine/service/setup"
	"vitrine/service/variants"
)

// Snapshot returns the state after some entry of the log, and the entry. An engine opened with it replays
// only later entries. Equal states have equal bytes: a snapshot and the entries after it give the same bytes
// as all entries.
//
// The writer waits while the remembered decisions are listed, but not while they are encoded. The learners
// continue after they have reached that entry.
func (e *Engine) Snapshot(ctx context.Context) (data []byte, upTo uint64, err error) {
	f, err := e.freeze(ctx, -1)
	if err != nil {
		return nil, 0, err
	}
	enc := state.NewEncoder(f.kind())
	f.encode(enc)
	data, err = enc.Bytes()
	return data, f.at.Sequence, err
}

// WriteSnapshot encodes the state to w. It waits at most the time patience for learners that have not reached
// the entry. For the others the snapshot has the last checkpoint and the rounds after it, which they learn
// when an engine is opened with it: the state is the same, but its bytes differ. It returns the placements of
// these learners.
func (e *Engine) WriteSnapshot(ctx context.Context, w io.Writer, patience time.Duration) (upTo uint64, behind []string, err error) {
	f, err := e.freeze(ctx, patience)
	if err != nil {
		return 0, nil, err
	}
	enc := state.NewWriter(f.kind(), w)
	f.encode(enc)
	for _, p := range f.placements {
		if slices.ContainsFunc(p.all(), func(l *frozenLearner) bool { return l.saved != nil && l.IsBehind() }) {
			behind = append(behind, p.name)
		}
	}
	return f.at.Sequence, behind, enc.End()
}

// frozenState is the state at an entry.
type frozenState struct {
	at         eventlog.Position
	oldest     uint64 // the first entry that an open decision or a second learner needs, that after at if none
	machines   []string
	relearned  []relearned
	placements []*frozen
}

// freeze waits for the learners for at most patience, or without limit if patience is negative.
func (e *Engine) freeze(ctx context.Context, patience time.Duration) (*frozenState, error) {
	f := new(frozenState)
	err := e.inspect(ctx, func(s *fold) {
		f.at, f.oldest, f.machines, f.relearned = s.position, s.position.Sequence+1, s.machines, s.relearned
		for _, name := range slices.Sorted(maps.Keys(s.placements)) {
			p := s.placements[name]
			f.oldest = p.open.oldest(f.oldest)
			f.placements = append(f.placements, p.freeze(patience >= 0))
		}
	})
	if err != nil {
		return nil, err
	}
	over := ctx
	if patience >= 0 {
		var cancel context.CancelFunc
		over, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	for _, p := range f.placements {
		if p.held.After > 0 {
			f.oldest = min(f.oldest, p.held.From)
		}
		for _, l := range p.all() {
			if l.saved != nil {
				select {
				case w, ok := <-l.saved:
					if ok {
						l.State = w
					}
				case <-over.Done():
					if ctx.Err() != nil {
						return nil, ctx.Err()
					}
				}
			}
			f.oldest = min(f.oldest, l.Needs())
		}
	}
	return f, nil
}

func (f *frozenState) kind() string { return snapshotKind }

func (f *frozenState) encode(e *state.Encoder) {
	e.Uint64(f.at.Sequence)
	e.String(string(f.at.Log[:]))
	e.String(string(f.at.Hash[:]))
	e.String(strings.Join(f.machines, " "))
	e.Uint64(f.oldest)
	e.Count(len(f.relearned))
	for _, r := range f.relearned {
		e.Uint64(r.begun)
		e.Uint64(r.from)
	}
	e.Count(len(f.placements))
	for _, p := range f.placements {
		p.encode(e)
	}
}

// SnapshotPosition returns the position of a snapshot in its log.
func SnapshotPosition(data []byte) (eventlog.Position, error) {
	d, err := newDecoder(data)
	if err != nil {
		return eventlog.Position{}, err
	}
	p := d.position()
	return p, d.Err()
}

// SnapshotMachines returns the kinds of machines that have learned the state of a snapshot, as
// [runtime.GOARCH] names them. The same log gives the same state on all machines
// of a kind; on other kinds the last digits of some policies differ.
func SnapshotMachines(data []byte) ([]string, error) {
	d, err := newDecoder(data)
	if err != nil {
		return nil, err
	}
	d.position()
	machines := d.machines()
	return machines, d.Err()
}

// SnapshotOldest returns the first entry of the log that the open decisions of a snapshot need, or the one
// after its last entry if they need none. A log that begins later cannot be replayed from the snapshot.
func SnapshotOldest(data []byte) (uint64, error) {
	d, err := newDecoder(data)
	if err != nil {
		return 0, err
	}
	at := d.position()
	d.machines()
	oldest := d.oldest(at)
	return oldest, d.Err()
}

// SnapshotNeeds returns the first entry of the log that second learners would read in a replay from a snapshot of
// the entry upTo, as far as the given snapshot knows of them. It is [math.MaxUint64] if there are none. See
// [Engine.Needs].
func SnapshotNeeds(data []byte, upTo uint64) (uint64, error) {
	d, err := newDecoder(data)
	if err != nil {
		return 0, err
	}
	s := &fold{position: d.position()}
	d.machines()
	d.oldest(s.position)
	if err := s.restoreRelearned(d); err != nil {
		return 0, err
	}
	return s.needs(upTo), d.Err()
}

// VerifySnapshot reads a snapshot as Open does, with its learners, and returns its last entry. It needs the
// memory of the whole state.
func VerifySnapshot(build func(setup.Spec) (vitrine.Learner, error), data []byte) (uint64, error) {
	s := newFold(build)
	defer s.end()
	err := s.restore(data)
	return s.position.Sequence, err
}

// frozen is a placement at an entry.
type frozen struct {
	facts
	values       []feature.Seen // that categories have learned
	moves        []move         // of the clock
	open, closed []record
	learners     []*frozenLearner // the one that decides, the former ones, and the second one
	relearning   *relearning      // nil if there is no second one
	items        *catalogue.Frozen
	experiment   *variants.Experiment // nil if none runs
	challengers  []*frozenLearner
}

// frozenLearner is a learner of a placement at an entry.
type frozenLearner struct {
	learner.State
	saved     <-chan learner.State // a better one; nil if nobody expects that the learner keeps up
	of        *worker
	began     uint64
	canonical []byte // its configuration
	values    []feature.Seen
}

// freeze asks the learners to save themselves. If the caller is patient, it does not wait for a second learner, of which the last
// checkpoint will do.
func (p *placement) freeze(patient bool) *frozen {
	f := &frozen{
		facts: p.facts, values: p.config.Schema().Learned(), open: copies(p.open.sorted()), closed: copies(p.closed.records), items: p.items.of.Freeze(),
	}
	f.moves = slices.Clone(p.open.moves)
	f.versions, f.guard, f.tally = slices.Clone(p.versions), p.guard.Copy(), p.tally.Copy()
	if p.relearning != nil {
		f.relearning = new(*p.relearning)
	}
	if p.experiment != nil {
		f.experiment = p.experiment.Copy()
	}
	frozen := func(w *worker) *frozenLearner {
		l := &frozenLearner{State: w.View(), of: w, began: w.began, canonical: w.config.Canonical(), values: w.config.Schema().Learned()}
		if p.relearning == nil || p.relearning.worker != w || !patient {
			l.saved = w.Freeze(patient)
		}
		return l
	}
	for _, w := range p.challengers() {
		f.challengers = append(f.challengers, frozen(w))
	}
	for _, w := range p.lasting() {
		f.learners = append(f.learners, frozen(w))
	}
	return f
}

// all are the learners and the challengers.
func (f *frozen) all() []*frozenLearner { return slices.Concat(f.learners, f.challengers) }

func copies(records []*record) []record {
	all := make([]record, len(records))
	for i, r := range records {
		all[i] = *r
	}
	return all
}

func (f *frozen) encode(e *state.Encoder) {
	e.String(f.name)
	for _, v := range []uint64{f.born, f.changed, f.learner, f.numbers, f.learned} {
		e.Uint64(v)
	}
	e.String(string(f.canonical))
	encodeValues(e, f.values)
	f.tally.Counts.Numbers().Encode(e)
	f.guard.Encode(e)
	for _, v := range []uint64{f.held.After, f.held.From, f.held.Rounds} {
		e.Uint64(v)
	}
	f.tally.Series.Encode(e)
	f.tally.Items.Encode(e)
	e.Count(len(f.moves))
	for _, m := range f.moves {
		e.Uint64(m.entry)
		e.Uint64(uint64(m.time))
		e.Uint64(uint64(m.by))
	}
	for _, records := range [][]record{f.open, f.closed} {
		e.Count(len(records))
		for i := range records {
			records[i].encode(e)
		}
	}
	e.Count(len(f.learners))
	for i := range f.learners {
		l := f.learners[i]
		e.Uint64(l.began)
		if i > 0 {
			e.String(string(l.canonical))
			encodeValues(e, l.values)
		}
		l.Encode(e)
	}
	e.Flag(f.relearning != nil)
	if f.relearning != nil {
		e.String(f.relearning.note)
		e.Uint64(uint64(f.relearning.time))
	}
	e.Count(len(f.versions))
	for i := range f.versions {
		v := &f.versions[i]
		e.Uint64(v.number)
		e.Count(slices.IndexFunc(f.learners, func(l *frozenLearner) bool { return l.of == v.learner }))
		v.encode(e)
	}
	e.Uint64(f.standing)
	e.Uint64(f.rows)
	encodeItems(e, f.items)
	f.tally.Eras.Encode(e)
	e.Count(len(f.past))
	for _, report := range f.past {
		e.String(report)
	}
	if e.Flag(f.experiment != nil); f.experiment != nil {
		f.experiment.Encode(e)
		for i := range f.challengers {
			e.Uint64(f.challengers[i].began)
			f.challengers[i].Encode(e)
		}
	}
}

func encodeValues(e *state.Encoder, values []feature.Seen) {
	e.Count(len(values))
	for _, seen := range values {
		e.String(seen.Feature)
		e.Count(len(seen.Values))
		for _, v := range seen.Values {
			e.String(v)
		}
	}
}

func (v *version) encode(e *state.Encoder) {
	e.Flag(v.routine)
	e.String(v.note)
	e.Uint64(uint64(v.time))
	e.Uint64(v.rounds)
	e.Float(v.revenue)
}

func (r *record) encode(e *state.Encoder) {
	e.String(r.id)
	e.Uint64(r.entry)
	e.Uint64(uint64(r.time))
	e.Count(int(r.shown))
	e.Count(int(r.status))
	e.Count(int(r.choice))
	if !r.status.waits() {
		e.Count(len(r.corrections()))
		for _, c := range r.corrections() {
			e.String(c.id)
			e.Float(c.value)
			e.Flag(c.withdraws)
		}
		return
	}
	e.Flag(r.first)
	e.Count(r.countPassed())
	if r.countPassed() == 0 {
		return
	}
	for k, passed := range r.rare.passed {
		if passed {
			e.Count(k)
		}
	}
	e.Float(r.rare.reported)
}
