package utility

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// Sketcher is implemented by models that compute the norm of a gradient, and its components along a few directions,
// without forming the gradient. Bounds on ‖∇f‖_{V⁻¹} use it.
type Sketcher interface {
	// Sketch takes the N×d matrix x of items and, in the rows of q, m directions q_k of length d_w. It stores
	//
	//	u[i]         = f_w(x_i), as Utilities and Linearize store it, bit for bit
	//	square[i]    = ‖∇_w f_w(x_i)‖²
	//	along[k·N+i] = q_kᵀ ∇_w f_w(x_i)
	//
	// The errors of square and along are summation errors, O(d_w 2⁻⁵³) ‖∇f‖² and O(d_w 2⁻⁵³) ‖q_k‖ ‖∇f‖. Pass empty q
	// and along to skip directions. Sketch panics if a length is wrong, and does not allocate in steady state.
	Sketch(u, square, along, w, q []float64, x *mat.Dense)
}

// Sketch implements [Sketcher]. With δ_l = ∂f/∂z_l, z_l = W_l v_{l-1} + b_l, and a direction's weights Q_l, c_l:
//
//	‖∇f‖² = Σ_l ‖δ_l‖² (1 + ‖v_{l-1}‖²)      qᵀ∇f = Σ_l δ_lᵀ (Q_l v_{l-1} + c_l)
func (m *MLP) Sketch(u, square, along, w, q []float64, x *mat.Dense) {
	n := checkSketch(m, u, square, along, w, q, x)
	rows, directions := min(n, tileRows), len(q)/len(w)
	buf := m.scratch.get((2*m.units + 3 + directions) * rows)
	defer m.scratch.put(buf)
	rest := *buf
	row := func(count int) []float64 {
		part := rest[:count*rows]
		rest = rest[count*rows:]
		return part
	}
	value, slope, ones, work, more, forms := row(m.units), row(m.units), row(1), row(1), row(1), row(directions)
	for i := range ones {
		ones[i] = 1
	}
	for i := 0; i < n; i += tileRows {
		t := tile{n: min(tileRows, n-i), value: value, slope: slope}
		m.forward(t, u[i:], w, x, i)
		m.backward(t, ones, w, work)
		m.squares(square[i:i+t.n], t, ones[:t.n], work[:t.n], more[:t.n])
		forms := forms[:directions*t.n]
		m.along(forms, t, ones[:t.n], q)
		for k := range directions {
			copy(along[k*n+i:], forms[k*t.n:][:t.n])
		}
	}
}

// squares stores ‖∇_w f‖² in dst for each item of t. Call backward with a cotangent of ones first. in and out each hold
// a row of scratch.
func (m *MLP) squares(dst []float64, t tile, ones, in, out []float64) {
	clear(dst)
	for _, l := range m.layers {
		copy(in, ones)
		kernel.AddSquares(in, t.rows(t.value, l.input, l.in), l.in)
		clear(out)
		kernel.AddSquares(out, t.rows(t.delta(l, ones), 0, l.out), l.out)
		kernel.Mul(in, out)
		kernel.Axpy(dst, 1, in)
	}
}

// along stores qᵀ∇_w f for the items of t in dst, one row per direction of q. Call backward first.
func (m *MLP) along(dst []float64, t tile, cotangent, q []float64) {
	clear(dst)
	for _, l := range m.layers {
		in, delta := t.rows(t.value, l.input, l.in), t.delta(l, cotangent)
		if len(q) > 0 {
			kernel.Bilinear(dst, t.n, delta, l.out, in, l.in, q[l.weight:], l.bias-l.weight, m.NumParams())
		}
	}
}

// Sketch implements [Sketcher]. The gradients are x, or [x, 1] with an intercept.
func (m *Linear) Sketch(u, square, along, w, q []float64, x *mat.Dense) {
	n := checkSketch(m, u, square, along, w, q, x)
	one := 0.0
	if m.intercept {
		one = 1
	}
	buf := m.scratch.get(m.d * min(n, tileRows))
	defer m.scratch.put(buf)
	for i := 0; i < n; i += tileRows {
		to := min(i+tileRows, n)
		t := columns(*buf, x, i, to)
		m.combine(u[i:to], w, t)
		for j := range square[i:to] {
			square[i+j] = one
		}
		kernel.AddSquares(square[i:to], t, m.d)
		for k := 0; k*len(w) < len(q); k++ {
			m.combine(along[k*n+i:k*n+to], q[k*len(w):][:len(w)], t)
		}
	}
}

// checkSketch panics unless the lengths are as Sketch requires. It returns N.
func checkSketch(m Model, u, square, along, w, q []float64, x *mat.Dense) int {
	n := checkUtilities(m, u, w, x)
	if len(square) != n {
		panic(fmt.Sprintf("utility: %d squares for %d items", len(square), n))
	}
	if len(q)%len(w) != 0 {
		panic(fmt.Sprintf("utility: directions have %d entries, want a multiple of %d", len(q), len(w)))
	}
	if k := len(q) / len(w); len(along) != k*n {
		panic(fmt.Sprintf("utility: %d products of %d directions and %d items", len(along), k, n))
	}
	return n
}
