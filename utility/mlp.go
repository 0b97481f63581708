package utility

import (
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// MLP is the family of multilayer perceptrons with scalar output,
//
//	f_w(x) = linear_{L+1}(a(linear_L(… a(linear_1(x)) …))),  linear_l(v) = W_l v + b_l
//
// where a is an [Activation] and L the number of hidden layers. With hidden widths h_1, …, h_L, h_0 = d and
// h_{L+1} = 1, the parameters form one flat vector in the order of PyTorch's linear1, linear2, …:
//
//	w = [W_1, b_1, W_2, b_2, …, W_{L+1}, b_{L+1}]
//
// W_l is an h_l×h_{l-1} matrix in row-major order, and b_l is a vector of length h_l. The paper's networks use one
// hidden layer of sigmoids.
type MLP struct {
	activation Activation
	layers     []layer
	units      int     // d + h_1 + … + h_L
	params     int     // d_w
	pairs      []int32 // row pairs of all layers as computed by gradient
	scratch    scratch
}

// layer is one linear_l and the positions of its input and parameters.
type layer struct {
	in, out int // h_{l-1} and h_l
	input   int // the first of its input units among all units
	weight  int // where W_l begins in w
	bias    int // where b_l begins in w
	last    bool
}

// output returns the first of the layer's output units among all units.
func (l layer) output() int { return l.input + l.in }

// NewMLP returns the perceptrons of d features with the given hidden widths, first to last, and activation. Without
// hidden layers, f is affine in x. NewMLP panics if d or a width is below 1, or if a is not one of the activations.
func NewMLP(d int, hidden []int, a Activation) *MLP {
	if d < 1 {
		panic(fmt.Sprintf("utility: MLP of %d features, want at least 1", d))
	}
	if a < 0 || int(a) >= len(activations) {
		panic(fmt.Sprintf("utility: MLP with unknown activation %d", int(a)))
	}
	m := &MLP{activation: a}
	in := d
	for l := range len(hidden) + 1 {
		out := 1
		if l < len(hidden) {
			out = hidden[l]
		}
		if out < 1 {
			panic(fmt.Sprintf("utility: MLP with hidden width %d, want at least 1", out))
		}
		m.layers = append(m.layers, layer{
			in: in, out: out, input: m.units,
			weight: m.params, bias: m.params + out*in, last: l == len(hidden),
		})
		m.units += in
		m.params += out * (in + 1)
		in = out
	}
	for _, l := range m.layers {
		m.pairs = append(m.pairs, m.gradient(l)...)
	}
	return m
}

// String returns the activation and the widths from d to 1, for example "sigmoid 3-15-1".
func (m *MLP) String() string {
	s := m.activation.String() + " "
	for _, l := range m.layers {
		s += fmt.Sprintf("%d-", l.in)
	}
	return s + "1"
}

// NumFeatures returns d.
func (m *MLP) NumFeatures() int { return m.layers[0].in }

// NumParams returns d_w = Σ_l h_l (h_{l-1} + 1).
func (m *MLP) NumParams() int { return m.params }

// Init draws the initial parameters of PyTorch's nn.Linear, in the order of w:
//
//	W_l, b_l ~ U(-1/√h_{l-1}, 1/√h_{l-1})
//
// It panics unless len(w) = d_w.
func (m *MLP) Init(w []float64, rng *rand.Rand) {
	checkParams(m, w)
	for _, l := range m.layers {
		initUniform(w[l.weight:l.bias+l.out], l.in, rng)
	}
}

// Utilities implements [Model].
func (m *MLP) Utilities(dst, w []float64, x *mat.Dense) {
	n := checkUtilities(m, dst, w, x)
	buf := m.scratch.get(m.units * min(n, tileRows))
	defer m.scratch.put(buf)
	for i := 0; i < n; i += tileRows {
		t := tile{n: min(tileRows, n-i), value: *buf}
		m.forward(t, dst[i:], w, x, i)
	}
}

// Gradients implements [Model].
func (m *MLP) Gradients(dst *mat.Dense, w []float64, x *mat.Dense) {
	m.linearize(nil, dst, w, x)
}

// Linearize implements [Linearizer].
func (m *MLP) Linearize(u []float64, g *mat.Dense, w []float64, x *mat.Dense) {
	checkUtilities(m, u, w, x)
	m.linearize(u, g, w, x)
}

// linearize implements Linearize and also accepts a nil u.
func (m *MLP) linearize(u []float64, g *mat.Dense, w []float64, x *mat.Dense) {
	n := checkGradients(m, g, w, x)
	block := (2*m.units + 1) * min(n, tileRows)
	buf := m.scratch.get(block + tileRows)
	defer m.scratch.put(buf)
	work := (*buf)[block:]
	raw := g.RawMatrix()
	for i := 0; i < n; i += tileRows {
		k := min(tileRows, n-i)
		// The row order is the one that m.pairs expects.
		rows := (*buf)[:(2*m.units+1)*k]
		t := tile{n: k, value: rows[:m.units*k], slope: rows[m.units*k : 2*m.units*k]}
		ones := rows[2*m.units*k:]
		for c := range ones {
			ones[c] = 1
		}
		out := work
		if u != nil {
			out = u[i:]
		}
		m.forward(t, out, w, x, i)
		m.backward(t, ones, w, work)
		kernel.MulPairs(raw.Data[i*raw.Stride:], raw.Stride, rows, k, m.pairs)
	}
}

// Backpropagate implements [Backpropagator].
func (m *MLP) Backpropagate(dst, w []float64, x *mat.Dense, loss func(cotangent, u []float64) float64) float64 {
	n := checkBackpropagate(m, dst, w, x)
	size := m.units * n
	buf := m.scratch.get(2*size + 2*n + tileRows)
	defer m.scratch.put(buf)
	value, slope := (*buf)[:size], (*buf)[size:2*size]
	u, cotangent, work := (*buf)[2*size:][:n], (*buf)[2*size+n:][:n], (*buf)[2*size+2*n:]

	tileAt := func(i int) tile {
		return tile{n: min(tileRows, n-i), value: value[i*m.units:], slope: slope[i*m.units:]}
	}
	for i := 0; i < n; i += tileRows {
		m.forward(tileAt(i), u[i:], w, x, i)
	}
	l := loss(cotangent, u)
	clear(dst)
	for i := 0; i < n; i += tileRows {
		t := tileAt(i)
		m.backward(t, cotangent[i:i+t.n], w, work)
		m.accumulate(dst, t, cotangent[i:i+t.n])
	}
	return l
}
