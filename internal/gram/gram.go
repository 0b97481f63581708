// Package gram keeps the Gram matrix of an optimistic learner,
//
//	V = λI + Σ_s c_s g_s g_sᵀ,
//
// together with its inverse, which the confidence widths ‖g‖_{V⁻¹} need in every round.
package gram

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/fields"
	"vitrine/internal/kernel"
)

// refreshAfter is the number of updates after which V⁻¹ is recomputed from V. In float64 and with λ ≥ 1,
// Sherman–Morrison loses a relative accuracy of about 1e-11 in 20 000 updates, so only learners that never stop need
// this.
const refreshAfter = 1 << 14

// largeUpdate is the value of c gᵀV⁻¹g from which V⁻¹ is recomputed from V. The formula of Sherman and Morrison then
// subtracts nearly all of V⁻¹ along g, and multiplies the relative rounding error there by that value.
const largeUpdate = 1e6

// Matrix is a symmetric positive definite d×d matrix and its inverse.
type Matrix struct {
	d       int
	v       []float64 // V, packed upper triangle
	inv     Inverse
	updates int       // since V⁻¹ was last recomputed from V
	tmp     []float64 // d
}

// New returns λI of order d. It panics unless d ≥ 1 and λ > 0.
func New(d int, lambda float64) *Matrix {
	if d < 1 || !(lambda > 0) {
		panic(fmt.Sprintf("gram: New(%d, %v) needs d ≥ 1 and λ > 0", d, lambda))
	}
	n := kernel.PackedLen(d)
	m := &Matrix{d: d, v: make([]float64, n), inv: Inverse{d: d, p: make([]float64, n)}, tmp: make([]float64, d)}
	m.Reset(lambda)
	return m
}

// NewDiagonal returns the diagonal matrix of the numbers p, which must be positive.
func NewDiagonal(p []float64) *Matrix {
	m := New(len(p), 1)
	k := 0
	for i, v := range p {
		m.v[k], m.inv.p[k] = v, 1/v
		k += m.d - i
	}
	return m
}

// Extended returns the matrix with additional rows and columns, which are 0 except for p on the diagonal. p must be
// positive.
func (m *Matrix) Extended(p []float64) *Matrix {
	n := NewDiagonal(append(slices.Repeat([]float64{1}, m.d), p...))
	n.updates = m.updates
	from, to := 0, 0
	for i := range m.d {
		copy(n.v[to:], m.v[from:from+m.d-i])
		copy(n.inv.p[to:], m.inv.p[from:from+m.d-i])
		from, to = from+m.d-i, to+n.d-i
	}
	return n
}

// Reset sets the matrix to λI.
func (m *Matrix) Reset(lambda float64) {
	clear(m.v)
	clear(m.inv.p)
	for i, k := 0, 0; i < m.d; i++ {
		m.v[k], m.inv.p[k] = lambda, 1/lambda
		k += m.d - i
	}
	m.updates = 0
}

// Add adds c g gᵀ, c ≥ 0, to V and updates the inverse by the formula of Sherman and Morrison (1950), in O(d²):
//
//	V⁻¹ ← V⁻¹ − c (V⁻¹g)(V⁻¹g)ᵀ / (1 + c gᵀV⁻¹g)
//
// After a large update, it recomputes the inverse from V in O(d³) instead.
func (m *Matrix) Add(c float64, g []float64) {
	if c == 0 {
		return
	}
	kernel.SymRankOne(m.v, c, g)
	kernel.SymMulVec(m.tmp, m.inv.p, g)
	q := kernel.Dot(g, m.tmp)
	kernel.SymRankOne(m.inv.p, -c/(1+float64(c*q)), m.tmp)
	if m.updates++; m.updates >= refreshAfter || c*q > largeUpdate {
		m.refresh()
	}
}

// Set sets V to the matrix with the packed upper triangle p and computes its inverse. If p is not positive definite,
// Set returns an error and leaves m unchanged.
func (m *Matrix) Set(p []float64) error {
	inv, err := inverse(Unpack(nil, p, m.d))
	if err != nil {
		return err
	}
	copy(m.v, p)
	Pack(m.inv.p, inv)
	m.updates = 0
	return nil
}

// CopyFrom makes m an independent copy of o, which must be of the same order.
func (m *Matrix) CopyFrom(o *Matrix) {
	copy(m.v, o.v)
	copy(m.inv.p, o.inv.p)
	m.updates = o.updates
}

// Sym stores V in dst and returns it. It allocates if dst is nil.
func (m *Matrix) Sym(dst *mat.SymDense) *mat.SymDense { return Unpack(dst, m.v, m.d) }

