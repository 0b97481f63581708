package bandit

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/scratch"
	"vitrine/internal/state"
)

// wideLine is the posterior of a linear utility of many features, most of which are indicators,
// with a block for the numeric features and the intercept, and a diagonal for the indicators,
//
//	u = θᵀz + b + Σ_j φ_j x_j,   (θ, b) ~ N(0, P⁻¹),  φ_j ~ N(0, σ²)
//
// where z are the standardised numeric features. A round is a step of the extended Kalman filter
// whose precision is then projected on the block and the diagonal:
//
//	w' = w − (H + XᵀWX)⁻¹Xᵀ(p − y) = w − H⁻¹Xᵀ(I + WS)⁻¹(p − y),  S = XH⁻¹Xᵀ,  W = diag(p) − ppᵀ
//
// It is kept as the information of the rounds, G = H − P, and r = Hw. Both are independent of
// the prior, so that σ can be learned and the standardisation can change.
type wideLine struct {
	numeric []int // columns
	z       standardisation
	effect  []float64     // the information of the indicators, 0 for numeric columns
	pull    []float64     // r of the indicators
	block   *mat.SymDense // the information of (θ, b)
	natural []float64     // r of (θ, b)
	spread  float64       // σ

	mean  []float64 // of (θ, b)
	chol  mat.Cholesky
	sides []bool // whether a column is numeric
}

// Standard deviations of the prior of standardised slopes, of the intercept, and of indicators
// before their evidence.
const (
	wideSlopeSD     = 0.5
	wideInterceptSD = 2
	wideEffectSD    = 0.5
)

func newWideLine(d int, numeric []int) *wideLine {
	n := len(numeric) + 1
	l := &wideLine{
		numeric: numeric, effect: make([]float64, d), pull: make([]float64, d),
		block: mat.NewSymDense(n, nil), natural: make([]float64, n), mean: make([]float64, n),
		spread: wideEffectSD, sides: make([]bool, d),
	}
	for _, j := range numeric {
		l.sides[j] = true
	}
	l.solve()
	return l
}

// precision returns the diagonal of the prior of (θ, b) at j.
func (l *wideLine) precision(j int) float64 {
	if j == len(l.numeric) {
		return 1.0 / (wideInterceptSD * wideInterceptSD)
	}
	return 1 / (wideSlopeSD * wideSlopeSD)
}

// solve makes mean the solution of (G + P) w = r.
func (l *wideLine) solve() {
	n := len(l.mean)
	h := mat.NewSymDense(n, nil)
	h.CopySym(l.block)
	for j := range n {
		h.SetSym(j, j, h.At(j, j)+l.precision(j))
	}
	if l.chol.Factorize(h) {
		_ = l.chol.SolveVecTo(mat.NewVecDense(n, l.mean), mat.NewVecDense(n, l.natural))
	}
}

// variance and mode return those of the indicator j.
func (l *wideLine) variance(j int) float64 { return 1 / (l.effect[j] + 1/(l.spread*l.spread)) }
func (l *wideLine) mode(j int) float64     { return float64(l.pull[j] * l.variance(j)) }

// indicators are those of some items that are not 0, row after row.
type indicators struct {
	end      []int // one past the last of each row
	at       []int // the index in distinct of each
	value    []float64
	distinct []int // columns
	index    []int // of each column in distinct, plus 1; all 0 between scans
}

// scan reads the indicators of x.
func (s *indicators) scan(l *wideLine, x *mat.Dense) {
	n, d := x.Dims()
	s.end, s.at, s.value, s.distinct = s.end[:0], s.at[:0], s.value[:0], s.distinct[:0]
	if len(s.index) < d {
		s.index = make([]int, d)
	}
	for i := range n {
		for j, v := range x.RawRowView(i) {
			if v == 0 || l.sides[j] {
				continue
			}
			if s.index[j] == 0 {
				s.distinct = append(s.distinct, j)
				s.index[j] = len(s.distinct)
			}
			s.at, s.value = append(s.at, s.index[j]-1), append(s.value, v)
		}
		s.end = append(s.end, len(s.at))
	}
	for _, j := range s.distinct {
		s.index[j] = 0
	}
}

