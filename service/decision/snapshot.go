package decision

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"vitrine"
	"vitrine/internal/state"
	"vitrine/service/api"
	"vitrine/service/eventlog"
)

// snapshotKind and the format after it name the encoding: change the format with the fields. All formats are
// read:
//
//	1  knew no decisions that wait to be activated, and no outcomes told in parts
//	2  knew not of which log it is, nor which machines have learned, nor that a learner can begin again
//	3  knew no decisions that memory had no room for
//	4  had learners that were not behind
//	5  had the offers of decisions, and not their entries
//	6
const (
	snapshotKind   = "decision engine "
	snapshotFormat = 6
)

// decoder reads a snapshot of a format.
type decoder struct {
	*state.Decoder
	format int
}

func newDecoder(data []byte) (decoder, error) {
	kind, d, err := state.Read(data)
	if err != nil {
		return decoder{}, err
	}
	for format := range snapshotFormat {
		if kind == fmt.Sprint(snapshotKind, format+1) {
			return decoder{d, format + 1}, nil
		}
	}
	return decoder{}, fmt.Errorf("snapshot is of %q, want %q up to %d", kind, snapshotKind, snapshotFormat)
}

// position reads where the snapshot is.
func (d decoder) position() (p eventlog.Position) {
	p.Sequence = d.Uint64()
	if d.format >= 3 {
		d.bytes(p.Log[:])
		d.bytes(p.Hash[:])
	}
	if p.Log.IsZero() && p.Hash != [16]byte{} {
		d.Fail(errors.New("snapshot names no log, and has a hash of its entries"))
	}
	return p
}

