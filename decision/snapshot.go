package decision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"vitrine"
	"vitrine/internal/state"
)

// snapshotKind names the encoding: change it with the fields. Snapshots of the kind before
// are read too: it knew no decisions that wait to be activated, and no outcomes told in parts.
const (
	snapshotKind       = "decision engine 2"
	snapshotKindBefore = "decision engine 1"
)

// newDecoder begins to read a snapshot of either kind.
func newDecoder(data []byte) (d *state.Decoder, before bool, err error) {
	if d, err = state.NewDecoder(snapshotKind, data); err == nil {
		return d, false, nil
	}
	if old, failed := state.NewDecoder(snapshotKindBefore, data); failed == nil {
		return old, true, nil
	}
	return d, false, err
}

// Snapshot returns the state after some entry of the log, and the entry. An engine that is opened with it
// replays only what came after. Equal states have equal bytes: a snapshot
// with the entries after it gives the bytes that all entries give.
//
// The writer stands still while the decisions that are remembered are listed, not while
// they are encoded; the learners go on after they have come to that entry.
func (e *Engine) Snapshot(ctx context.Context) (data []byte, upTo uint64, err error) {
	var frozen []*frozen
	var sequence uint64
	of := map[*placement]int{}
	err = e.barrier(ctx, func(s *fold) {
		sequence = s.sequence
		for _, name := range slices.Sorted(maps.Keys(s.placements)) {
			p := s.placements[name]
			of[p] = len(frozen)
			frozen = append(frozen, p.freeze())
		}
	}, func(p *placement, w *worker) { frozen[of[p]].worker, frozen[of[p]].err = w.freeze() })
	if err != nil {
		return nil, 0, err
	}
	enc := state.NewEncoder(snapshotKind)
	enc.Uint64(sequence)
	enc.Count(len(frozen))
	for _, f := range frozen {
		if f.err != nil {
			return nil, 0, fmt.Errorf("placement %q: %w", f.name, f.err)
		}
		f.encode(enc)
	}
	data, err = enc.Bytes()
	return data, sequence, err
}

// SnapshotSequence returns the last entry that is in a snapshot.
func SnapshotSequence(data []byte) (uint64, error) {
	d, _, err := newDecoder(data)
	if err != nil {
		return 0, err
	}
	sequence := d.Uint64()
	return sequence, d.Err()
}

// VerifySnapshot reads a snapshot as Open does, learners and all, and returns the last entry that is in
// it. It takes the memory of the state meanwhile.
func VerifySnapshot(build func(Spec) (vitrine.Learner, error), data []byte) (uint64, error) {
	s := newFold(build)
	defer s.end()
	err := s.restore(data)
	return s.sequence, err
}

// frozen is a placement at an entry.
type frozen struct {
	name                   string
	born, changed, learner uint64
	canonical              []byte
	numbers, learned       uint64
	kept                   []uint64
	counts                 counts
	open, closed           []record
	worker                 frozenWorker
	err                    error
}

// frozenWorker is a learner at an entry.
type frozenWorker struct {
	progress
	data []byte
	kept []keptState
}

func (p *placement) freeze() *frozen {
	return &frozen{
		name: p.name, born: p.born, changed: p.changed, learner: p.learner, canonical: p.canonical,
		numbers: p.numbers, learned: p.learned, kept: slices.Clone(p.kept), counts: p.counts,
		open: p.open.records(), closed: p.closed.records(),
	}
}

func (l *list) records() []record {
	records := make([]record, 0, l.len)
	for r := l.first; r != nil; r = r.next {
		records = append(records, *r)
	}
	return records
}

// freeze is a task of the worker.
func (w *worker) freeze() (frozenWorker, error) {
	if w.stopped.Load() {
		return frozenWorker{}, errors.New("its learner has ended meanwhile")
	}
	w.save()
	return frozenWorker{w.progress, w.checkpoint, slices.Clone(w.kept)}, nil
}

func (f *frozen) encode(e *state.Encoder) {
	e.String(f.name)
	for _, v := range []uint64{f.born, f.changed, f.learner, f.numbers, f.learned} {
		e.Uint64(v)
	}
	e.String(string(f.canonical))
	e.Count(len(f.kept))
	for _, v := range f.kept {
		e.Uint64(v)
	}
	f.counts.encode(e)
	for _, records := range [][]record{f.open, f.closed} {
		e.Count(len(records))
		for i := range records {
			records[i].encode(e)
		}
	}
	f.worker.encode(e)
}

func (w *frozenWorker) encode(e *state.Encoder) {
	for _, v := range []uint64{w.version, w.observed, w.skipped} {
		e.Uint64(v)
	}
	flag(e, w.broken)
	e.String(w.problem)
	e.String(string(w.data))
	e.Count(len(w.kept))
	for _, k := range w.kept {
		e.Uint64(k.version)
		e.String(string(k.data))
	}
}