// row returns the indices in distinct and the values of an item.
func (s *indicators) row(i int) (at []int, value []float64) {
	from := 0
	if i > 0 {
		from = s.end[i-1]
	}
	return s.at[from:s.end[i]], s.value[from:s.end[i]]
}

// modes stores the modes of the distinct columns in dst, which grows.
func (s *indicators) modes(dst []float64, l *wideLine) []float64 {
	dst = scratch.Grow(dst, len(s.distinct))
	for k, j := range s.distinct {
		dst[k] = l.mode(j)
	}
	return dst
}

// sum returns Σ_j φ_j x_ij of an item, for effects of the distinct columns.
func (s *indicators) sum(i int, effect []float64) float64 {
	total := 0.0
	at, value := s.row(i)
	for k, a := range at {
		total += float64(effect[a] * value[k])
	}
	return total
}

// dense returns the standardised numeric features of a row, and 1.
func (l *wideLine) dense(row []float64) []float64 {
	z := make([]float64, len(l.numeric)+1)
	for k, j := range l.numeric {
		z[k] = (row[j] - l.z.shift[k]) / l.z.scale[k]
	}
	z[len(l.numeric)] = 1
	return z
}

// learn moves the posterior by a round in which the rows x were offered.
func (l *wideLine) learn(x *mat.Dense, y vitrine.Choice) {
	n, _ := x.Dims()
	var rows indicators
	rows.scan(l, x)
	effect := rows.modes(nil, l)
	z := make([][]float64, n)
	u, p := make([]float64, n), make([]float64, n+1)
	for i := range n {
		z[i] = l.dense(x.RawRowView(i))
		u[i] = rows.sum(i, effect)
		for k, v := range z[i] {
			u[i] += float64(v * l.mean[k])
		}
	}
	vitrine.Probabilities(p, u)
	p = p[1:]

	s := l.covariance(z, &rows)
	// (I + WS) a = p − y
	system, residual := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
	for i := range n {
		residual.SetVec(i, p[i])
		for j := range n {
			sum := float64(p[i] * s.At(i, j))
			for k := range n {
				sum -= float64(p[i] * p[k] * s.At(k, j))
			}
			if i == j {
				sum++
			}
			system.Set(i, j, sum)
		}
	}
	if y != vitrine.Outside {
		residual.SetVec(int(y)-1, residual.AtVec(int(y)-1)-1)
	}
	var a mat.VecDense
	if err := a.SolveVec(system, residual); err != nil || math.IsNaN(mat.Sum(&a)) || math.IsInf(mat.Sum(&a), 0) {
		return
	}
	l.step(z, &rows, effect, p, &a)
}

// covariance returns S = XH⁻¹Xᵀ.
func (l *wideLine) covariance(z [][]float64, rows *indicators) *mat.SymDense {
	n := len(z)
	s := mat.NewSymDense(n, nil)
	spread := make([]float64, len(rows.distinct)) // of row i, by distinct column
	for i := range n {
		var solved mat.VecDense
		_ = l.chol.SolveVecTo(&solved, mat.NewVecDense(len(z[i]), z[i]))
		at, value := rows.row(i)
		for k, a := range at {
			spread[a] = value[k] * l.variance(rows.distinct[a])
		}
		for j := i; j < n; j++ {
			s.SetSym(i, j, mat.Dot(&solved, mat.NewVecDense(len(z[j]), z[j]))+rows.sum(j, spread))
		}
		for _, a := range at {
			spread[a] = 0
		}
	}
	return s
}

