package utility

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// Additive is a linear utility plus units, each a function of one projection:
//
//	f_w(x) = aᵀx + b + Σ_k γ_kᵀ h(θ_kᵀψ(x))
//
// At γ = 0 it reduces to the linear family. A unit reads the inputs ψ(x) and returns the outputs h; [NewWide],
// [NewSpectral] and [NewRadial] define both. The parameters are
//
//	w = [a, b, γ_1, …, γ_m, θ_1, …, θ_m]
type Additive struct {
	d, units int
	unit     unit
	pairs    []int32 // row pairs as computed by gradient
	scratch  scratch
}

// unit defines the units of an [Additive].
type unit interface {
	name() string
	// outputs returns the length of h and γ_k.
	outputs() int
	// inputs returns the range of rows of ‖x‖², x_1, …, x_d, 1 that form ψ.
	inputs(d int) (first, count int)
	// apply replaces z = θᵀψ, in the first row of h, by the outputs, one row of n numbers each.
	apply(h []float64, n int)
	// slope stores ∂f/∂z = γᵀh'(z) in dst, given h.
	slope(dst, h, gamma []float64)
	// precisions stores the prior precisions of γ_k and θ_k for a family of m units.
	precisions(gamma, theta []float64, m int)
}

func newAdditive(d, units int, u unit) *Additive {
	if d < 1 || units < 1 {
		panic(fmt.Sprintf("utility: %d %s units of %d features, want at least 1 of both", units, u.name(), d))
	}
	m := &Additive{d: d, units: units, unit: u}
	m.pairs = m.gradient()
	return m
}

// String returns the unit's name, d and the number of units, for example "wide 3-4".
func (m *Additive) String() string { return fmt.Sprintf("%s %d-%d", m.unit.name(), m.d, m.units) }

// NumFeatures returns d.
func (m *Additive) NumFeatures() int { return m.d }

// NumParams returns d_w.
func (m *Additive) NumParams() int { return m.Linear() + m.units*(m.Outputs()+m.Inputs()) }

// Linear returns d+1, the number of parameters of the linear part.
func (m *Additive) Linear() int { return m.d + 1 }

// Units returns m, the number of units.
func (m *Additive) Units() int { return m.units }

// Extends reports whether m has the units of o and one more.
func (m *Additive) Extends(o *Additive) bool {
	return m.unit.name() == o.unit.name() && m.d == o.d && m.units == o.units+1
}

// Outputs returns the length of h, and of the γ of a unit.
func (m *Additive) Outputs() int { return m.unit.outputs() }

// Inputs returns the length of ψ, which is also the length of a unit's θ.
func (m *Additive) Inputs() int {
	_, count := m.unit.inputs(m.d)
	return count
}

// Gamma returns γ_k as a slice of w.
func (m *Additive) Gamma(w []float64, k int) []float64 {
	o := m.Outputs()
	return w[m.Linear()+k*o:][:o:o]
}

// Theta returns θ_k as a slice of w.
func (m *Additive) Theta(w []float64, k int) []float64 {
	i := m.Inputs()
	return w[m.Linear()+m.units*m.Outputs()+k*i:][:i:i]
}

// Direction returns the feature coefficients of unit θ as a slice of theta.
func (m *Additive) Direction(theta []float64) []float64 {
	first, _ := m.unit.inputs(m.d)
	return theta[1-first:][:m.d:m.d]
}

// CopyLinear copies a linear fit into w. The fit, from, holds a, b and then the parameters of features outside m.
// CopyLinear sets a and b in w, and stores the other features' parameters after m's own. from may share storage with w.
func (m *Additive) CopyLinear(w, from []float64) {
	copy(w[m.NumParams():], from[m.Linear():])
	copy(w, from[:m.Linear()])
}

// Precisions implements [Prior].
func (m *Additive) Precisions(dst []float64) {
	checkParams(m, dst)
	linearPrecisions(dst[:m.Linear()], m.d)
	for k := range m.units {
		m.unit.precisions(m.Gamma(dst, k), m.Theta(dst, k), m.units)
	}
}