// Packed returns the upper triangle of V, row after row. It must not be changed, and changes with V.
func (m *Matrix) Packed() []float64 { return m.v }

// Trace returns the sum of V's diagonal.
func (m *Matrix) Trace() float64 { return trace(m.v, m.d) }

// Solve stores V⁻¹ g in dst.
func (m *Matrix) Solve(dst, g []float64) { kernel.SymMulVec(dst, m.inv.p, g) }

// Inverse returns a copy of V⁻¹, independent of later updates.
func (m *Matrix) Inverse() Inverse {
	return Inverse{d: m.d, p: append([]float64(nil), m.inv.p...)}
}

// Fields encodes or decodes the matrix. When decoding, m must already be of the same order.
func (m *Matrix) Fields(f *fields.Fields) {
	f.Count(&m.updates)
	f.Vector(&m.v, &m.inv.p)
}

// refresh recomputes V⁻¹ from V. If rounding has made V indefinite, the old inverse stays.
func (m *Matrix) refresh() {
	m.updates = 0
	if inv, err := inverse(m.Sym(nil)); err == nil {
		Pack(m.inv.p, inv)
	}
}

// Inverse is a frozen V⁻¹, the part of a Gram matrix that a policy needs.
type Inverse struct {
	d int
	p []float64 // packed upper triangle
}

// NewInverse returns an inverse equal to s. Its norms require s to be only positive semi-definite.
func NewInverse(s *mat.SymDense) Inverse { return Inverse{d: s.SymmetricDim(), p: Pack(nil, s)} }

// At returns an entry of V⁻¹.
func (v Inverse) At(i, j int) float64 {
	if i > j {
		i, j = j, i
	}
	return v.p[kernel.PackedLen(v.d)-kernel.PackedLen(v.d-i)+j-i]
}

// Trace returns the sum of the diagonal of V⁻¹.
func (v Inverse) Trace() float64 { return trace(v.p, v.d) }

// trace returns the sum of the diagonal of a packed upper triangle.
func trace(p []float64, d int) (sum float64) {
	for k := 0; d > 0; d-- {
		sum += p[k]
		k += d
	}
	return sum
}

// Norms stores ‖g_i‖_{V⁻¹} = √(g_iᵀ V⁻¹ g_i) in dst[i] for every row g_i of the N×d matrix g.
func (v Inverse) Norms(dst []float64, g *mat.Dense) {
	raw := g.RawMatrix()
	if raw.Cols != v.d || raw.Stride != v.d || len(dst) != raw.Rows {
		panic("gram: Norms needs a contiguous N×d matrix and a destination of length N")
	}
	kernel.SymQuadForms(dst, v.p, raw.Data, raw.Rows, v.d)
	for i, q := range dst {
		dst[i] = math.Sqrt(max(q, 0))
	}
}

// Cholesky returns the lower triangular L with LLᵀ = V⁻¹. For a standard normal ξ, the covariance of Lξ is V⁻¹.
func (v Inverse) Cholesky() (*mat.TriDense, error) {
	var c mat.Cholesky
	if !c.Factorize(Unpack(nil, v.p, v.d)) {
		return nil, fmt.Errorf("gram: the inverse of order %d is not positive definite", v.d)
	}
	var l mat.TriDense
	c.LTo(&l)
	return &l, nil
}

func inverse(v *mat.SymDense) (*mat.SymDense, error) {
	var c mat.Cholesky
	if !c.Factorize(v) {
		return nil, fmt.Errorf("gram: the matrix of order %d is not positive definite", v.SymmetricDim())
	}
	var inv mat.SymDense
	if err := c.InverseTo(&inv); err != nil {
		return nil, fmt.Errorf("gram: inverse of order %d: %w", v.SymmetricDim(), err)
	}
	return &inv, nil
}

// Pack stores the upper triangle of s, row after row, in dst and returns it. It allocates if dst is nil.
func Pack(dst []float64, s *mat.SymDense) []float64 {
	raw := s.RawSymmetric()
	if dst == nil {
		dst = make([]float64, kernel.PackedLen(raw.N))
	}
	to := dst
	for i := range raw.N {
		to = to[copy(to, raw.Data[i*raw.Stride+i:i*raw.Stride+raw.N]):]
	}
	return dst
}

// Unpack stores in dst the symmetric matrix of order d with the packed upper triangle p, and returns it. It allocates
// if dst is nil.
func Unpack(dst *mat.SymDense, p []float64, d int) *mat.SymDense {
	if dst == nil {
		dst = mat.NewSymDense(d, nil)
	}
	upper := dst.RawSymmetric()
	for i := range d {
		p = p[copy(upper.Data[i*upper.Stride+i:i*upper.Stride+d], p):]
	}
	return dst
}