// machines reads the names of kinds of machine, sorted. Earlier programs named vector code; that of AVX-512 learned
// as all vector code does now.
func (d decoder) machines() []string {
	if d.format < 3 {
		return nil
	}
	names := strings.Fields(d.String())
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		d.Fail(fmt.Errorf("snapshot names the machines %q", names))
	}
	for i, name := range names {
		if name == "avx512" {
			names[i] = "amd64"
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// bytes reads a string of the length of dst into it.
func (d decoder) bytes(dst []byte) {
	if s := d.String(); len(s) == len(dst) {
		copy(dst, s)
	} else {
		d.Fail(fmt.Errorf("snapshot has %d bytes where there are %d", len(s), len(dst)))
	}
}

// Snapshot returns the state after some entry of the log, and the entry. An engine that is opened with it
// replays only what came after. Equal states have equal bytes: a snapshot
// with the entries after it gives the bytes that all entries give.
//
// The writer stands still while the decisions that are remembered are listed, not while
// they are encoded; the learners go on after they have come to that entry.
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

// WriteSnapshot writes the state to w as it is encoded, and waits no longer than it is patient for learners that have not
// come to the entry. Of those the snapshot has the last checkpoint and the rounds after it, which they learn when
// an engine is opened with it: the state is the same, its bytes are not. It returns the placements of these learners.
func (e *Engine) WriteSnapshot(ctx context.Context, w io.Writer, patience time.Duration) (upTo uint64, behind []string, err error) {
	f, err := e.freeze(ctx, patience)
	if err != nil {
		return 0, nil, err
	}
	enc := state.NewWriter(f.kind(), w)
	f.encode(enc)
	for _, p := range f.placements {
		if len(p.worker.since) > 0 {
			behind = append(behind, p.name)
		}
	}
	return f.at.Sequence, behind, enc.End()
}

// frozenState is the state at an entry.
type frozenState struct {
	at         eventlog.Position
	oldest     uint64 // the first entry that an open decision has, that after at if none
	machines   []string
	placements []*frozen
}

// freeze waits for the learners as long as it is patient, or without end where patience is negative.
func (e *Engine) freeze(ctx context.Context, patience time.Duration) (*frozenState, error) {
	f := new(frozenState)
	var saved []chan frozenWorker
	err := e.submit(ctx, func(b *batch) error {
		if len(b.events) > 0 {
			return errLater
		}
		f.at, f.oldest, f.machines = b.state.position, b.state.position.Sequence+1, b.state.machines
		for _, name := range slices.Sorted(maps.Keys(b.state.placements)) {
			p := b.state.placements[name]
			f.oldest = p.open.oldest(f.oldest)
			f.placements = append(f.placements, p.freeze())
			saved = append(saved, p.worker.freeze(patience >= 0))
		}
		return nil
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
	for i, p := range f.placements {
		select {
		case w, ok := <-saved[i]:
			if ok {
				p.worker = w
			}
		case <-over.Done():
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
	}
	return f, nil
}

func (f *frozenState) kind() string { return fmt.Sprint(snapshotKind, snapshotFormat) }

func (f *frozenState) encode(e *state.Encoder) {
	e.Uint64(f.at.Sequence)
	e.String(string(f.at.Log[:]))
	e.String(string(f.at.Hash[:]))
	e.String(strings.Join(f.machines, " "))
	e.Uint64(f.oldest)
	e.Count(len(f.placements))
	for _, p := range f.placements {
		p.encode(e)
	}
}

// SnapshotPosition returns where in its log a snapshot is. It names no log where an earlier program wrote it.
func SnapshotPosition(data []byte) (eventlog.Position, error) {
	d, err := newDecoder(data)
	if err != nil {
		return eventlog.Position{}, err
	}
	p := d.position()
	return p, d.Err()
}

// SnapshotMachines names the kinds of machine that have learned what is in a snapshot, as [runtime.GOARCH] does, nil
// where it does not say. The same log gives the same state on all machines of a kind, and for some policies another one
// in the last digits on those of another kind. The names avx2 and generic are of vector code that earlier programs
// had on amd64, with last digits of its own.
func SnapshotMachines(data []byte) ([]string, error) {
	d, err := newDecoder(data)
	if err != nil {
		return nil, err
	}
	d.position()
	machines := d.machines()
	return machines, d.Err()
}

// SnapshotOldest returns the first entry of the log that the open decisions of a snapshot need, and that after its last
// one if they need none. A log that begins later cannot be replayed from the snapshot.
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

func (d decoder) oldest(at eventlog.Position) uint64 {
	if d.format < 6 {
		return at.Sequence + 1
	}
	oldest := d.Uint64()
	if oldest == 0 || oldest > at.Sequence+1 {
		d.Fail(fmt.Errorf("snapshot of entry %d has an open decision of entry %d", at.Sequence, oldest))
	}
	return oldest
}

// VerifySnapshot reads a snapshot as Open does, learners and all, and returns the last entry that is in
// it. It takes the memory of the state meanwhile.
func VerifySnapshot(build func(Spec) (vitrine.Learner, error), data []byte) (uint64, error) {
	s := newFold(build)
	defer s.end()
	err := s.restore(data)
	return s.position.Sequence, err
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
}

// frozenWorker is a learner at an entry.
type frozenWorker struct {
	progress
	data  []byte
	kept  []keptState
	since []task // that come after it
}

func (p *placement) freeze() *frozen {
	return &frozen{
		name: p.name, born: p.born, changed: p.changed, learner: p.learner, canonical: p.canonical,
		numbers: p.numbers, learned: p.learned, kept: slices.Clone(p.kept), counts: p.counts,
		open: copies(p.open.sorted()), closed: copies(p.closed.records), worker: p.worker.view(),
	}
}

func copies(records []*record) []record {
	all := make([]record, len(records))
	for i, r := range records {
		all[i] = *r
	}
	return all
}

// freeze asks the learner to save itself when it comes to this point of the log, for the channel. Meanwhile the snapshot
// has its last checkpoint, and what it has to do. Of the snapshots that do not wait one asks at a time: what a learner that is behind is
// asked stays in its queue. From a learner that has ended nothing comes: its placement has changed or is deleted.
func (w *worker) freeze(once bool) chan frozenWorker {
	saved := make(chan frozenWorker, 1)
	if once && w.asked.Swap(true) {
		close(saved)
		return saved
	}
	w.send(task{what: toCall, call: func(w *worker) {
		defer close(saved)
		w.asked.Store(false)
		if !w.stopped.Load() {
			w.save()
			saved <- w.frozen()
		}
	}})
	return saved
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
	for _, v := range []uint64{w.version, w.observed, w.skipped, w.forgotten} {
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
	e.Count(len(w.since))
	for i := range w.since {
		w.since[i].encode(e)
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
	e.Uint64(r.entry)
	if r.entry == 0 {
		e.Uint64(r.rare.learner)
		e.String(string(r.rare.carried))
	}
	e.Uint64(uint64(r.time))
	e.Count(int(r.shown))
	e.Count(int(r.status))
	e.Count(int(r.choice))
	if !r.status.waits() {
		return
	}
	e.Count(r.countPassed())
	if r.countPassed() == 0 {
		return
	}
	for k, passed := range r.rare.passed {
		if passed {
			e.Count(k)
		}
	}
	e.Float(r.rare.told)
}

// restore makes the state what a snapshot says.
func (s *fold) restore(data []byte) error {
	d, err := newDecoder(data)
	if err != nil {
		return err
	}
	s.position = d.position()
	s.machines = slices.Compact(slices.Sorted(slices.Values(append(d.machines(), s.machines...))))
	oldest := d.oldest(s.position)
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
		if err := s.restorePlacement(d, name); err != nil {
			d.Fail(err)
		}
		last = name
	}
	first := s.position.Sequence + 1
	for _, p := range s.placements {
		first = p.open.oldest(first)
	}
	if first != oldest {
		d.Fail(fmt.Errorf("snapshot has an open decision of entry %d, and says %d", first, oldest))
	}
	return d.Close()
}

func (s *fold) restorePlacement(d decoder, name string) error {
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
	p.counts.decode(d)
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
	for _, waits := range []bool{true, false} {
		var before *record
		for range d.Count() {
			if d.Err() != nil {
				return d.Err()
			}
			r, err := p.restoreRecord(d)
			if err != nil {
				return err
			}
			if r.status.waits() != waits || s.decisions.find(p, r.id) != nil || r.entry > s.position.Sequence {
				return fmt.Errorf("decision %q is out of place", r.id)
			}
			if waits && d.format > 5 && before != nil && compareDue(before, r) >= 0 {
				return fmt.Errorf("decision %q comes after decision %q", r.id, before.id)
			}
			before = r
			s.decisions.add(r)
			if waits {
				p.open.add(r)
			} else {
				p.closed.push(r)
			}
		}
	}
	if err := s.restoreWorker(d, p); err != nil {
		return fmt.Errorf("placement %q: %w", p.name, err)
	}
	return nil
}

func (s *fold) restoreWorker(d decoder, p *placement) error {
	var f frozenWorker
	for _, v := range []*uint64{&f.version, &f.observed, &f.skipped} {
		*v = d.Uint64()
	}
	if d.format >= 3 {
		f.forgotten = d.Uint64()
	}
	f.broken = flagged(d.Decoder)
	f.problem = d.String()
	f.data = []byte(d.String())
	for range d.Count() {
		if d.Err() != nil {
			break
		}
		f.kept = append(f.kept, keptState{d.Uint64(), []byte(d.String())})
	}
	f.restoreSince(d, p.config)
	if d.Err() != nil {
		return d.Err()
	}
	if !slices.Equal(f.versions(), p.kept) {
		return errors.New("the kept states are not those of the versions")
	}
	w, err := newWorker(s.build, p.config, f.version)
	if err != nil {
		return err
	}
	if err := w.read(&f, s.beginAgain); err != nil {
		return err
	}
	w.progress, w.kept, w.checkpoint = f.progress, f.kept, f.data
	if err := w.modernise(); err != nil {
		return err
	}
	w.progress.broken = false // so that the policy of its last good state decides
	w.publish()
	w.broken = f.broken
	w.seen.Store(&f.progress)
	w.marked = true
	w.settle(task{what: toCall})
	for _, t := range f.since {
		if t.what == toObserve {
			w.given.Add(1)
		}
	}
	w.queue.refill(f.since)
	p.worker = w
	s.placements[p.name] = p
	charge, _ := s.charge(p.config)
	s.recharge(p, charge, 0)
	s.workers.Go(w.run)
	return nil
}

// read makes the learner what was saved. One that cannot be read begins again if it may, and so do the states
// to roll back to.
func (w *worker) read(f *frozenWorker, beginAgain bool) error {
	l, err := w.restored(f.data)
	if err == nil {
		w.learner = l
	} else if !beginAgain {
		return err
	} else {
		f.forgotten, f.observed, f.broken = f.forgotten+f.observed, 0, false
		f.problem = api.Abbreviate(fmt.Sprintf("its state could not be read, and it began again: %v", err), largestProblem)
		f.data = w.checkpoint
	}
	for i, k := range f.kept {
		if !beginAgain {
			break
		}
		if _, err := w.restored(k.data); err != nil {
			f.kept[i].data = f.data
		}
	}
	return nil
}

// modernise writes the states that an earlier program has saved as this one does, so that equal states
// have equal bytes.
func (w *worker) modernise() error {
	before := w.checkpoint
	if w.broken {
		return nil
	}
	if err := w.mark(); err != nil || bytes.Equal(w.checkpoint, before) {
		return err
	}
	for i, k := range w.kept {
		l, err := w.restored(k.data)
		if err != nil {
			continue // rolling back to it breaks the learner, as it would have
		}
		if w.kept[i].data, err = l.MarshalBinary(); err != nil {
			return err
		}
	}
	return nil
}

func (p *placement) restoreRecord(d decoder) (*record, error) {
	if d.format < 6 {
		return p.restoreOffer(d)
	}
	r := &record{placement: p, id: d.String(), entry: d.Uint64()}
	if r.entry == 0 {
		r.rare = &rare{learner: d.Uint64(), carried: []byte(d.String())}
	}
	r.time = int64(d.Uint64())
	shown := d.Count()
	r.shown = uint16(min(shown, largestSize))
	if err := r.restoreStatus(d, shown); err != nil {
		return nil, cmp.Or(d.Err(), err)
	}
	if r.entry == 0 && d.Err() == nil {
		if o, err := r.read(context.Background(), nil); err != nil || len(o.Shown) != int(r.shown) {
			return nil, fmt.Errorf("decision %q is not what it carries: %w", r.id, err)
		}
	}
	if r.status.waits() {
		if err := r.restorePassed(d); err != nil {
			return nil, cmp.Or(d.Err(), err)
		}
	}
	return r, d.Err()
}

// restoreStatus reads the status and the choice of a decision that shows so many items.
func (r *record) restoreStatus(d decoder, shown int) error {
	r.status = status(min(d.Count(), 255))
	r.choice = int16(min(d.Count(), largestSize+1))
	if shown > largestSize || r.status > evicted || int(r.choice) > shown || r.choice > 0 && r.status != chosen {
		return fmt.Errorf("decision %q shows %d items and has status %d and choice %d", r.id, shown, r.status, r.choice)
	}
	return nil
}

// restoreOffer reads a decision of a format that had the offers.
func (p *placement) restoreOffer(d decoder) (*record, error) {
	r := &record{placement: p, id: d.String(), rare: new(rare)}
	o := &eventlog.Offered{Decision: r.id}
	d.bytes(o.Request[:])
	r.time = int64(d.Uint64())
	r.rare.learner = d.Uint64()
	n := d.Count()
	if n > largestSize {
		return nil, fmt.Errorf("decision %q shows %d items", r.id, n)
	}
	shown := make([]string, n)
	for k := range n {
		shown[k] = d.String()
	}
	r.shown = uint16(n)
	o.PolicyVersion = d.Uint64()
	o.Mode = uint8(min(d.Count(), 255))
	o.Propensity = d.Float()
	o.Answer = []byte(d.String())
	estimates, err := decodeEstimates(o.Answer, n)
	if err == nil {
		err = r.restoreStatus(d, n)
	}
	if err == nil && (o.Mode < ByPolicy || o.Mode > ByBaseline || (r.status == deferred || r.status == withdrawn) && !estimates.deferred) {
		err = fmt.Errorf("decision %q has mode %d and status %d", r.id, o.Mode, r.status)
	}
	if err == nil && r.status.waits() {
		if err = restoreRows(d, o, shown); err == nil && d.format > 1 {
			err = r.restorePassed(d)
		}
	} else if err == nil {
		o.Candidates, o.ItemIDs = n, shown
		for k := range shown {
			o.Shown = append(o.Shown, int32(k))
		}
	}
	if err = cmp.Or(d.Err(), err); err != nil {
		return nil, err
	}
	event := eventlog.Event{Time: r.time, Placement: p.name, Body: o}
	if r.rare.carried, err = event.Encode(nil); err != nil {
		return nil, fmt.Errorf("decision %q: %w", r.id, err)
	}
	return r, nil
}

// restoreRows reads the rows of an offer that shows some items. The ids of the others are not known.
func restoreRows(d decoder, o *eventlog.Offered, shown []string) error {
	n := d.Count()
	o.Features = d.FloatSlice()
	if n < len(shown) || n == 0 && len(o.Features) > 0 || n > 0 && (len(o.Features) == 0 || len(o.Features)%n != 0) {
		return fmt.Errorf("decision %q has %d features of %d items", o.Decision, len(o.Features), n)
	}
	if n > 0 {
		o.Width = len(o.Features) / n
	}
	if flagged(d.Decoder) {
		o.Revenue = make([]float64, n)
		d.Floats(o.Revenue)
	}
	o.Candidates, o.ItemIDs, o.Shown = n, make([]string, n), make([]int32, len(shown))
	for k := range o.Shown {
		i := d.Count()
		if i >= n || slices.Contains(o.Shown[:k], int32(i)) {
			return fmt.Errorf("decision %q has two items in row %d of %d", o.Decision, i, n)
		}
		o.Shown[k], o.ItemIDs[i] = int32(i), shown[k]
	}
	return nil
}

func (r *record) restorePassed(d decoder) error {
	n, last := d.Count(), -1
	if n == 0 && d.format > 5 {
		return nil
	}
	var passed []bool
	if n > 0 && n < int(r.shown) {
		passed = make([]bool, r.shown)
	} else if n > 0 {
		return fmt.Errorf("decision %q has %d items of %d passed", r.id, n, r.shown)
	}
	for range n {
		k := d.Count()
		if k <= last || k >= int(r.shown) {
			return fmt.Errorf("decision %q has item %d of %d passed after item %d", r.id, k, r.shown, last)
		}
		passed[k], last = true, k
	}
	told := d.Float()
	if !(told >= 0 && told <= 1) || n == 0 && told != 0 || n > 0 && r.status == deferred {
		return fmt.Errorf("decision %q has %d items passed with a reward of %v", r.id, n, told)
	}
	if n > 0 {
		if r.rare == nil {
			r.rare = new(rare)
		}
		r.rare.passed, r.rare.told = passed, told
	}
	return nil
}

// all lists the counters, for encode and decode.
func (c *counts) all() (integers []*uint64, floats []*float64) {
	integers = []*uint64{
		&c.Evicted, &c.Withdrawn, &c.Offered, &c.Chosen, &c.Expired, &c.Stale, &c.Chance,
		&c.Shadow.Rounds, &c.Shadow.Agreements, &c.Shadow.Estimated,
	}
	floats = []*float64{&c.Shadow.Policy, &c.Shadow.Baseline, &c.Calibration.Revenue, &c.Calibration.Predicted}
	for i := range c.Arms {
		a := &c.Arms[i]
		integers = append(integers, &a.Rounds, &a.Purchases)
		floats = append(floats, &a.Revenue, &a.Squares)
	}
	for i := range c.Calibration.Bins {
		b := &c.Calibration.Bins[i]
		integers = append(integers, &b.Rounds, &b.Purchases)
		floats = append(floats, &b.Predicted)
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

func (c *counts) decode(d decoder) {
	integers, floats := c.all()
	switch {
	case d.format == 1:
		integers = integers[2:]
	case d.format < 4:
		integers = integers[1:]
	}
	for _, v := range integers {
		*v = d.Uint64()
	}
	for _, v := range floats {
		*v = d.Float()
	}
}
