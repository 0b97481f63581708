package utility

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"
)

// Sum is the family of sums of two functions of separate features,
//
//	f_w(x) = g_v(x_1, …, x_c) + h_u(x_{c+1}, …, x_d),   w = [v, u]
type Sum struct {
	g, h  Model
	views sync.Pool // of *views
}

// views is scratch: matrix views, and utilities of h.
type views struct {
	x, slopes mat.Dense
	u         []float64
}

// NewSum returns g on the first features plus h on the remaining ones.
func NewSum(g, h Model) *Sum { return &Sum{g: g, h: h} }

// Base returns g, the family on the first features.
func (m *Sum) Base() Model { return m.g }

// String returns both families.
func (m *Sum) String() string { return fmt.Sprintf("%v plus %v", m.g, m.h) }

// NumFeatures returns d.
func (m *Sum) NumFeatures() int { return m.g.NumFeatures() + m.h.NumFeatures() }

// NumParams returns d_w.
func (m *Sum) NumParams() int { return m.g.NumParams() + m.h.NumParams() }

// Init draws the parameters of g, then the parameters of h.
func (m *Sum) Init(w []float64, rng *rand.Rand) {
	checkParams(m, w)
	m.g.Init(w[:m.g.NumParams()], rng)
	m.h.Init(w[m.g.NumParams():], rng)
}

// Precisions implements [Prior].
func (m *Sum) Precisions(dst []float64) {
	checkParams(m, dst)
	Precisions(m.g, dst[:m.g.NumParams()])
	Precisions(m.h, dst[m.g.NumParams():])
}

// Utilities implements [Model].
func (m *Sum) Utilities(dst, w []float64, x *mat.Dense) {
	n := checkUtilities(m, dst, w, x)
	if n == 0 {
		return
	}
	v := m.get()
	defer m.views.Put(v)
	c, p := m.g.NumFeatures(), m.g.NumParams()
	view(&v.x, x, 0, c)
	m.g.Utilities(dst, w[:p], &v.x)
	view(&v.x, x, c, m.NumFeatures())
	v.u = slices.Grow(v.u[:0], n)[:n]
	m.h.Utilities(v.u, w[p:], &v.x)
	for i, u := range v.u {
		dst[i] += u
	}
}

// Gradients implements [Model].
func (m *Sum) Gradients(dst *mat.Dense, w []float64, x *mat.Dense) {
	if checkGradients(m, dst, w, x) == 0 {
		return
	}
	v := m.get()
	defer m.views.Put(v)
	c, p := m.g.NumFeatures(), m.g.NumParams()
	view(&v.x, x, 0, c)
	view(&v.slopes, dst, 0, p)
	m.g.Gradients(&v.slopes, w[:p], &v.x)
	view(&v.x, x, c, m.NumFeatures())
	view(&v.slopes, dst, p, m.NumParams())
	m.h.Gradients(&v.slopes, w[p:], &v.x)
}

// get returns scratch that the caller puts back into m.views.
func (m *Sum) get() *views {
	if v, ok := m.views.Get().(*views); ok {
		return v
	}
	return new(views)
}

// view makes dst a view of the columns [from, to) of x, which must not be empty.
func view(dst, x *mat.Dense, from, to int) {
	raw := x.RawMatrix()
	raw.Data, raw.Cols = raw.Data[from:], to-from
	dst.SetRawMatrix(raw)
}

// LinearSum is a [Sum] of families that are linear in their parameters.
type LinearSum struct{ *Sum }

// NewLinearSum returns g on the first features plus h on the remaining ones.
func NewLinearSum(g, h LinearInParams) LinearSum { return LinearSum{NewSum(g, h)} }

// LinearInParams implements [LinearInParams].
func (LinearSum) LinearInParams() {}
