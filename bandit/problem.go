// Package bandit holds the learners, one file each.
//
//	onl.go        ONL-MNL, Algorithm 1 of the paper
//	greedy.go     ONL-MNL without its bonus
//	ucb.go        UCB-MNL (Oh and Iyengar 2021)
//	ts.go         TS-MNL with optimistic sampling (Oh and Iyengar 2019)
//	ofu.go        OFU-MNL+ (Lee and Oh 2024)
//	egreedy.go    ε-greedy-MNL (Zhang and Luo 2024)
//	uniform.go    uniform over the feasible family
//	oracle.go     the optimum under the true utilities
//
// Every learner accepts any non-negative revenues, learns in Observe alone,
// and returns policies that are frozen and safe for concurrent use. All but
// Oracle can be saved and restored: they implement encoding.BinaryMarshaler
// and, on a learner made with the same problem and options,
// encoding.BinaryUnmarshaler.
package bandit

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/utility"
)

// Problem is what every learner knows before the first round.
type Problem struct {
	Features   int                // d, of each item
	Size       int                // K, the largest assortment that Constraint allows
	Rounds     int                // T, the horizon
	Constraint vitrine.Constraint // 𝒮, where a context names no family of its own
}

func (p Problem) check() error {
	switch {
	case p.Features < 1:
		return fmt.Errorf("features = %d: must be at least 1", p.Features)
	case p.Size < 1:
		return fmt.Errorf("size = %d: must be at least 1", p.Size)
	case p.Rounds < 1:
		return fmt.Errorf("rounds = %d: must be at least 1", p.Rounds)
	case p.Constraint == nil:
		return fmt.Errorf("the problem has no constraint")
	}
	if k, ok := p.Constraint.(assortment.AtMost); ok && int(k) != p.Size {
		return fmt.Errorf("size = %d: the constraint allows %d", p.Size, int(k))
	}
	return nil
}

// kind names a learner in its snapshots: what it is, of which problem, utility
// and options. A snapshot of another one would be read as nonsense.
func (p Problem) kind(name string, m utility.Model, options any) string {
	model := any(m)
	if _, ok := m.(fmt.Stringer); !ok {
		model = fmt.Sprintf("%T", m)
	}
	return fmt.Sprintf("%s d=%d K=%d T=%d %v %+v", name, p.Features, p.Size, p.Rounds, model, options)
}

// family returns the feasible family of a context.
func (p Problem) family(x *vitrine.Context) vitrine.Constraint {
	if x.Feasible != nil {
		return x.Feasible
	}
	return p.Constraint
}

// atLeast reports an option that is below its least value, or not finite.
func atLeast(key string, v, least float64) error {
	if !(v >= least) || math.IsInf(v, 0) {
		return fmt.Errorf("%s = %v: must be finite and at least %v", key, v, least)
	}
	return nil
}

// positive reports an option that is not positive, or not finite.
func positive(key string, v float64) error {
	if !(v > 0) || math.IsInf(v, 0) {
		return fmt.Errorf("%s = %v: must be finite and positive", key, v)
	}
	return nil
}

// oneOf reports an option that is not one of the legal words.
func oneOf(key, v string, legal ...string) error {
	for _, l := range legal {
		if v == l {
			return nil
		}
	}
	return fmt.Errorf("%s = %q: must be one of %q", key, v, legal)
}

// largestSlope bounds the utilities and the entries of their gradients from
// which a learner of a non-linear family learns, as
// [vitrine.LargestFeature] bounds those of a linear one.
const largestSlope = vitrine.LargestFeature

// checkSlopes reports the first utility or gradient that is not a number of
// size at most largestSlope: one such round would spoil the estimate for good.
func checkSlopes(u []float64, g *mat.Dense) error {
	for k, v := range u {
		if !(math.Abs(v) <= largestSlope) {
			return fmt.Errorf("utility of the item at position %d is %v: must be at most %v in size: scale the features", k, v, largestSlope)
		}
		for _, v := range g.RawRowView(k) {
			if !(math.Abs(v) <= largestSlope) {
				return fmt.Errorf("gradient of the item at position %d has %v: must be at most %v in size: scale the features", k, v, largestSlope)
			}
		}
	}
	return nil
}

// matrix is a dense matrix whose storage is reused from shape to shape.
type matrix struct {
	mat.Dense
	buf []float64
}

// reshape makes the matrix r×c, r, c ≥ 1, with undefined contents.
func (m *matrix) reshape(r, c int) *mat.Dense {
	if len(m.buf) < r*c {
		m.buf = make([]float64, r*c)
	}
	m.SetRawMatrix(blas64.General{Rows: r, Cols: c, Stride: c, Data: m.buf[:r*c]})
	return &m.Dense
}

// rows makes the matrix the rows of x in s, which must not be empty.
func (m *matrix) rows(x *mat.Dense, s vitrine.Assortment) *mat.Dense {
	_, d := x.Dims()
	m.reshape(len(s), d)
	for k, i := range s {
		copy(m.RawRowView(k), x.RawRowView(i))
	}
	return &m.Dense
}

func grow(v []float64, n int) []float64 {
	if cap(v) < n {
		return make([]float64, n, 2*n)
	}
	return v[:n]
}
