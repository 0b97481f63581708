package gram

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// Bound is a cheap upper bound on the norms of an [Inverse]. For a vector g it uses the length of g and its components
// along the m eigenvectors q_k of V⁻¹ with the smallest eigenvalues μ_k, which are the directions the learner knows
// best. With μ the largest eigenvalue,
//
//	‖g‖²_{V⁻¹} ≤ μ ‖g‖² − Σ_{k≤m} (d_kᵀg)²,  d_k = √(μ − μ_k) q_k
//
// The bound decreases with every component. Gradients lie mostly along a few well-explored directions, so little is
// left for the factor μ.
//
// It bounds the number computed by [Inverse.Norms], rounding included, for any g and any symmetric V⁻¹, definite or
// not. The eigenvectors are used as computed. The bound measures
//
//	R = V⁻¹ − QΛQᵀ   η = ‖QᵀQ − I‖_F
//
// and adds (‖R‖_F + ημ + ε‖V⁻¹‖_F)‖g‖², where ε = (d+16)² 2⁻⁵⁰ exceeds the sum of all rounding errors: from a quadratic
// form of order d, (d+2) 2⁻⁵² ‖V⁻¹‖_F ‖g‖²; from d squared components and from measuring R and η, no more than that
// each; and from ‖g‖² and d_kᵀg, with room for relative errors up to d 2⁻⁵¹.
//
// A rough bound, from [Inverse.Rough], weighs ‖g‖² by groups, and its directions are only along the last group.
type Bound struct {
	d     int
	top   float64   // the factor of ‖g‖²
	size  float64   // ‖V⁻¹‖_F
	q     []float64 // m×d, row k is d_k
	floor float64   // exceeds any loss by underflow

	glance []float64 // of a rough bound: the groups' weights, then q
}

// Bound returns the bound by at most m directions, in O(d³).
func (v Inverse) Bound(m int) *Bound {
	p := Unpack(nil, v.p, v.d)
	var eigen mat.EigenSym
	if !(mat.Norm(p, 2) < 1e150) || !eigen.Factorize(p, true) {
		return newBound(p, nil, nil, 0)
	}
	var q mat.Dense
	eigen.VectorsTo(&q)
	return newBound(p, eigen.Values(nil), &q, m)
}

// newBound returns the bound for V⁻¹ = p by at most m of the vectors in the columns of q, with values in increasing
// order. It holds for any values and vectors, and gets tighter the closer they are to the eigenvectors. q is nil if
// there are none.
func newBound(p *mat.SymDense, mu []float64, q *mat.Dense, m int) *Bound {
	d, size := p.SymmetricDim(), mat.Norm(p, 2)
	b := &Bound{d: d, top: math.Inf(1), size: size, floor: 1e-290 * (1 + size)}
	if !(size < 1e150) {
		return b
	}
	if q == nil {
		b.top = size * (1 + float64(rounding(d)))
		return b
	}
	var scaled, r, gram mat.Dense
	scaled.Apply(func(_, k int, e float64) float64 { return e * mu[k] }, q)
	r.Mul(&scaled, q.T())
	r.Sub(p, &r)
	gram.Mul(q.T(), q)
	for i := range d {
		gram.Set(i, i, gram.At(i, i)-1)
	}
	largest := max(mu[d-1], 0)
	b.top = largest + mat.Norm(&r, 2) + float64(mat.Norm(&gram, 2)*largest) + float64(rounding(d)*size)
	for k := 0; k < min(m, d) && mu[k] < largest; k++ {
		length := math.Sqrt(largest - mu[k])
		for i := range d {
			b.q = append(b.q, length*q.At(i, k))
		}
	}
	return b
}

// rounding returns ε.
func rounding(d int) float64 { return float64(d+16) * float64(d+16) * 0x1p-50 }

