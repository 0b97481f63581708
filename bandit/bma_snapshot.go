package bandit

import (
	"fmt"
	"slices"

	"vitrine/internal/state"
	"vitrine/mle"
)

// encode implements algorithm. A fit that runs is saved with its result.
func (l *BMA) encode(e *state.Encoder) {
	l.wait()
	for _, n := range []int{l.nextFit, l.nextSearch} {
		e.Count(n)
	}
	e.Uint64(l.seed)
	l.seen.encode(e)
	e.Count(l.folded)
	l.history.Encode(e)
	l.beliefs.encode(e)
	if l.job == nil {
		e.Count(0)
		return
	}
	e.Count(1)
	// The result has learned all rounds. In earlier snapshots it lacked those since the fit began.
	for _, n := range []int{l.job.due, l.rounds, l.job.fold, count(l.job.moved)} {
		e.Count(n)
	}
	l.job.result.encode(e)
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// encode appends the beliefs to a snapshot.
func (b *beliefs) encode(e *state.Encoder) {
	e.Floats(b.z.shift)
	e.Floats(b.z.scale)
	e.Float(b.intercept)
	for _, x := range b.all() {
		e.Floats(x.start)
		e.Count(count(x.anchor != nil))
		if x.anchor != nil {
			x.anchor.Encode(e)
		}
		x.posterior.Encode(e)
		e.Count(x.wake)
		e.Count(len(x.units))
		for _, u := range x.units {
			e.Floats(u)
		}
		for k := range b.bases() {
			x.unit[k].encode(e)
		}
	}
}

// decode implements algorithm. Version 1 has the moments of the first context's items, and
// the history standardised by them. What it lacks, the moments of all items, is
// made up from those that were offered. Versions 1 and 2 have no units' posteriors, which the
// next full fit makes. Version 3 may have experts at rest
// that its units' evidence sent there; they wake as they would have. Versions 1 to 4 have no base of slopes near 0: see
// [expert.besides]. Up to version 5 units weigh without moments, until the next full fit. Up to version 6 no expert has products of
// numbers only, and up to version 7 none has squares only: see [expert.joins].
func (l *BMA) decode(d *state.Decoder, version, rounds int) func() {
	n := *l
	n.job = nil
	learned := rounds // by the fit that runs
	n.history, n.seen = mle.NewChoices(l.p.Features+int(l.places)), l.places.moments(l.p.Features)
	n.nextFit, n.nextSearch = d.Count(), d.Count()
	n.seed = d.Uint64()
	if version < 3 {
		n.decodeEarlier(d, l.beliefs, version)
	} else {
		n.seen.decode(d)
		n.folded = d.Count()
		n.history.Decode(d)
		n.beliefs = l.beliefs.decode(d, version)
		if d.Count() > 0 {
			due := d.Count()
			learned = d.Count()
			n.job = newFitJob(due, nil)
			n.job.fold, n.job.moved = d.Count(), d.Count() > 0
			n.job.result = l.beliefs.decode(d, version)
			if d.Err() == nil && (learned > rounds || rounds-learned+n.job.fold > n.history.Rounds()) {
				d.Fail(fmt.Errorf("snapshot has a fit that learned %d rounds and folds %d, and the data of %d of %d rounds", learned, n.job.fold, n.history.Rounds(), rounds))
			}
		}
	}
	if have := n.history.Rounds(); have+n.folded != rounds {
		d.Fail(fmt.Errorf("snapshot has the data of %d rounds, and counts %d", have+n.folded, rounds))
	}
	if n.z.shift == nil && n.history.Rows() > 0 {
		d.Fail(fmt.Errorf("snapshot has the data of %d items, and no moments of their features", n.history.Rows()))
	}
	if version > 1 && (n.seen.n < n.history.Rows() || (n.seen.n > 0) != (n.z.shift != nil) && l.known == nil) {
		d.Fail(fmt.Errorf("snapshot has the moments of %d items, and the data of %d", n.seen.n, n.history.Rows()))
	}
	return func() {
		if version == 1 && n.history.Rows() > 0 {
			back := n.z.inverse()
			n.history = n.history.Standardised(back.shift, back.scale)
			n.seen.add(n.history.Features())
		}
		*l = n
		for s := l.history.Rounds() - (rounds - learned); s < l.history.Rounds(); s++ {
			l.job.learn(queued{l.history.Round(s), l.z})
		}
	}
}

// decodeEarlier reads what versions 1 and 2 have after the seed. The families are those of b.
func (l *BMA) decodeEarlier(d *state.Decoder, b *beliefs, version int) {
	n := &beliefs{z: decodeStandardisation(d, l.p.Features), intercept: 1}
	if version > 1 {
		l.seen.decode(d)
	}
	l.history.Decode(d)
	n.base = b.base.twin(1)
	n.base.posterior = mle.DecodeLaplace(d, len(b.base.prior))
	for _, x := range b.experts {
		restored := x.twin(1)
		if joinedAt(x.Expert) > 0 {
			if err := restored.joins(n.base); err != nil {
				d.Fail(err)
			}
			n.experts = append(n.experts, restored)
			continue
		}
		if version > 1 {
			d.Floats(restored.start)
		}
		restored.posterior, restored.wake = mle.DecodeLaplace(d, len(x.prior)), d.Count()
		restored.decodeUnits(d)
		n.experts = append(n.experts, restored)
	}
	n.flat = b.flat.besides(n.base, n.intercept)
	l.beliefs, l.folded = n, 0
}

// twin returns an expert of the same family, with the given prior of the intercept.
func (e *expert) twin(intercept float64) *expert {
	n := &expert{Expert: e.Expert, model: e.model, prior: slices.Clone(e.prior), start: slices.Clone(e.start)}
	n.setIntercept(intercept)
	return n
}

// besides returns the base of slopes near 0 of a snapshot that lacks it: until the next full fit as certain as the base, and
// after it of what rounds are kept. nil remains nil.
func (e *expert) besides(base *expert, intercept float64) *expert {
	if e == nil {
		return nil
	}
	n := e.twin(intercept)
	n.anchor, n.posterior = base.anchor, base.posterior
	return n
}

// joins makes a quadratic expert one that a snapshot lacks: it rests until the next full fit. Of the rounds that are not kept it
// has what the base has.
func (e *expert) joins(base *expert) (err error) {
	if base.anchor != nil {
		d := e.Model.NumFeatures() + 1
		if e.anchor, err = base.anchor.Extended(d, e.prior[d:e.Model.NumParams()]); err != nil {
			return err
		}
		copy(e.start, e.anchor.Mode)
	}
	e.wake = 1
	return e.restart()
}

// decodeUnits reads the best units of the last search.
func (e *expert) decodeUnits(d *state.Decoder) {
	for range d.Count() {
		if d.Err() != nil {
			return
		}
		theta := make([]float64, unitLength(e.Model))
		d.Floats(theta)
		e.units = append(e.units, theta)
	}
}

// decode returns the beliefs that encode wrote. The families are those of b.
func (b *beliefs) decode(d *state.Decoder, version int) *beliefs {
	n := &beliefs{z: decodeStandardisation(d, b.base.model.NumFeatures()), intercept: d.Float(), flat: b.flat, known: b.known}
	if d.Err() == nil && !(n.intercept > 0) {
		d.Fail(fmt.Errorf("snapshot has the standard deviation %v", n.intercept))
	}
	all, bases := b.all(), b.bases()
	if version < 5 {
		all, bases = append(bases[:1:1], b.experts...), bases[:1]
	}
	for i, x := range all {
		restored := x.twin(n.intercept)
		if version < joinedAt(x.Expert) {
			if err := restored.joins(all[0]); err != nil {
				d.Fail(err)
			}
			all[i] = restored
			continue
		}
		d.Floats(restored.start)
		if d.Count() > 0 {
			restored.anchor = mle.DecodeLaplace(d, len(x.prior))
		}
		restored.posterior, restored.wake = mle.DecodeLaplace(d, len(x.prior)), d.Count()
		restored.decodeUnits(d)
		for k := range bases {
			if m, ok := x.additive(); ok {
				restored.unit[k] = decodeUnits(d, m, len(b.base.prior))
			} else if d.Count() > 0 {
				d.Fail(fmt.Errorf("snapshot has units of %v, which has none", x))
			}
		}
		all[i] = restored
	}
	if version < 5 && n.flat != nil {
		all = slices.Insert(all, 1, n.flat.besides(all[0], n.intercept))
	}
	n.set(all)
	return n
}

// decodeStandardisation reads the moments of d features, or none.
func decodeStandardisation(d *state.Decoder, features int) standardisation {
	z := standardisation{d.FloatSlice(), d.FloatSlice()}
	if len(z.shift) == 0 && len(z.scale) == 0 {
		return standardisation{} // no items before the snapshot
	}
	if len(z.shift) != features || len(z.scale) != features {
		d.Fail(fmt.Errorf("snapshot has the moments of %d features, want %d", len(z.shift), features))
	}
	for _, v := range z.scale {
		if !(v > 0) {
			d.Fail(fmt.Errorf("snapshot has the standard deviation %v", v))
		}
	}
	return z
}
