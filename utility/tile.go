package utility

import (
	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// tileRows is the number of items that pass through a network together: enough to amortise the loops over units, but
// few enough to fit in the L1 cache.
const tileRows = 128

// tile is a block of n items on its way through the layers of an [MLP]. Its matrices use one row per unit (the d
// features, then the hidden units) and one column per item. The inner loops run over items, so narrow layers are fast,
// too.
type tile struct {
	n     int
	value []float64 // x, then a(z)
	slope []float64 // a'(z), and ∂L/∂z after backward; nil if not needed
}

// rows returns count consecutive rows of a matrix of the tile.
func (t tile) rows(of []float64, first, count int) []float64 {
	return of[first*t.n : (first+count)*t.n]
}

// forward stores the values and slopes of t's items, starting at row first of x, in t, and their utilities in u.
func (m *MLP) forward(t tile, u, w []float64, x *mat.Dense, first int) {
	columns(t.value, x, first, first+t.n)
	for _, l := range m.layers {
		in := t.rows(t.value, l.input, l.in)
		if l.last {
			kernel.Combine(u[:t.n], w[l.bias], w[l.weight:], 1, in, l.in)
			break
		}
		for j := range l.out {
			z := t.rows(t.value, l.output()+j, 1)
			kernel.Combine(z, w[l.bias+j], w[l.weight+j*l.in:], 1, in, l.in)
		}
		var slope []float64
		if t.slope != nil {
			slope = t.rows(t.slope, l.output(), l.out)
		}
		m.activation.apply(t.rows(t.value, l.output(), l.out), slope)
	}
}

// backward turns the slopes of t into ∂L/∂z, given the cotangent ∂L/∂u. work holds a row of scratch.
func (m *MLP) backward(t tile, cotangent, w, work []float64) {
	delta := cotangent
	for i := len(m.layers) - 1; i > 0; i-- {
		l := m.layers[i]
		for k := range l.in {
			kernel.Combine(work[:t.n], 0, w[l.weight+k:], l.in, delta, l.out)
			kernel.Mul(t.rows(t.slope, l.input+k, 1), work[:t.n])
		}
		delta = t.rows(t.slope, l.input, l.in)
	}
}

// delta returns ∂L/∂z of l's output units. Call backward first.
func (t tile) delta(l layer, cotangent []float64) []float64 {
	if l.last {
		return cotangent
	}
	return t.rows(t.slope, l.output(), l.out)
}

// accumulate adds ∇_w L over the items of t to dst. Call backward first.
func (m *MLP) accumulate(dst []float64, t tile, cotangent []float64) {
	for _, l := range m.layers {
		delta := t.delta(l, cotangent)
		for j := range l.out {
			d := t.rows(delta, j, 1)
			dst[l.bias+j] += kernel.Sum(d)
			for k := range l.in {
				dst[l.weight+j*l.in+k] += kernel.Dot(d, t.rows(t.value, l.input+k, 1))
			}
		}
	}
}

// gradient returns two rows of a tile for each parameter of l. After backward with a cotangent of ones, their product
// is the derivative of f: with z the output of l and v its input,
//
//	∂f/∂W_jk = (∂f/∂z_j) v_k,  ∂f/∂b_j = (∂f/∂z_j) 1
//
// Rows count through the values first, then the slopes, then a row of ones.
func (m *MLP) gradient(l layer) (pairs []int32) {
	ones := 2 * m.units
	delta := func(j int) int32 {
		if l.last {
			return int32(ones)
		}
		return int32(m.units + l.output() + j)
	}
	for j := range l.out {
		for k := range l.in {
			pairs = append(pairs, delta(j), int32(l.input+k))
		}
	}
	for j := range l.out {
		pairs = append(pairs, delta(j), int32(ones))
	}
	return pairs
}