func flag(e *state.Encoder, v bool) {
	if v {
		e.Count(1)
	} else {
		e.Count(0)
	}
}

// flagged reads what flag has written.
func flagged(d *state.Decoder) bool {
	v := d.Count()
	if v > 1 {
		d.Fail(fmt.Errorf("snapshot has %d where there is 0 or 1", v))
	}
	return v == 1
}

func (r *record) encode(e *state.Encoder) {
	e.String(r.id)
	e.String(string(r.request[:]))
	e.Uint64(uint64(r.time))
	e.Uint64(r.learner)
	e.Count(len(r.shown))
	for _, id := range r.shown {
		e.String(id)
	}
	e.Uint64(r.version)
	e.Count(int(r.mode))
	e.Float(r.propensity)
	e.String(string(r.estimates.encode(nil)))
	e.Count(int(r.status))
	e.Count(int(r.choice))
	if !r.status.waits() {
		return
	}
	e.Count(r.n)
	e.Floats(r.rows)
	flag(e, r.revenues != nil)
	if r.revenues != nil {
		e.Floats(r.revenues)
	}
	for _, i := range r.place {
		e.Count(int(i))
	}
	e.Count(r.countPassed())
	for k, passed := range r.passed {
		if passed {
			e.Count(k)
		}
	}
	e.Float(r.told)
}

// restore makes the state what a snapshot says.
func (s *fold) restore(data []byte) error {
	d, before, err := newDecoder(data)
	if err != nil {
		return err
	}
	s.sequence = d.Uint64()
	last := ""
	for range d.Count() {
		if d.Err() != nil {
			break
		}
		name := d.String()
		if name <= last {
			d.Fail(fmt.Errorf("placement %q comes after placement %q", name, last))
			break
		}
		if err := s.restorePlacement(d, name, before); err != nil {
			d.Fail(err)
		}
		last = name
	}
	return d.Close()
}

func (s *fold) restorePlacement(d *state.Decoder, name string, before bool) error {
	p := &placement{name: name}
	for _, v := range []*uint64{&p.born, &p.changed, &p.learner, &p.numbers, &p.learned} {
		*v = d.Uint64()
	}
	text := d.String()
	for range d.Count() {
		if d.Err() != nil {
			break
		}
		p.kept = append(p.kept, d.Uint64())
	}
	p.counts.decode(d, before)
	if d.Err() != nil {
		return d.Err()
	}
	var err error
	if p.config, err = ParseConfig([]byte(text)); err != nil {
		return fmt.Errorf("placement %q: %w", p.name, err)
	}
	if p.canonical = p.config.Canonical(); string(p.canonical) != text {
		return fmt.Errorf("placement %q: the configuration is not in its canonical form", p.name)
	}
	for _, l := range []*list{&p.open, &p.closed} {
		for range d.Count() {
			if d.Err() != nil {
				return d.Err()
			}
			r, err := p.restoreRecord(d, before)
			if err != nil {
				return err
			}
			if r.status.waits() != (l == &p.open) || s.decisions[r.id] != nil {
				return fmt.Errorf("decision %q is out of place", r.id)
			}
			s.decisions[r.id] = r
			if l.push(r); l == &p.open {
				p.due.add(r)
			}
		}
	}
	if err := s.restoreWorker(d, p); err != nil {
		return fmt.Errorf("placement %q: %w", p.name, err)
	}
	return nil
}

func (s *fold) restoreWorker(d *state.Decoder, p *placement) error {
	var f frozenWorker
	for _, v := range []*uint64{&f.version, &f.observed, &f.skipped} {
		*v = d.Uint64()
	}
	f.broken = flagged(d)
	f.problem = d.String()
	f.data = []byte(d.String())
	for range d.Count() {
		if d.Err() != nil {
			break
		}
		f.kept = append(f.kept, keptState{d.Uint64(), []byte(d.String())})
	}
	if d.Err() != nil {
		return d.Err()
	}
	if !slices.EqualFunc(f.kept, p.kept, func(k keptState, v uint64) bool { return k.version == v }) {
		return errors.New("the kept states are not those of the versions")
	}
	w, err := newWorker(s.build, p.config, f.version)
	if err != nil {
		return err
	}
	if w.learner, err = w.restored(f.data); err != nil {
		return err
	}
	w.progress, w.kept, w.checkpoint = f.progress, f.kept, f.data
	w.progress.broken = false // so that the policy of its last good state decides
	w.publish()
	w.broken = f.broken
	w.seen.Store(&f.progress)
	p.worker = w
	s.placements[p.name] = p
	s.workers.Go(w.run)
	return nil
}

