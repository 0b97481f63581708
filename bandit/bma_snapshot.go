package bandit

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

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
	l.outliers.encode(e, l.seen.extremes)
	e.Count(l.folded)
	l.history.Encode(e)
	l.beliefs.encode(e)
	if l.job == nil {
		e.Count(0)
		return
	}
	e.Count(1)
	// The result has learned all rounds.
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

// decode implements algorithm.
func (l *BMA) decode(d *state.Decoder, rounds int) func() {
	n := *l
	n.job = nil
	learned := rounds // by the fit that runs
	n.history, n.seen = mle.NewChoices(l.p.Features+int(l.places)), l.places.moments(l.p.Features)
	if l.seen.extremes != nil {
		n.seen.extremes = newExtremes(l.p.Features)
	}
	n.nextFit, n.nextSearch = d.Count(), d.Count()
	n.seed = d.Uint64()
	n.seen.decode(d)
	n.outliers.decode(d, n.seen.extremes)
	n.folded = d.Count()
	n.history.Decode(d)
	n.beliefs = l.beliefs.decode(d)
	if d.Count() > 0 {
		due := d.Count()
		learned = d.Count()
		n.job = newFitJob(due, nil)
		n.job.fold, n.job.moved = d.Count(), d.Count() > 0
		n.job.result = l.beliefs.decode(d)
		if d.Err() == nil && (learned > rounds || rounds-learned+n.job.fold > n.history.Rounds()) {
			d.Fail(fmt.Errorf("snapshot has a fit that learned %d rounds and folds %d, and the data of %d of %d rounds", learned, n.job.fold, n.history.Rounds(), rounds))
		}
	}
	if have := n.history.Rounds(); have+n.folded != rounds {
		d.Fail(fmt.Errorf("snapshot has the data of %d rounds, and counts %d", have+n.folded, rounds))
	}
	if n.z.shift == nil && n.history.Rows() > 0 {
		d.Fail(fmt.Errorf("snapshot has the data of %d items, and no moments of their features", n.history.Rows()))
	}
	if n.seen.n == 0 && n.history.Rows() > 0 || (n.seen.n > 0) != (n.z.shift != nil) && l.known == nil {
		d.Fail(fmt.Errorf("snapshot has the moments of %d items, and the data of %d", n.seen.n, n.history.Rows()))
	}
	return func() {
		*l = n
		for s := l.history.Rounds() - (rounds - learned); s < l.history.Rounds(); s++ {
			l.job.learn(queued{l.history.Round(s), l.z})
		}
	}
}

// twin returns an expert of the same family, with the given prior of the intercept.
func (e *expert) twin(intercept float64) *expert {
	n := &expert{Expert: e.Expert, model: e.model, prior: slices.Clone(e.prior), start: slices.Clone(e.start)}
	n.setIntercept(intercept)
	return n
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
func (b *beliefs) decode(d *state.Decoder) *beliefs {
	n := &beliefs{z: decodeStandardisation(d, b.base.model.NumFeatures()), intercept: d.Float(), flat: b.flat, known: b.known}
	if d.Err() == nil && !(n.intercept > 0) {
		d.Fail(fmt.Errorf("snapshot has the standard deviation %v", n.intercept))
	}
	all, bases := b.all(), b.bases()
	for i, x := range all {
		restored := x.twin(n.intercept)
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
	n.set(all)
	if d.Err() == nil {
		n.checkWeights(d)
	}
	return n
}

// checkWeights fails if the evidences have a sum that is no number, so that no belief would be drawn.
func (b *beliefs) checkWeights(d *state.Decoder) {
	modes, units, flat := b.split()
	sum := floats.Sum(modes) + floats.Sum(units[0]) + floats.Sum(units[1]) + flat
	if !(math.Abs(sum-1) < 1e-6) {
		d.Fail(fmt.Errorf("snapshot has beliefs whose weights sum to %v, want 1", sum))
	}
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
