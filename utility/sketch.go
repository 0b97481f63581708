package utility

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// Sketcher is implemented by models that know the size of a gradient, and what
// it is along a few directions, without forming it. Bounds of ‖∇f‖_{V⁻¹} rest
// on it.
type Sketcher interface {
	// Sketch stores, for the rows x_i of the N×d matrix x and the m directions
	// q_k, the rows of length d_w of q,
	//
	//	u[i]         = f_w(x_i), as Utilities and Linearize store it, bit for bit
	//	square[i]    = ‖∇_w f_w(x_i)‖²
	//	along[k·N+i] = q_kᵀ ∇_w f_w(x_i)
	//
	// The errors of square and along are those of summation,
	// O(d_w 2⁻⁵³) ‖∇f‖² and O(d_w 2⁻⁵³) ‖q_k‖ ‖∇f‖. Of no directions q and
	// along are empty. It panics where a length does not fit, and does not
	// allocate in steady state.
	Sketch(u, square, along, w, q []float64, x *mat.Dense)
}

// Sketch implements [Sketcher]. With δ_l = ∂f/∂z_l, z_l = W_l v_{l-1} + b_l, and
// the weights Q_l, c_l of a direction,
//
//	‖∇f‖² = Σ_l ‖δ_l‖² (1 + ‖v_{l-1}‖²)      qᵀ∇f = Σ_l δ_lᵀ (Q_l v_{l-1} + c_l)
func (m *MLP) Sketch(u, square, along, w, q []float64, x *mat.Dense) {
	n := checkSketch(m, u, square, along, w, q, x)
	size := m.units * min(n, tileRows)
	buf := m.scratch.get(2*size + 3*tileRows)
	defer m.scratch.put(buf)
	value, slope := (*buf)[:size], (*buf)[size:2*size]
	ones, work, more := (*buf)[2*size:][:tileRows], (*buf)[2*size+tileRows:][:tileRows], (*buf)[2*size+2*tileRows:]
	for i := range ones {
		ones[i] = 1
	}
	for i := 0; i < n; i += tileRows {
		t := tile{n: min(tileRows, n-i), value: value, slope: slope}
		m.forward(t, u[i:], w, x, i)
		m.backward(t, ones, w, work)
		m.squares(square[i:i+t.n], t, ones, work[:t.n], more[:t.n])
		for k := 0; k*len(w) < len(q); k++ {
			m.along(along[k*n+i:][:t.n], t, ones, q[k*len(w):][:len(w)], work[:t.n])
		}
	}
}

// squares stores ‖∇_w f‖² of each item of t in dst, after backward. in and out
// have room for a row.
func (m *MLP) squares(dst []float64, t tile, cotangent, in, out []float64) {
	clear(dst)
	for _, l := range m.layers {
		for i := range in {
			in[i] = 1
		}
		addSquares(in, t.rows(t.value, l.input, l.in))
		clear(out)
		addSquares(out, t.rows(t.delta(l, cotangent), 0, l.out))
		for i, v := range in {
			dst[i] += v * out[i]
		}
	}
}

// addSquares adds the squares of the rows of length len(dst) to dst.
func addSquares(dst, rows []float64) {
	for ; len(rows) > 0; rows = rows[len(dst):] {
		for i, v := range rows[:len(dst)] {
			dst[i] += v * v
		}
	}
}

// along stores qᵀ∇_w f of each item of t in dst, after backward. work has room
// for a row.
func (m *MLP) along(dst []float64, t tile, cotangent, q, work []float64) {
	clear(dst)
	for _, l := range m.layers {
		in, delta := t.rows(t.value, l.input, l.in), t.delta(l, cotangent)
		for j := range l.out {
			kernel.Combine(work, q[l.bias+j], q[l.weight+j*l.in:], 1, in, l.in)
			kernel.Mul(work, t.rows(delta, j, 1))
			kernel.Axpy(dst, 1, work)
		}
	}
}

// Sketch implements [Sketcher], of the gradients x, or [x, 1] with an intercept.
func (m *Linear) Sketch(u, square, along, w, q []float64, x *mat.Dense) {
	n := checkSketch(m, u, square, along, w, q, x)
	b, one := 0.0, 0.0
	if m.intercept {
		b, one = w[m.d], 1
	}
	theta, raw := w[:m.d], x.RawMatrix()
	for i := range u {
		row := raw.Data[i*raw.Stride:][:m.d]
		u[i] = kernel.Dot(theta, row) + b
		s0, s1 := one, 0.0
		for ; len(row) >= 2; row = row[2:] {
			s0 += row[0] * row[0]
			s1 += row[1] * row[1]
		}
		for _, v := range row {
			s0 += v * v
		}
		square[i] = s0 + s1
	}
	for k := 0; k*len(w) < len(q); k++ {
		q := q[k*len(w):][:len(w)]
		c := 0.0
		if m.intercept {
			c = q[m.d]
		}
		for i := range n {
			along[k*n+i] = kernel.Dot(q[:m.d], x.RawRowView(i)) + c
		}
	}
}

// checkSketch panics unless the lengths are those of Sketch, and returns N.
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