// Rough returns a bound that takes little to compute, by the lengths of groups of g's entries, and at most m directions
// for the last group, which consists of the last entries. group returns an entry's group. The bound takes
// Σ_j w_j ‖g_j‖² over the groups j in place of ‖g‖². It is without directions if rounding leaves no such bound.
//
// w_j is the largest entry on the group's diagonal of V⁻¹, so that a group counts little if V⁻¹ knows it well, but at
// least 2⁻²⁰‖V⁻¹‖_F. The last group's weight is the largest of all. P is V⁻¹ divided by √w on both sides, and μ is
// above its eigenvalues. With the Cholesky factorisation UᵀU = μI − P, and U's last block U_s, U_sᵀU_s ≼ μI − P as a
// form of the last group, with an error that ε covers. The directions are U_sᵀU_s's largest axes, and the bound measures
// their error.
func (v Inverse) Rough(group func(i int) int, m int) *Bound {
	d, s, p := v.d, 0, Unpack(nil, v.p, v.d)
	last, size := group(d-1), mat.Norm(p, 2)
	weights, b := make([]float64, last+1), &Bound{d: d, top: math.Inf(1), floor: 1e-290 * (1 + size)}
	if last == 0 || !(size > 1e-150 && size < 1e150) {
		return b
	}
	for i := range d {
		k := group(i)
		weights[k] = max(weights[k], p.At(i, i), size*0x1p-20)
		if k == last {
			s++
		}
	}
	b.size = size / slices.Min(weights)
	weights[last] = slices.Max(weights)
	for i := range d {
		for j := i; j < d; j++ {
			p.SetSym(i, j, p.At(i, j)/math.Sqrt(weights[group(i)]*weights[group(j)]))
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(p, false) {
		return b
	}
	top := float64(max(eigen.Values(nil)[d-1], 0) * (1 + 0x1p-7))
	p.ScaleSym(-1, p)
	for i := range d {
		p.SetSym(i, i, top+p.At(i, i))
	}
	var cholesky mat.Cholesky
	var u mat.TriDense
	var form, axes mat.Dense
	if !cholesky.Factorize(p) {
		return b
	}
	cholesky.UTo(&u)
	block := u.SliceTri(d-s, d)
	form.Mul(block.T(), block)
	rest := mat.NewSymDense(s, form.RawMatrix().Data)
	if !eigen.Factorize(rest, true) {
		return b
	}
	eigen.VectorsTo(&axes)
	values := eigen.Values(nil)
	for k := s - 1; k >= 0; k-- {
		axis := axes.ColView(k)
		rest.SymRankOne(rest, -max(values[k], 0), axis)
		for i := 0; i < s && s-k <= m; i++ {
			b.q = append(b.q, math.Sqrt(weights[last]*max(values[k], 0))*axis.AtVec(i))
		}
	}
	b.glance = append(weights, b.q...)
	b.d, b.top = s, top+mat.Norm(rest, 2)+float64(rounding(d)*b.size)
	return b
}

// Glance returns a rough bound's w_j, then its d_k, concatenated. They must not be changed.
func (b *Bound) Glance() []float64 { return b.glance }

// NumDirections returns m, at most the number requested.
func (b *Bound) NumDirections() int { return len(b.q) / b.d }

// Directions returns the d_k for from ≤ k < to, concatenated. They must not be changed.
func (b *Bound) Directions(from, to int) []float64 { return b.q[from*b.d : to*b.d] }

// Of returns the bound on ‖g‖²_{V⁻¹} for a vector with the given ‖g‖² and no known components, or +Inf if the norm may
// overflow.
func (b *Bound) Of(square float64) float64 {
	if !(b.size*square < 1e290) {
		return math.Inf(1)
	}
	return float64(b.top*square) + b.floor
}

// Sketches stores the bounds of n vectors, given ‖g_i‖² and the components along the first m directions: along[k·n+i]
// is the component of vector i along direction k.
func (b *Bound) Sketches(dst, square, along []float64) {
	n := len(dst)
	clear(dst)
	if n > 0 {
		kernel.AddSquares(dst, along, len(along)/n)
	}
	for i, v := range square {
		dst[i] = b.Of(v) - dst[i]
	}
}

// Less lowers the bounds of n vectors by their components along further directions, in the order of [Bound.Sketches].
func (b *Bound) Less(bounds, along []float64) {
	n := len(bounds)
	for ; len(along) > 0; along = along[n:] {
		for i, component := range along[:n] {
			bounds[i] -= float64(component * component)
		}
	}
}

// Tighten lowers the bounds of the n rows of the n×d matrix g by their components along the directions from ≤ k < to.
func (b *Bound) Tighten(bounds []float64, from, to int, g *mat.Dense) {
	var zeros, along [8]float64
	for i := range bounds {
		row, sum := g.RawRowView(i), 0.0
		for k := from; k < to; k += len(along) {
			n := min(len(along), to-k)
			kernel.Gemv(along[:], zeros[:], b.q[k*b.d:], row, n, b.d)
			for _, component := range along[:n] {
				sum += float64(component * component)
			}
		}
		bounds[i] -= sum
	}
}

// Norm returns a bound on ‖g‖_{V⁻¹} given a bound on its square. If that is not a number, the result is +Inf.
func Norm(bound float64) float64 {
	if math.IsNaN(bound) {
		return math.Inf(1)
	}
	return math.Sqrt(max(bound, 0))
}