// step moves the means by −H⁻¹Xᵀa, and adds the information of the round. effect has the modes of the
// distinct indicators.
func (l *wideLine) step(z [][]float64, rows *indicators, effect, p []float64, a *mat.VecDense) {
	n := len(l.mean)
	pull, average := make([]float64, n), make([]float64, n)
	first, second := make([]float64, len(effect)), make([]float64, len(effect))
	for i := range z {
		for k, v := range z[i] {
			pull[k] += float64(v * a.AtVec(i))
			average[k] += float64(p[i] * v)
		}
		at, value := rows.row(i)
		for k, c := range at {
			effect[c] -= float64(l.variance(rows.distinct[c]) * value[k] * a.AtVec(i))
			first[c] += float64(p[i] * value[k])
			second[c] += float64(p[i] * value[k] * value[k])
		}
	}
	var delta mat.VecDense
	_ = l.chol.SolveVecTo(&delta, mat.NewVecDense(n, pull))
	for k := range l.mean {
		l.mean[k] -= delta.AtVec(k)
	}
	for c, j := range rows.distinct {
		l.effect[j] += max(0, second[c]-float64(first[c]*first[c]))
		l.pull[j] = effect[c] / l.variance(j)
	}
	for i := range z {
		l.block.SymRankOne(l.block, p[i], mat.NewVecDense(n, z[i]))
	}
	l.block.SymRankOne(l.block, -1, mat.NewVecDense(n, average))
	l.rebase()
}

// rebase makes r of (θ, b) that of their means.
func (l *wideLine) rebase() {
	n := len(l.mean)
	var r mat.VecDense
	r.MulVec(l.block, mat.NewVecDense(n, l.mean))
	for j := range n {
		l.natural[j] = r.AtVec(j) + float64(l.precision(j)*l.mean[j])
	}
	l.solve()
}

// standardise changes the standardisation of the numeric features. The information of the rounds is
// that of the same utilities, w = Mw', so G' = MᵀGM and r' = Mᵀr; the prior is that of the new
// features.
func (l *wideLine) standardise(z standardisation) {
	if l.z.shift != nil {
		n := len(l.mean)
		m := mat.NewDense(n, n, nil)
		m.Set(n-1, n-1, 1)
		for j := range l.numeric {
			// θ_j = θ'_j s_j/s'_j, and b = b' + Σ_j θ'_j (m_j − m'_j)/s'_j
			m.Set(j, j, l.z.scale[j]/z.scale[j])
			m.Set(n-1, j, (l.z.shift[j]-z.shift[j])/z.scale[j])
		}
		var product, information mat.Dense
		product.Mul(l.block, m)
		information.Mul(m.T(), &product)
		for i := range n {
			for j := i; j < n; j++ {
				l.block.SetSym(i, j, information.At(i, j))
			}
		}
		var r mat.VecDense
		r.MulVec(m.T(), mat.NewVecDense(n, slices.Clone(l.natural)))
		copy(l.natural, r.RawVector().Data)
	}
	l.z = z
	l.solve()
}

// shrink sets σ by one step of expectation maximisation over the indicators seen,
//
//	σ² ← mean_j (φ_j² + v_j)
func (l *wideLine) shrink() {
	sum, count := 0.0, 0.0
	for j, g := range l.effect {
		if g > 0 {
			mode := l.mode(j)
			sum += float64(mode*mode) + l.variance(j)
			count++
		}
	}
	if count > 0 {
		l.spread = max(0.03, min(3, math.Sqrt(sum/count)))
	}
}

func (l *wideLine) encode(e *state.Encoder) {
	e.Floats(l.z.shift)
	e.Floats(l.z.scale)
	e.Floats(l.effect)
	e.Floats(l.pull)
	e.Floats(l.block.RawSymmetric().Data)
	e.Floats(l.natural)
	e.Float(l.spread)
}

// decode returns the posterior that encode wrote. Errors go to the decoder.
func (l *wideLine) decode(d *state.Decoder) *wideLine {
	n := newWideLine(len(l.effect), l.numeric)
	n.z = decodeStandardisation(d, len(l.numeric))
	d.Floats(n.effect)
	d.Floats(n.pull)
	d.Floats(n.block.RawSymmetric().Data)
	d.Floats(n.natural)
	if n.spread = d.Float(); d.Err() == nil && !(n.spread > 0) {
		d.Fail(fmt.Errorf("snapshot has the standard deviation %v", n.spread))
	}
	for _, g := range n.effect {
		if d.Err() == nil && g < 0 {
			d.Fail(fmt.Errorf("snapshot has the information %v, which must not be negative", g))
		}
	}
	n.solve()
	return n
}