// Init draws the units' parameters with 0.7 of the prior's standard deviation, and sets a and b to 0. It panics unless
// len(w) = d_w.
func (m *Additive) Init(w []float64, rng *rand.Rand) {
	m.Precisions(w)
	for j, p := range w {
		w[j] = 0
		if j >= m.Linear() {
			w[j] = 0.7 * rng.NormFloat64() / math.Sqrt(p)
		}
	}
}

// A tile's rows are ‖x‖², the features, ones, the units' outputs and then their slopes. The ones follow the features so
// that aᵀx + b + γᵀh is a combination of consecutive rows.
func (m *Additive) rowOutput(k int) int { return 2 + m.d + k*m.Outputs() }
func (m *Additive) rowSlope(k int) int  { return m.rowOutput(m.units) + k }
func (m *Additive) numRows() int        { return m.rowSlope(m.units) }

// gradient returns two rows for each parameter. Their product is the derivative of f in that parameter.
func (m *Additive) gradient() (pairs []int32) {
	ones := int32(1 + m.d)
	for j := range m.Linear() {
		pairs = append(pairs, int32(1+j), ones)
	}
	for j := range m.units * m.Outputs() {
		pairs = append(pairs, int32(m.rowOutput(0)+j), ones)
	}
	first, count := m.unit.inputs(m.d)
	for k := range m.units {
		for j := range count {
			pairs = append(pairs, int32(m.rowSlope(k)), int32(first+j))
		}
	}
	return pairs
}

// inputs stores ‖x‖², x and 1 in the first rows, for the n items starting at row from of x.
func (m *Additive) inputs(rows []float64, n int, x *mat.Dense, from int) {
	radius := rows[:n]
	raw := x.RawMatrix()
	kernel.Columns(rows[n:][:m.d*n], raw.Data[from*raw.Stride:], raw.Stride, n, m.d)
	if first, _ := m.unit.inputs(m.d); first == 0 {
		clear(radius)
		for j := range m.d {
			for i, v := range rows[(1+j)*n:][:n] {
				radius[i] += float64(v * v)
			}
		}
	}
	ones := rows[(1+m.d)*n:][:n]
	for i := range ones {
		ones[i] = 1
	}
}

// forward stores the units' outputs for n items in their rows, and the utilities in u. Call inputs first.
func (m *Additive) forward(u, rows []float64, n int, w []float64) {
	m.outputs(rows, n, w)
	kernel.Combine(u[:n], 0, w, 1, rows[n:], m.Linear()+m.units*m.Outputs())
}

// outputs stores the units' outputs for n items in their rows. Call inputs first.
func (m *Additive) outputs(rows []float64, n int, w []float64) {
	first, count := m.unit.inputs(m.d)
	for k := range m.units {
		h := rows[m.rowOutput(k)*n:][:m.Outputs()*n]
		kernel.Combine(h[:n], 0, m.Theta(w, k), 1, rows[first*n:], count)
		m.unit.apply(h, n)
	}
}

// slopes stores the units' slopes in their rows. Call forward first.
func (m *Additive) slopes(rows []float64, n int, w []float64) {
	for k := range m.units {
		m.unit.slope(rows[m.rowSlope(k)*n:][:n], rows[m.rowOutput(k)*n:], m.Gamma(w, k))
	}
}

// Utilities implements [Model].
func (m *Additive) Utilities(dst, w []float64, x *mat.Dense) {
	n := checkUtilities(m, dst, w, x)
	buf := m.scratch.get(m.rowSlope(0) * min(n, tileRows))
	defer m.scratch.put(buf)
	for i := 0; i < n; i += tileRows {
		k := min(tileRows, n-i)
		m.inputs(*buf, k, x, i)
		m.forward(dst[i:], *buf, k, w)
	}
}

// ColumnUtilities stores f_w(x_i) in dst[i] for all items. It panics unless w and c fit the family and dst the items.
func (m *Additive) ColumnUtilities(dst, w []float64, c *Columns) {
	checkColumns(m, dst, w, c)
	m.forward(dst, m.rows(c), c.n, w)
}

