package decision

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"vitrine/service/api"
	"vitrine/service/eventlog"
)

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
	config, written, err := parseLogged([]byte(text))
	if err != nil {
		return fmt.Errorf("placement %q: %w", p.name, err)
	}
	p.config, p.canonical = config, config.Canonical()
	if string(written) != text {
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
		f.problem = api.Abbreviate(fmt.Sprintf("its state could not be read, and it began again: %v", err), maxProblem)
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
	r.shown = uint16(min(shown, maxSize))
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

// restoreStatus reads the status and the choice of a decision that shows a number of items.
func (r *record) restoreStatus(d decoder, shown int) error {
	r.status = status(min(d.Count(), 255))
	r.choice = int16(min(d.Count(), maxSize+1))
	if shown > maxSize || r.status > evicted || int(r.choice) > shown || r.choice > 0 && r.status != chosen {
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
	if n > maxSize {
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
	reported := d.Float()
	if !(reported >= 0 && reported <= 1) || n == 0 && reported != 0 || n > 0 && r.status == deferred {
		return fmt.Errorf("decision %q has %d items passed with a reward of %v", r.id, n, reported)
	}
	if n > 0 {
		if r.rare == nil {
			r.rare = new(rare)
		}
		r.rare.passed, r.rare.reported = passed, reported
	}
	return nil
}
