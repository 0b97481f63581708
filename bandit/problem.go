// Package bandit holds the learners, one file each.
//
//	onl.go        ONL-MNL, Algorithm 1 of the paper
//	greedy.go     ONL-MNL without its bonus
//	ucb.go        UCB-MNL (Oh and Iyengar 2021)
//	ts.go         TS-MNL with optimistic sampling (Oh and Iyengar 2019)
//	ofu.go        OFU-MNL+ (Lee and Oh 2024)
//	egreedy.go    ε-greedy-MNL (Zhang and Luo 2024)
//	log_barrier.go the log-barrier strategy (Zhang and Luo 2024)
//	feel_good.go  Feel-Good Thompson sampling (Zhang 2022; Zhang and Luo 2024)
//	bma.go        BMA-MNL: families averaged by evidence, slots sampled
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
	"reflect"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/utility"
)

// Problem is what every learner knows before the first round.
//
// No policy shows more than Size items. The family of a context that has larger
// sets is limited to it if it is an [assortment.Limiter], as those of the package
// are; policies panic if it demands more items. A family of your own must keep
// to Size.
type Problem struct {
	Features   int                // d, of each item
	Items      int                // N, the most items of a request; 0 where it is not known. A learner may refuse too many
	Size       int                // K, the most items that are shown; an AtMost must agree
	Rounds     int                // T, the horizon
	Constraint vitrine.Constraint // 𝒮, where a context names no family of its own
}

func (p Problem) check() error {
	switch {
	case p.Features < 1:
		return fmt.Errorf("features = %d: must be at least 1", p.Features)
	case p.Items < 0:
		return fmt.Errorf("items = %d: must not be negative (0 is unknown)", p.Items)
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

// checkModel reports a utility family that the named constructor cannot take.
func (p Problem) checkModel(constructor string, m utility.Model) error {
	if isNil(m) {
		return fmt.Errorf("%s: the utility model is nil: give it a family, such as utility.NewLinear(%d, true)", constructor, p.Features)
	}
	if m.NumFeatures() != p.Features {
		return fmt.Errorf("the utility is of %d features, the problem has %d", m.NumFeatures(), p.Features)
	}
	if m.NumParams() < 1 {
		return fmt.Errorf("the utility has no parameters: there is nothing to learn, give it a family that has some")
	}
	return nil
}

// isNil reports an interface that is nil or has a nil pointer.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// family returns the feasible family of a context, without sets of more than
// Size items. It panics if no other sets are left.
func (p Problem) family(x *vitrine.Context) vitrine.Constraint {
	switch c := x.Feasible.(type) {
	case nil:
		return p.Constraint
	case assortment.Limiter:
		limited, err := c.Limit(p.Size)
		if err != nil {
			panic(fmt.Sprintf("bandit: the feasible family of a context has no set of at most %d items, the size of the problem: %v", p.Size, err))
		}
		return limited
	default:
		return c
	}
}

// tangent is what the offered items of a round are linearised to.
type tangent struct {
	x, g matrix
	u    []float64
}

// at is of for the offered items of a round; it returns nil where nothing was
// offered.
func (t *tangent) at(m utility.Model, w []float64, r vitrine.Round) (*mat.Dense, error) {
	t.u = t.u[:0]
	if len(r.Offer.Assortment) == 0 {
		return nil, nil
	}
	return t.of(m, w, t.x.rows(r.Context.Features, r.Offer.Assortment))
}

// of stores the utilities of the items x and returns their gradients. It reports the first number that is not one of
// size at most [vitrine.LargestFeature]: one such round would spoil the estimate
// of a non-linear family for good, as a larger feature would that of a linear
// one.
func (t *tangent) of(m utility.Model, w []float64, x *mat.Dense) (*mat.Dense, error) {
	n, _ := x.Dims()
	t.u = grow(t.u, n)
	g := t.g.reshape(n, len(w))
	utility.Linearize(m, t.u, g, w, x)
	for k, v := range t.u {
		if !(math.Abs(v) <= vitrine.LargestFeature) {
			return nil, fmt.Errorf("utility of the item at position %d is %v: must be at most %v in size: scale the features", k, v, vitrine.LargestFeature)
		}
	}
	return g, checkGradients(g)
}

// basis returns the gradients φ(x) of the offered items, which there must be, for
// a family in which they do not depend on w. It reports the first number beyond
// [vitrine.LargestFeature] in size, as an item with such a feature is reported.
func (t *tangent) basis(m utility.LinearInParams, w []float64, r vitrine.Round) (*mat.Dense, error) {
	s := r.Offer.Assortment
	g := t.g.reshape(len(s), len(w))
	m.Gradients(g, w, t.x.rows(r.Context.Features, s))
	return g, checkGradients(g)
}

// checkGradients reports the first number of the gradients that is not one of
// size at most [vitrine.LargestFeature].
func checkGradients(g *mat.Dense) error {
	n, _ := g.Dims()
	for k := range n {
		for _, v := range g.RawRowView(k) {
			if !(math.Abs(v) <= vitrine.LargestFeature) {
				return fmt.Errorf("gradient of the item at position %d has %v: must be at most %v in size: scale the features", k, v, vitrine.LargestFeature)
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
