package mle

import (
	"iter"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack/lapack64"

	"vitrine/internal/fields"
	"vitrine/internal/kernel"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
	"vitrine/utility"
)

// ScoreTest estimates the evidence that a unit of a [utility.Additive] would add to a linear fit, without fitting the
// unit. It minimises the quadratic model of the loss in the unit's amplitudes γ at γ = 0 over the linear parameters
// (Rao's score test, with priors):
//
//	gain(θ) = ½ sᵀJ⁻¹s − ½ log det J + ½ log det P_γ − ½ Σ_j ρ_j θ_j²
//	s = Σ_i (y_i − p_i) h_i,   J = Cov(h, h) − Cov(h, z) A⁻¹ Cov(z, h) + P_γ
//
// where h = h(θᵀψ(x)) are the unit's outputs, z = (x, 1), Cov sums the rounds' covariances under their choice
// probabilities, and A is the precision of the linear fit. The test may use a sample of the rounds, and then scales
// sums to all of them. A ScoreTest is not safe for concurrent use.
type ScoreTest struct {
	m      *utility.Additive
	linear *Laplace
	family utility.Model // the linear fit's family
	c      *Choices
	scale  float64
	theta  []float64 // precisions of a unit's θ
	gamma  []float64 // precisions of a unit's amplitudes

	tile scoreTile
}

// NewScoreTest returns the test for adding units of m to the linear fit with parameters (a, b) to all rounds of c. If c
// contains more features than m, the linear fit holds their parameters after b, and units ignore them. The test uses at
// most the given number of rounds, evenly spaced from the offset on. NewScoreTest returns nil if these rounds contain
// no items.
func NewScoreTest(m *utility.Additive, c *Choices, linear *Laplace, maximum, offset int) *ScoreTest {
	family := utility.Model(utility.NewLinear(c.d, true))
	if own := m.NumFeatures(); own < c.d {
		family = utility.NewSum(utility.NewLinear(own, true), utility.NewLinear(c.d-own, false))
	}
	return NewScoreTestBeside(family, m, c, linear, maximum, offset)
}

// NewScoreTestBeside is [NewScoreTest] beside the fit of another family, linearised at its mode: its parameters stand
// for the linear ones.
func NewScoreTestBeside(family utility.Model, m *utility.Additive, c *Choices, fit *Laplace, maximum,
	offset int) *ScoreTest {
	t := &ScoreTest{m: m, linear: fit, family: family, c: c.Sample(maximum, offset)}
	t.scale = float64(c.Rounds()) / float64(t.c.Rounds())
	if t.c.Rows() == 0 {
		return nil
	}
	prior := make([]float64, m.NumParams())
	m.Precisions(prior)
	t.gamma, t.theta = m.Gamma(prior, 0), m.Theta(prior, 0)
	return t
}

// scoreTile holds the intermediate results for rounds with n items. All units are evaluated on one tile while it is in
// the cache. In a round with further takes, the p are the expected takes, and the covariance is Σ p g gᵀ − c ḡ ḡᵀ.
type scoreTile struct {
	end []int // one past the last row of each round
	// Probabilities and y − p of the items, and probabilities of the outside option.
	p, r, out []float64
	root      []float64 // √c of each round, see [kernel.Shrinkage]
	g         scratch.Matrix
	mean      []float64
	z         []float64 // (d+1)×n: rows of U⁻ᵀ p (z − z̄), UᵀU = A
	rows, psi []float64 // the units' inputs, in rows
	h, ph     []float64 // a unit's outputs, and p h
	means     []float64 // √c Σ p h of each round
}

// tileRows is the minimum number of items in a tile, except the last.
const tileRows = 256

// tiles returns the rounds in tiles [from, to), skipping tiles in which no item was offered.
func (t *ScoreTest) tiles() iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		for from, to := 0, 0; from < t.c.Rounds(); from = to {
			for to = from + 1; to < t.c.Rounds() && t.c.end[to-1]-t.c.start(from) < tileRows; {
				to++
			}
			if t.c.end[to-1] > t.c.start(from) && !yield(from, to) {
				return
			}
		}
	}
}