func (p *placement) restoreRecord(d *state.Decoder, before bool) (*record, error) {
	r := &record{placement: p, id: d.String()}
	if sum := d.String(); len(sum) == len(r.request) {
		copy(r.request[:], sum)
	} else {
		return nil, fmt.Errorf("decision %q has no checksum of its request", r.id)
	}
	r.time = int64(d.Uint64())
	r.learner = d.Uint64()
	n := d.Count()
	if n > largestSize {
		return nil, fmt.Errorf("decision %q shows %d items", r.id, n)
	}
	r.shown = make([]string, n)
	for k := range n {
		r.shown[k] = d.String()
	}
	r.version = d.Uint64()
	r.mode = uint8(min(d.Count(), 255))
	r.propensity = d.Float()
	estimates, err := decodeEstimates([]byte(d.String()), n)
	if err != nil {
		return nil, cmp.Or(d.Err(), err)
	}
	r.estimates = estimates
	r.status = status(min(d.Count(), 255))
	r.choice = int32(min(d.Count(), n+1))
	if r.mode < ByPolicy || r.mode > ByBaseline || r.status > withdrawn || (r.status >= deferred) && !r.deferred || int(r.choice) > n || r.choice > 0 && r.status != chosen {
		return nil, cmp.Or(d.Err(), fmt.Errorf("decision %q has mode %d, status %d and choice %d", r.id, r.mode, r.status, r.choice))
	}
	if r.status.waits() {
		if err := r.restoreRows(d); err != nil {
			return nil, cmp.Or(d.Err(), err)
		}
		if !before {
			if err := r.restorePassed(d); err != nil {
				return nil, cmp.Or(d.Err(), err)
			}
		}
	}
	r.size = recordSize(r.id, r.shown) + r.extraBytes() + r.rowBytes()
	return r, d.Err()
}

func (r *record) restoreRows(d *state.Decoder) error {
	r.n = d.Count()
	r.rows = d.FloatSlice()
	if r.n < len(r.shown) || r.n == 0 && len(r.rows) > 0 || r.n > 0 && (len(r.rows) == 0 || len(r.rows)%r.n != 0) {
		return fmt.Errorf("decision %q has %d features of %d items", r.id, len(r.rows), r.n)
	}
	if flagged(d) {
		r.revenues = make([]float64, r.n)
		d.Floats(r.revenues)
	}
	r.place = make([]int32, len(r.shown))
	for k := range r.place {
		i := d.Count()
		if i >= r.n || slices.Contains(r.place[:k], int32(i)) {
			return fmt.Errorf("decision %q has two items in row %d of %d", r.id, i, r.n)
		}
		r.place[k] = int32(i)
	}
	return nil
}

func (r *record) restorePassed(d *state.Decoder) error {
	n, last := d.Count(), -1
	if n > 0 && n < len(r.shown) {
		r.passed = make([]bool, len(r.shown))
	} else if n > 0 {
		return fmt.Errorf("decision %q has %d items of %d passed", r.id, n, len(r.shown))
	}
	for range n {
		k := d.Count()
		if k <= last || k >= len(r.shown) {
			return fmt.Errorf("decision %q has item %d of %d passed after item %d", r.id, k, len(r.shown), last)
		}
		r.passed[k], last = true, k
	}
	if r.told = d.Float(); !(r.told >= 0 && r.told <= 1) || n == 0 && r.told != 0 || n > 0 && r.status == deferred {
		return fmt.Errorf("decision %q has %d items passed with a reward of %v", r.id, n, r.told)
	}
	return nil
}

// all lists the counters, for encode and decode.
func (c *counts) all() (integers []*uint64, floats []*float64) {
	integers = []*uint64{
		&c.Withdrawn, &c.Offered, &c.Chosen, &c.Expired, &c.Stale, &c.Chance,
		&c.Shadow.Rounds, &c.Shadow.Agreements, &c.Shadow.Estimated,
	}
	floats = []*float64{&c.Shadow.Policy, &c.Shadow.Baseline, &c.Calibration.Revenue, &c.Calibration.Foretold}
	for i := range c.Arms {
		a := &c.Arms[i]
		integers = append(integers, &a.Rounds, &a.Purchases)
		floats = append(floats, &a.Revenue, &a.Squares)
	}
	for i := range c.Calibration.Bins {
		b := &c.Calibration.Bins[i]
		integers = append(integers, &b.Rounds, &b.Purchases)
		floats = append(floats, &b.Foretold)
	}
	return integers, floats
}

func (c *counts) encode(e *state.Encoder) {
	integers, floats := c.all()
	for _, v := range integers {
		e.Uint64(*v)
	}
	for _, v := range floats {
		e.Float(*v)
	}
}

func (c *counts) decode(d *state.Decoder, before bool) {
	integers, floats := c.all()
	if before {
		integers = integers[1:]
	}
	for _, v := range integers {
		*v = d.Uint64()
	}
	for _, v := range floats {
		*v = d.Float()
	}
}