// ColumnLinearize implements [Columnar].
func (m *Additive) ColumnLinearize(u, g, w []float64, c *Columns) {
	checkColumnGradients(m, u, g, w, c)
	rows := m.rows(c)
	m.forward(u, rows, c.n, w)
	m.slopes(rows, c.n, w)
	affine := m.Linear() + m.units*m.Outputs()
	copy(g, rows[c.n:][:affine*c.n])
	first, count := m.unit.inputs(m.d)
	for k := range m.units {
		theta := g[(affine+k*count)*c.n:][:count*c.n]
		copy(theta, rows[first*c.n:])
		for j := range count {
			kernel.Mul(theta[j*c.n:][:c.n], rows[m.rowSlope(k)*c.n:][:c.n])
		}
	}
}

// rows returns a tile that covers all items of c, including ‖x‖² if the units need it.
func (m *Additive) rows(c *Columns) []float64 {
	first, _ := m.unit.inputs(m.d)
	return c.with(m.numRows()-m.rowOutput(0), first == 0)
}

// Gradients implements [Model].
func (m *Additive) Gradients(dst *mat.Dense, w []float64, x *mat.Dense) {
	m.linearize(nil, dst, w, x)
}

// Linearize implements [Linearizer].
func (m *Additive) Linearize(u []float64, g *mat.Dense, w []float64, x *mat.Dense) {
	checkUtilities(m, u, w, x)
	m.linearize(u, g, w, x)
}

// linearize implements Linearize and also accepts a nil u.
func (m *Additive) linearize(u []float64, g *mat.Dense, w []float64, x *mat.Dense) {
	n := checkGradients(m, g, w, x)
	buf := m.scratch.get((m.numRows() + 1) * min(n, tileRows))
	defer m.scratch.put(buf)
	raw := g.RawMatrix()
	for i := 0; i < n; i += tileRows {
		k := min(tileRows, n-i)
		rows := (*buf)[:m.numRows()*k]
		out := (*buf)[len(rows):]
		if u != nil {
			out = u[i:]
		}
		m.inputs(rows, k, x, i)
		m.forward(out, rows, k, w)
		m.slopes(rows, k, w)
		kernel.MulPairs(raw.Data[i*raw.Stride:], raw.Stride, rows, k, m.pairs)
	}
}

// Backpropagate implements [Backpropagator].
func (m *Additive) Backpropagate(dst, w []float64, x *mat.Dense, loss func(cotangent, u []float64) float64) float64 {
	n := checkBackpropagate(m, dst, w, x)
	size := m.numRows()
	buf := m.scratch.get((size + 2) * n)
	defer m.scratch.put(buf)
	u, cotangent := (*buf)[size*n:][:n], (*buf)[(size+1)*n:][:n]
	for i := 0; i < n; i += tileRows {
		k := min(tileRows, n-i)
		rows := (*buf)[i*size:]
		m.inputs(rows, k, x, i)
		m.forward(u[i:], rows, k, w)
	}
	l := loss(cotangent, u)
	clear(dst)
	first, count := m.unit.inputs(m.d)
	for i := 0; i < n; i += tileRows {
		k := min(tileRows, n-i)
		rows, c := (*buf)[i*size:], cotangent[i:][:k]
		for j := range m.Linear() + m.units*m.Outputs() {
			dst[j] += kernel.Dot(c, rows[(1+j)*k:][:k])
		}
		m.slopes(rows, k, w)
		for unit := range m.units {
			slope, theta := rows[m.rowSlope(unit)*k:][:k], m.Theta(dst, unit)
			kernel.Mul(slope, c)
			for j := range count {
				theta[j] += kernel.Dot(slope, rows[(first+j)*k:][:k])
			}
		}
	}
	return l
}

// Psi returns a unit's inputs ψ(x_i) for the items x, as an Inputs()×n matrix in row-major order. It aliases buffer,
// which must hold (2+d) n elements.
func (m *Additive) Psi(buffer []float64, x *mat.Dense) []float64 {
	n, _ := x.Dims()
	m.inputs(buffer, n, x, 0)
	first, count := m.unit.inputs(m.d)
	return buffer[first*n:][:count*n]
}

// Unit stores a unit's outputs h(θᵀψ) in dst, an Outputs()×n matrix in row-major order, for the n items with inputs
// psi.
func (m *Additive) Unit(dst, theta, psi []float64) {
	n := len(psi) / len(theta)
	kernel.Combine(dst[:n], 0, theta, 1, psi, len(theta))
	m.unit.apply(dst, n)
}