// look computes the intermediate results for the rounds [from, to).
func (t *ScoreTest) look(from, to int) {
	v, d, x, base := &t.tile, len(t.linear.Mode), t.c.rows(from, to), t.c.start(from)
	n, _ := x.Dims()
	v.end = v.end[:0]
	for s := from; s < to; s++ {
		v.end = append(v.end, t.c.end[s]-base)
	}
	v.p, v.out, v.mean, v.z = scratch.Grow(v.p, n), scratch.Grow(v.out, to-from),
		scratch.Grow(v.mean, d), scratch.Grow(v.z, d*n)
	v.root = scratch.Grow(v.root, to-from)
	g := v.g.Reshape(n, d)
	utility.Linearize(t.family, v.p, g, t.linear.Mode, x)
	t.c.probabilities(v.p, v.out, from, to)
	v.r = append(v.r[:0], v.p...)
	t.c.subtractChoices(v.r, from, to)
	floats.Scale(-1, v.r)
	lo := 0
	for s, hi := range v.end {
		clear(v.mean)
		kernel.GemvTrans(v.mean, g.RawMatrix().Data[lo*d:hi*d], v.p[lo:hi], hi-lo, d)
		c := t.c.shrinkage(from+s, v.p[lo:hi])
		v.root[s] = math.Sqrt(c)
		for j := range v.mean {
			v.mean[j] *= c
		}
		for i := lo; i < hi; i++ {
			for j, value := range g.RawRowView(i) {
				v.z[j*n+i] = v.p[i] * (value - v.mean[j])
			}
		}
		lo = hi
	}
	blas64.Trsm(blas.Left, blas.Trans, 1, t.linear.root.RawTriangular(),
		blas64.General{Rows: d, Cols: n, Stride: n, Data: v.z})
	v.rows = scratch.Grow(v.rows, (d+1)*n)
	v.psi = t.m.Psi(v.rows, x)
}

// Amplitudes is the posterior of the amplitudes of a unit θ added to a linear fit with the precision A = UᵀU, from the
// quadratic model of a [ScoreTest]:
//
//	γ ~ N(γ̂, J⁻¹),  γ̂ = J⁻¹s
//	the linear parameters given γ ~ N(ŵ − U⁻¹c̃γ, A⁻¹),  c̃ = U⁻ᵀ Cov(z, h)
type Amplitudes struct {
	Mode []float64 // γ̂, of length o
	// Gain is the increase of the log evidence due to the unit at this θ,
	//
	//	½ sᵀJ⁻¹s − ½ log det J + ½ log det P_γ
	Gain float64
	// Cross is c̃, a row of d+1 numbers for each of the o outputs.
	Cross []float64
	// Root is the upper triangular R with RᵀR = J, in row-major order.
	Root []float64
}

// Deviation stores in dst a draw from scale · N(0, J⁻¹).
func (a *Amplitudes) Deviation(dst []float64, scale float64, rng *rand.Rand) {
	for k := range dst {
		dst[k] = scale * rng.NormFloat64()
	}
	o := len(a.Mode)
	root := blas64.Triangular{N: o, Stride: o, Data: a.Root, Uplo: blas.Upper, Diag: blas.NonUnit}
	blas64.Trsv(blas.NoTrans, root, blas64.Vector{N: o, Data: dst, Inc: 1})
}

// Fields encodes or decodes the posterior for the given numbers of outputs and linear parameters.
func (a *Amplitudes) Fields(f *fields.Fields, outputs, linear int) {
	if f.Reads() {
		*a = Amplitudes{Mode: make([]float64, outputs),
			Cross: make([]float64, outputs*linear), Root: make([]float64, outputs*outputs)}
	}
	f.Vector(&a.Mode)
	f.Float(&a.Gain)
	f.Vector(&a.Cross, &a.Root)
	for k := range outputs {
		r := 1.0
		if f.Err() == nil {
			r = a.Root[k*outputs+k]
		}
		f.Check(r > 0, "the root of a precision is %v, and must be positive", r)
	}
}

