package env

import (
	"math"
	"math/rand/v2"
	"sync"

	"gonum.org/v1/gonum/mat"
)

// Rotation is a truth with tastes that turn at a constant pace,
//
//	f_t(x) = f(R_tᵀx),
//
// where R_t turns by the angle t·pace in each of ⌊d/2⌋ orthogonal planes. If d is even, every direction w* turns by
// that angle; if d is odd, one axis stays fixed. Under a rotation-invariant distribution of contexts, all rounds are
// equally hard.
type Rotation struct {
	Truth // f, before the first round

	pace    float64     // in radians per round
	planes  [][]float64 // orthonormal; each consecutive pair spans a plane
	scratch sync.Pool   // of *mat.Dense
}

// NewRotation draws the planes uniformly. pace is in radians per round. It panics unless truth has at least 2 features.
func NewRotation(truth Truth, pace float64, rng *rand.Rand) *Rotation {
	d := truth.NumFeatures()
	if d < 2 {
		panic("env: a rotation needs at least 2 features")
	}
	return &Rotation{Truth: truth, pace: pace, planes: frame(d/2*2, d, rng)}
}

// At implements [MovingTruth].
func (r *Rotation) At(t int) Truth {
	d := r.NumFeatures()
	turn := mat.NewDense(d, d, nil) // R_t
	for j := range d {
		turn.Set(j, j, 1)
	}
	sin, cos := math.Sincos(float64(t) * r.pace)
	for i := 0; i < len(r.planes); i += 2 {
		p, q := mat.NewVecDense(d, r.planes[i]), mat.NewVecDense(d, r.planes[i+1])
		turn.RankOne(turn, cos-1, p, p)
		turn.RankOne(turn, cos-1, q, q)
		turn.RankOne(turn, sin, q, p)
		turn.RankOne(turn, -sin, p, q)
	}
	return &rotated{r, turn}
}

// rotated is the truth of one round.
type rotated struct {
	of   *Rotation
	turn *mat.Dense // R_t
}

// NumFeatures implements [Truth].
func (r *rotated) NumFeatures() int { return r.of.NumFeatures() }

// Params implements [Truth] and returns the parameters of f.
func (r *rotated) Params() []float64 { return r.of.Params() }

// Utilities implements [Truth].
func (r *rotated) Utilities(dst []float64, x *mat.Dense) {
	n, d := len(dst), r.NumFeatures()
	checkShape("rotation", d, dst, x)
	s, _ := r.of.scratch.Get().(*mat.Dense)
	if s == nil || s.RawMatrix().Rows != n {
		s = mat.NewDense(n, d, nil)
	}
	defer r.of.scratch.Put(s)
	for i := range n {
		row := s.RawRowView(i)
		clear(row)
		for j, v := range x.RawRowView(i) {
			for k := range row {
				row[k] += float64(r.turn.At(j, k) * v)
			}
		}
	}
	r.of.Truth.Utilities(dst, s)
}
