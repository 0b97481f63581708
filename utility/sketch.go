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

// Glancer is implemented by models with sketches that cost less, for bounds by groups of parameters.
type Glancer interface {
	Sketcher

	// Group returns the group of parameter i, from 0 on. If all are in group 0, there are no glances. The last group
	// consists of the last parameters.
	Group(i int) int

	// Glance stores u as Sketch does. q holds the groups' weights, then directions q_k for the last group, j:
	//
	//	square[i]    = Σ_j weight_j ‖∇_j f_w(x_i)‖²
	//	along[k·N+i] = q_kᵀ ∇_j f_w(x_i)
	//
	// with errors like Sketch's.
	Glance(u, square, along, w, q []float64, x *mat.Dense)
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

// Group implements [Glancer]. There are groups if there is one hidden layer: a unit's parameters, and the last layer's.
func (m *MLP) Group(i int) int {
	switch l := m.layers[0]; {
	case len(m.layers) != 2:
		return 0
	case i < l.bias:
		return i / l.in
	default:
		return min(i-l.bias, l.out)
	}
}

// Glance implements [Glancer]. With the last layer's weights v, the hidden layer's unit j counts for
// v_j² a'(z_j)² (1 + ‖x‖²), and the last layer for 1 + ‖a(z)‖².
func (m *MLP) Glance(u, square, along, w, q []float64, x *mat.Dense) {
	n, d, h := checkUtilities(m, u, w, x), m.layers[0].in, m.layers[1].in
	weights, q := q[:h+1], q[h+1:]
	rows, directions := min(n, tileRows), len(q)/(h+1)
	buf := m.scratch.get(h + (2*m.units+2+directions)*rows)
	defer m.scratch.put(buf)
	factors, rest := (*buf)[:h], (*buf)[h:]
	tiny := 0.0 // exceeds the loss if a'(z_j)² underflows
	for j, v := range w[m.layers[1].weight:][:h] {
		factors[j] = weights[j] * v * v
		tiny += float64(factors[j] * 1e-300)
	}
	for i := 0; i < n; i += tileRows {
		t := tile{n: min(tileRows, n-i), value: rest, slope: rest[m.units*rows:]}
		m.forward(t, u[i:], w, x, i)
		values, slopes := t.rows(t.value, d, h), t.rows(t.slope, d, h)
		more := rest[2*m.units*rows:]
		lengths, ones, forms, sum := more[:t.n], more[t.n:][:t.n], more[2*t.n:][:directions*t.n], square[i:][:t.n]
		kernel.Mul(slopes, slopes)
		kernel.Combine(sum, tiny, factors, 1, slopes, h)
		kernel.Combine(ones, 1, nil, 1, nil, 0)
		copy(lengths, ones)
		kernel.AddSquares(lengths, t.rows(t.value, 0, d), d)
		kernel.Mul(sum, lengths)
		copy(lengths, ones)
		kernel.AddSquares(lengths, values, h)
		kernel.Axpy(sum, weights[h], lengths)
		clear(forms)
		kernel.Bilinear(forms, t.n, ones, 1, values, h, q, h, h+1)
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
