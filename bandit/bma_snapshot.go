package bandit

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"vitrine/internal/fields"
	"vitrine/mle"
)

// fields implements algorithm. A running fit is saved with its result, after it learned all rounds.
func (l *BMA) fields(f *fields.Fields, rounds int) func() {
	if !f.Reads() {
		l.wait()
	}
	n := *l
	if f.Reads() {
		n.history, n.seen = mle.NewChoices(l.p.NumFeatures+int(l.places)), l.places.moments(l.p.NumFeatures)
		if l.seen.extremes != nil {
			n.seen.extremes = newExtremes(l.p.NumFeatures)
		}
	}
	f.Count(&n.nextFit, &n.nextSearch, &n.folded)
	f.Uvarint(&n.seed)
	n.seen.fields(f)
	n.outliers.fields(f, n.seen.extremes)
	n.history.Fields(f)
	n.beliefs = l.beliefs.fields(f)
	fields.Optional(f, &n.job, func(j *fitJob, f *fields.Fields) {
		if f.Reads() {
			j = newFitJob(0, nil)
			n.job = j
		}
		f.Count(&j.due, &j.fold)
		f.Flag(&j.moved)
		result := j.result
		if f.Reads() {
			result = l.beliefs
		}
		j.result = result.fields(f)
		f.Check(j.fold <= n.history.Rounds(), "a fit folds %d of %d rounds", j.fold, n.history.Rounds())
	})
	f.Check(n.history.Rounds()+n.folded == rounds, "data of %d rounds, of which %d are counted",
		n.history.Rounds()+n.folded, rounds)
	if f.Err() == nil {
		rows := n.history.Rows()
		f.Check(n.z.shift != nil || rows == 0, "data of %d items, and no moments of their features", rows)
		f.Check((n.seen.n > 0 || rows == 0) && ((n.seen.n > 0) == (n.z.shift != nil) || l.known != nil),
			"the moments of %d items, and data of %d", n.seen.n, rows)
	}
	return func() { *l = n }
}

// fields passes over the beliefs b, and returns them or others of the same families that are read.
func (b *beliefs) fields(f *fields.Fields) *beliefs {
	n, all, bases := b, b.all(), len(b.bases())
	if f.Reads() {
		n = &beliefs{flat: b.flat, known: b.known}
	}
	n.z.fields(f, b.base.model.NumFeatures())
	f.Float(&n.intercept)
	f.Check(n.intercept > 0, "the standard deviation of the intercept is %v", n.intercept)
	for i, x := range all {
		if f.Err() != nil {
			return nil
		}
		if f.Reads() {
			x = x.twin(n.intercept)
		}
		x.fields(f, bases, len(b.base.prior))
		all[i] = x
	}
	if f.Reads() && f.Err() == nil {
		n.set(all)
	}
	bent := b.bent != nil
	if f.Flag(&bent); bent && f.Err() == nil {
		of := b.bent
		if f.Reads() {
			var err error
			if of, err = b.inScores(standardisation{}); err != nil {
				f.Fail(err)
				return nil
			}
		}
		n.bent = of.fields(f)
	}
	if f.Reads() && f.Err() == nil {
		n.checkWeights(f)
	}
	return n
}

// fields passes over what an expert believes. linear is the number of parameters of the bases.
func (e *expert) fields(f *fields.Fields, bases, linear int) {
	f.Vector(&e.start)
	hasAnchor := e.anchor != nil
	if f.Flag(&hasAnchor); hasAnchor {
		mle.LaplaceFields(f, &e.anchor, len(e.prior))
	}
	mle.LaplaceFields(f, &e.posterior, len(e.prior))
	f.Count(&e.wake)
	fields.List(f, &e.units, func(theta *[]float64, f *fields.Fields) {
		if f.Reads() {
			*theta = make([]float64, unitLength(e.Model))
		}
		f.Vector(theta)
	})
	for k := range bases {
		fields.Optional(f, &e.unit[k], func(p *unitPosterior, f *fields.Fields) {
			m, ok := e.additive()
			if f.Check(ok, "units of %v, which has none", e); ok {
				p.fields(f, m, linear)
			}
		})
	}
}

// twin returns an expert of the same family, with the given prior of the intercept.
func (e *expert) twin(intercept float64) *expert {
	n := &expert{Expert: e.Expert, model: e.model, prior: slices.Clone(e.prior), start: slices.Clone(e.start)}
	n.setIntercept(intercept)
	return n
}

// checkWeights fails if the sum of the evidences is NaN, so that no belief would be drawn.
func (b *beliefs) checkWeights(f *fields.Fields) {
	sum := 0.0
	for _, s := range b.split() {
		sum += floats.Sum(s.modes) + floats.Sum(s.units[0]) + floats.Sum(s.units[1]) + s.flat
	}
	f.Check(math.Abs(sum-1) < 1e-6, "the weights of the beliefs sum to %v, want 1", sum)
}
