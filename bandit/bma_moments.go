package bandit

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/fields"
	"vitrine/utility"
)

// moments are the running mean and sum of squared deviations of each feature,
//
//	n ← n + m,   mean ← mean + (m/n) δ,   square ← square + square' + δ² (n − m) m/n
//
// where a context of m items contributes the mean mean + δ and the sum square' (Chan, Golub and LeVeque 1983).
type moments struct {
	n            int
	mean, square []float64
	plain        int // of the last features, which are not standardised

	extremes *extremes // of the first features; nil without bounds
	sketches sketches
}

func newMoments(d int) moments { return moments{mean: make([]float64, d), square: make([]float64, d)} }

// add counts a context's items, if any.
func (s *moments) add(x *mat.Dense) {
	if x == nil {
		return
	}
	items, d := x.Dims()
	mean, square := make([]float64, d), make([]float64, d)
	for i := range items {
		for j, v := range x.RawRowView(i) {
			delta := v - mean[j]
			mean[j] += delta / float64(i+1)
			square[j] += float64(delta * (v - mean[j]))
		}
	}
	s.n += items
	m, n := float64(items), float64(s.n)
	for j := range d {
		delta := mean[j] - s.mean[j]
		s.mean[j] += float64(delta * m / n)
		s.square[j] += square[j] + float64(delta*delta*(n-m)*m/n)
		if e := s.extremes; e != nil && j < len(e.varied) && (square[j] > 0 || delta != 0) {
			e.varied[j] = min(e.varied[j]+1, boundRounds)
		}
	}
	s.extremes.add(x)
	s.sketches.add(x)
}

// A feature is constant as far as a float64 can tell if its standard deviation is at most minSpread, or at most that
// share of its mean.
const (
	minShare  = 1e-6
	minSpread = 1e-12
)

// standardisation returns the mean and the standard deviation of each feature. For a constant feature, the absolute
// mean or 1 replaces the deviation.
func (s *moments) standardisation() standardisation {
	z := standardisation{shift: slices.Clone(s.mean), scale: make([]float64, len(s.mean))}
	for j, m := range s.mean {
		sd := math.Sqrt(s.square[j] / float64(s.n))
		if size := math.Abs(m); !(sd > minSpread && sd > minShare*size) {
			sd = size
			if !(size > minSpread) {
				sd = 1
			}
		}
		z.scale[j] = sd
	}
	for j := len(s.mean) - s.plain; j < len(s.mean); j++ {
		z.shift[j], z.scale[j] = 0, 1
	}
	return z
}

// standardisation turns features into (x − shift) / scale, and bent ones into their scores. The zero value changes
// nothing.
type standardisation struct {
	shift, scale []float64
	bends        []bend // of each feature, empty for a straight one; nil if all are straight
}

// row standardises an item.
func (z standardisation) row(x []float64) {
	for j, v := range x {
		x[j] = (v - z.shift[j]) / z.scale[j]
	}
	for j, b := range z.bends {
		if len(b.x) > 0 {
			x[j] = b.of(x[j])
		}
	}
}

// bend replaces the standardised values of bent features by their scores.
func (z standardisation) bend(items *utility.Columns) {
	for j, b := range z.bends {
		if len(b.x) == 0 {
			continue
		}
		column := items.Feature(j)
		for i, v := range column {
			column[i] = b.of(v)
		}
	}
}

// of standardises items, but for the scores.
func (z standardisation) of(items *utility.Columns) {
	_, d := items.Dims()
	for j := range d {
		column, shift, scale := items.Feature(j), z.shift[j], z.scale[j]
		for i, v := range column {
			column[i] = (v - shift) / scale
		}
	}
}

// standstill is the share of a standard deviation by which moments may move without a new fit.
const standstill = 0.25

// stands reports whether the standardisation is as good as a later one: no mean moved by more than a quarter of the
// standard deviation, and no standard deviation by more than a quarter of itself, up or down. Priors are not known more
// closely than that.
func (z standardisation) stands(later standardisation) bool {
	for j, sd := range z.scale {
		moved, ratio := math.Abs(later.shift[j]-z.shift[j]), later.scale[j]/sd
		if !(moved <= standstill*sd && ratio <= 1+standstill && ratio >= 1/(1+standstill)) {
			return false
		}
	}
	for j, b := range z.bends {
		if !b.stands(later.bends[j]) {
			return false
		}
	}
	return true
}

// fields passes over the moments.
func (s *moments) fields(f *fields.Fields) {
	f.Count(&s.n)
	f.Vector(&s.mean, &s.square)
	fields.Pointers(f, (*[]*sketch)(&s.sketches), (*sketch).fields)
}

// fields passes over the moments of d features, or of no feature.
func (z *standardisation) fields(f *fields.Fields, d int) {
	f.Floats(&z.shift)
	f.Floats(&z.scale)
	n := len(z.shift)
	f.Check((n == 0 || n == d) && len(z.scale) == n, "the moments of %d features, want %d", n, d)
	for _, v := range z.scale {
		f.Check(v > 0, "the standard deviation of a feature is %v", v)
	}
	fields.List(f, &z.bends, func(b *bend, f *fields.Fields) {
		f.Floats(&b.x)
		f.Floats(&b.s)
		f.Check(len(b.x) == len(b.s) && len(b.x) != 1 && slices.IsSorted(b.x) && slices.IsSorted(b.s),
			"the scores of a feature have %d values and %d scores, or are not in order", len(b.x), len(b.s))
	})
	f.Check(len(z.bends) == 0 || len(z.bends) == n, "the scores of %d features, want %d", len(z.bends), n)
}