// Amplitudes returns the posterior of the amplitudes for each unit θ. An entry is nil if the unit's J is not positive
// definite to the precision of a float64.
func (t *ScoreTest) Amplitudes(theta ...[]float64) []*Amplitudes {
	o, linear := len(t.gamma), len(t.linear.Mode)
	all := make([]*Amplitudes, len(theta))
	for i := range all {
		all[i] = &Amplitudes{Mode: make([]float64, o), Cross: make([]float64, o*linear), Root: make([]float64, o*o)}
	}
	for from, to := range t.tiles() {
		t.look(from, to)
		for i, a := range all {
			t.tile.add(a, t.m, theta[i])
		}
	}
	for i, a := range all {
		if !t.solve(a) {
			all[i] = nil
		}
	}
	return all
}

// add adds the tile's rounds to three sums: s in a.Mode, Cov(z, h) in a.Cross, and the lower triangle of Cov(h, h) in
// a.Root.
func (v *scoreTile) add(a *Amplitudes, m *utility.Additive, theta []float64) {
	n, o, rounds := len(v.p), len(a.Mode), len(v.end)
	linear := len(a.Cross) / o
	v.h, v.ph, v.means = scratch.Grow(v.h, o*n), scratch.Grow(v.ph, n), scratch.Grow(v.means, o*rounds)
	m.Unit(v.h, theta, v.psi)
	for k := range o {
		h, means, cross := v.h[k*n:][:n], v.means[k*rounds:][:rounds], a.Cross[k*linear:][:linear]
		a.Mode[k] += kernel.Dot(v.r, h)
		kernel.Gemv(cross, cross, v.z, h, linear, n)
		copy(v.ph, v.p)
		kernel.Mul(v.ph, h)
		lo := 0
		for s, hi := range v.end {
			means[s] = 0
			for _, ph := range v.ph[lo:hi] {
				means[s] += ph
			}
			means[s] *= v.root[s]
			lo = hi
		}
		for b := range k + 1 {
			a.Root[k*o+b] += kernel.Dot(v.ph, v.h[b*n:][:n]) - kernel.Dot(means, v.means[b*rounds:][:rounds])
		}
	}
}

// solve turns the sums over all rounds into the posterior. It returns false if J is not positive definite.
func (t *ScoreTest) solve(a *Amplitudes) bool {
	o := len(a.Mode)
	linear := len(a.Cross) / o
	floats.Scale(t.scale, a.Mode)
	floats.Scale(t.scale, a.Cross)
	for k := range o {
		for b := range k + 1 {
			j := float64(t.scale*a.Root[k*o+b]) - kernel.Dot(a.Cross[k*linear:][:linear], a.Cross[b*linear:][:linear])
			a.Root[k*o+b], a.Root[b*o+k] = 0, j
		}
		a.Root[k*o+k] += t.gamma[k]
		a.Gain += float64(portable.Log(t.gamma[k]) / 2)
	}
	root, ok := lapack64.Potrf(blas64.Symmetric{N: o, Stride: o, Data: a.Root, Uplo: blas.Upper})
	if !ok {
		return false
	}
	mode := blas64.Vector{N: o, Data: a.Mode, Inc: 1}
	blas64.Trsv(blas.Trans, root, mode)
	a.Gain += float64(kernel.Dot(a.Mode, a.Mode) / 2)
	blas64.Trsv(blas.NoTrans, root, mode)
	for k := range o {
		a.Gain -= portable.Log(a.Root[k*o+k])
	}
	return finite(a.Gain)
}

// Gain returns the gain of a unit θ with the amplitudes a, or −Inf if a is nil.
func (t *ScoreTest) Gain(a *Amplitudes, theta []float64) float64 {
	if a == nil {
		return math.Inf(-1)
	}
	gain := a.Gain
	for k, v := range theta {
		gain -= float64(t.theta[k] * v * v / 2)
	}
	return gain
}
