package bandit

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/internal/scratch"
	"vitrine/utility"
)

// A value of a feature is out of bounds if its distance from the feature's mean is beyond both
//
//	50 standard deviations,  and 4 times the largest distance so far
//
// All values of a feature in a round are out of bounds if most of them are beyond 10 standard deviations and 4 times
// that distance: then the round uses another unit, and some values are within the bounds by chance. A feature gets
// bounds once its values varied in 100 rounds. The largest distance matters for features that rarely differ from 0.
const (
	boundScales      = 50
	boundRoundScales = 10
	boundDistances   = 4
	boundRounds      = 100
)

// extremes are the extreme values of features.
type extremes struct {
	low, high []float64
	varied    []int // rounds in which a feature differed from its mean, up to boundRounds
}

func newExtremes(d int) *extremes {
	e := &extremes{make([]float64, d), make([]float64, d), make([]int, d)}
	for j := range d {
		e.low[j], e.high[j] = vitrine.MaxFeature, -vitrine.MaxFeature
	}
	return e
}

// add counts the items of a context.
func (e *extremes) add(x *mat.Dense) {
	if e == nil {
		return
	}
	n, _ := x.Dims()
	for i := range n {
		row := x.RawRowView(i)
		for j := range e.low {
			e.low[j], e.high[j] = min(e.low[j], row[j]), max(e.high[j], row[j])
		}
	}
}

// bounds returns the features' bounds, or nil if all are unbounded.
func (s *moments) bounds() *bounds {
	if s.extremes == nil {
		return nil
	}
	var b *bounds
	for j, n := range s.extremes.varied {
		sd := math.Sqrt(s.square[j] / float64(max(1, s.n)))
		if n < boundRounds || !(sd > minSpread && sd > minShare*math.Abs(s.mean[j])) {
			continue
		}
		if b == nil {
			b = newBounds(len(s.extremes.varied))
		}
		far := boundDistances * max(s.extremes.high[j]-s.mean[j], s.mean[j]-s.extremes.low[j])
		b.usual[j], b.ofRound[j] = s.mean[j], max(boundRoundScales*sd, far)
		most := max(boundScales*sd, far)
		b.low[j], b.high[j] = s.mean[j]-most, s.mean[j]+most
	}
	return b
}

// bounds are the bounds of features, with the value that replaces all values beyond them. A nil *bounds leaves values as
// they are.
type bounds struct {
	low, high, usual []float64
	ofRound          []float64 // the distance beyond which no more than half of a round's values may be
}

func newBounds(d int) *bounds {
	b := &bounds{make([]float64, d), make([]float64, d), make([]float64, d), make([]float64, d)}
	for j := range d {
		b.low[j], b.high[j], b.ofRound[j] = math.Inf(-1), math.Inf(1), math.Inf(1)
	}
	return b
}

// standardised returns the bounds of standardised features.
func (b *bounds) standardised(z standardisation) *bounds {
	if b == nil {
		return nil
	}
	n := newBounds(len(b.low))
	for j := range b.low {
		shift, scale := z.shift[j], z.scale[j]
		n.low[j], n.high[j], n.usual[j] = (b.low[j]-shift)/scale, (b.high[j]-shift)/scale, (b.usual[j]-shift)/scale
	}
	return n
}

// width returns the number of features, or 0 if all are unbounded.
func (b *bounds) width() int {
	if b == nil {
		return 0
	}
	return len(b.low)
}

// contain reports whether a value of a feature is within them.
func (b *bounds) contain(j int, v float64) bool { return v >= b.low[j] && v <= b.high[j] }

// columns replaces values out of bounds by the usual value.
func (b *bounds) columns(items *utility.Columns) {
	for j := range b.width() {
		column := items.Feature(j)
		for i, v := range column {
			if !b.contain(j, v) {
				column[i] = b.usual[j]
			}
		}
	}
}

// rows returns x with the usual value in place of values out of bounds, in dst, or x itself if all are within. column
// gives the column of each feature in x; nil is the same column.
func (b *bounds) rows(dst *scratch.Matrix, x *mat.Dense, column []int) *mat.Dense {
	if b == nil || x == nil {
		return x
	}
	tamed := x
	n, d := x.Dims()
	for i := range n {
		row := x.RawRowView(i)
		for j := range b.low {
			at := place(column, j)
			if b.contain(j, row[at]) {
				continue
			}
			if tamed == x {
				dst.Reshape(n, d).Copy(x)
				tamed = &dst.Dense
			}
			tamed.Set(i, at, b.usual[j])
		}
	}
	return tamed
}

func place(column []int, j int) int {
	if column == nil {
		return j
	}
	return column[j]
}

// Outliers counts the feature values that a learner left out because they were out of bounds.
type Outliers struct {
	Values int // in all rounds
	Column int // of the last one
	Since  int // rounds after the last one, up to 2³⁰
	// Rounds counts the rounds in which most items had such a value of the same feature. Every other round lowers the
	// count by 1.
	Rounds int
}

// minOutliers is the least number of such rounds after which a learner begins again.
const minOutliers = 1000

// outliers is a learner's count of values out of bounds.
type outliers struct {
	Outliers
	usual int // rounds without most items out of bounds, up to maxRounds
}

// note counts the values of a round that are out of bounds. It changes the bounds to this round's, and returns whether
// all values of a feature are out of them.
func (u *outliers) note(b *bounds, x *mat.Dense, column []int) (most bool) {
	if x == nil {
		return false
	}
	n, _ := x.Dims()
	u.Since = min(u.Since+1, 1<<30)
	for j := range b.width() {
		out, far := 0, 0
		for i := range n {
			v := x.At(i, place(column, j))
			if !b.contain(j, v) {
				out++
			}
			if math.Abs(v-b.usual[j]) > b.ofRound[j] {
				far++
			}
		}
		if 2*far > n {
			b.low[j], b.high[j] = math.Inf(1), math.Inf(-1)
			out, most = n, true
		}
		if u.Values += out; out > 0 {
			u.Column, u.Since = place(column, j), 0
		}
	}
	if most {
		u.Rounds++
	} else {
		u.Rounds, u.usual = max(0, u.Rounds-1), min(u.usual+1, maxRounds)
	}
	return most
}

// prevails reports whether rounds out of bounds have become usual: as many as the other rounds that a learner keeps,
// and at least 1,000. Then the learner begins again with them.
func (u *outliers) prevails() bool { return u.Rounds >= max(minOutliers, u.usual) }

// again returns the outliers of a learner that begins again.
func (u *outliers) again() outliers {
	return outliers{Outliers: Outliers{Values: u.Values, Column: u.Column, Since: u.Since}}
}

// fields passes over the state behind the bounds, except the moments.
func (u *outliers) fields(f *fields.Fields, x *extremes) {
	f.Count(&u.Values, &u.Column, &u.Since, &u.Rounds, &u.usual)
	if x != nil {
		f.Vector(&x.low, &x.high)
		fields.Elements(f, x.varied)
	}
}
