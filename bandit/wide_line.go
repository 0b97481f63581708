package bandit

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/internal/gram"
	"vitrine/internal/kernel"
	"vitrine/internal/portable"
	"vitrine/internal/scratch"
	"vitrine/mle"
)

// wideLine is the posterior of a linear utility of many features,
//
//	u = θᵀz + b + Σ_j φ_j x_j,   θ_k ~ N(0, τ²),  b ~ N(0, 2²),  φ_j ~ N(0, σ²)
//
// where z are the standardised numeric features, and x_j the indicators. All covariances are kept for a block of at
// most 256 parameters, w: the slopes θ, the intercept, and the effects φ of the indicators that pages show first. The
// effects of other indicators are independent, each with its information g_j and r_j = (g_j + 1/σ²) φ̂_j.
//
// A round is a step of the extended Kalman filter, whose precision is then projected on the block and the diagonal next
// to it:
//
//	w' = w − (H + XᵀWX)⁻¹Xᵀ(p − y) = w − H⁻¹Xᵀ(I + WS)⁻¹(p − y),  S = XH⁻¹Xᵀ,  W = diag(p) − c ppᵀ
//
// where c = 1. With further takes p are the expected takes, y counts the takes, and c is [kernel.Shrinkage].
type wideLine struct {
	numeric []int // columns, all in the block
	direct  int   // of these the first, which experts read. The others and the indicators make up the index
	z       standardisation

	limit  int          // of parameters in the block
	block  *gram.Matrix // H, the precision: slopes, intercept, joined indicators, and free places
	mean   []float64    // w
	joined []int        // the indicators of the block
	known  []float64    // g of each column that is not in the block, 0 of others
	pull   []float64    // r of these
	slope  float64      // τ
	spread float64      // σ

	place   []int        // each column's place in the block, or −1
	inverse gram.Inverse // of H, if the posterior is frozen
}

// maxBlock is the number of parameters with kept covariances.
const maxBlock = 256

// Standard deviations of the prior of the intercept, and, before their evidence, of standardised slopes and of
// indicators.
const (
	wideInterceptSD = 2
	wideSlopeSD     = 0.5
	wideEffectSD    = 0.5
)

// firstSlope returns τ before its evidence: smaller for many numbers, so that together they have the variance of 30.
func (l *wideLine) firstSlope() float64 {
	return wideSlopeSD * math.Sqrt(min(1, maxAllExperts/float64(max(1, len(l.numeric)))))
}

// newWideLine returns the posterior of d columns before the first round, with a block for at most limit parameters,
// which must exceed the number of numeric columns.
func newWideLine(d, limit int, numeric []int, direct int) *wideLine {
	l := &wideLine{
		numeric: numeric, direct: direct, limit: limit, mean: make([]float64, len(numeric)+1),
		known: make([]float64, d), pull: make([]float64, d), spread: wideEffectSD, place: make([]int, d),
	}
	l.slope = l.firstSlope()
	for j := range l.place {
		l.place[j] = -1
	}
	for k, j := range numeric {
		l.place[j] = k
	}
	l.block = gram.NewDiagonal(l.priors())
	return l
}

// grow gives the block places for more parameters, up to size.
func (l *wideLine) grow(size int) {
	have := len(l.mean)
	l.mean = append(l.mean, make([]float64, size-have)...)
	l.block = l.block.Extended(l.priors()[have:])
}

// intercept returns the place of b in the block, after the slopes.
func (l *wideLine) intercept() int { return len(l.numeric) }

// priors returns the diagonal of the prior's precision of the block.
func (l *wideLine) priors() []float64 {
	p := make([]float64, len(l.mean))
	for k := range p {
		sd := l.spread
		switch {
		case k < l.intercept():
			sd = l.slope
		case k == l.intercept():
			sd = wideInterceptSD
		}
		p[k] = 1 / (sd * sd)
	}
	return p
}

// information returns the rounds' information in the block, G = H − P, and r = Hw. Both are independent of the prior.
func (l *wideLine) information() (g *mat.SymDense, r []float64) {
	r = make([]float64, len(l.mean))
	kernel.SymMulVec(r, l.block.Packed(), l.mean)
	g = l.block.Sym(nil)
	for k, p := range l.priors() {
		g.SetSym(k, k, g.At(k, k)-p)
	}
	return g, r
}

// setBlock makes the block the posterior of rounds with this information: H = G + P, w = H⁻¹r. It changes g. If H is
// not positive definite, it returns an error and leaves the block as it was.
func (l *wideLine) setBlock(g *mat.SymDense, r []float64) error {
	for k, p := range l.priors() {
		g.SetSym(k, k, g.At(k, k)+p)
	}
	if err := l.block.Set(gram.Pack(nil, g)); err != nil {
		return err
	}
	l.block.Solve(l.mean, r)
	return nil
}

// variance and mode describe the effect of an indicator outside the block.
func (l *wideLine) variance(j int) float64 { return 1 / (l.known[j] + 1/(l.spread*l.spread)) }
func (l *wideLine) mode(j int) float64     { return float64(l.pull[j] * l.variance(j)) }

// standardised returns the numeric feature at a place of the block, 0 before there are moments.
func (l *wideLine) standardised(place int, v float64) float64 {
	if l.z.shift == nil {
		return 0
	}
	return (v - l.z.shift[place]) / l.z.scale[place]
}

// numbers stores the numeric features of x in dst.
func (l *wideLine) numbers(dst *scratch.Matrix, x *mat.Dense) *mat.Dense {
	n, _ := x.Dims()
	numbers := dst.Reshape(n, len(l.numeric))
	for i := range n {
		from, to := x.RawRowView(i), numbers.RawRowView(i)
		for k, j := range l.numeric {
			to[k] = from[j]
		}
	}
	return numbers
}

// entries are the features of some items that make up the index, without zeros, row after row.
type entries struct {
	end    []int // one past the last of each row
	column []int
	value  []float64 // numeric ones standardised
}

// scan reads the features of x.
func (s *entries) scan(l *wideLine, x *mat.Dense) {
	n, _ := x.Dims()
	s.end, s.column, s.value = s.end[:0], s.column[:0], s.value[:0]
	for i := range n {
		row := x.RawRowView(i)
		for k, j := range l.numeric[l.direct:] {
			if v := l.standardised(l.direct+k, row[j]); v != 0 {
				s.column, s.value = append(s.column, j), append(s.value, v)
			}
		}
		for j, v := range row {
			if v == 0 {
				continue
			}
			if place := l.place[j]; place < 0 || place > l.intercept() {
				s.column, s.value = append(s.column, j), append(s.value, v)
			}
		}
		s.end = append(s.end, len(s.column))
	}
}

// row returns the columns and the values of an item.
func (s *entries) row(i int) (column []int, value []float64) {
	from := 0
	if i > 0 {
		from = s.end[i-1]
	}
	return s.column[from:s.end[i]], s.value[from:s.end[i]]
}

// index returns the index of an item at the mode.
func (l *wideLine) index(column []int, value []float64) float64 {
	s := 0.0
	for a, j := range column {
		if k := l.place[j]; k >= 0 {
			s += float64(value[a] * l.mean[k])
		} else {
			s += float64(value[a] * l.mode(j))
		}
	}
	return s
}

// fewEntries is the number of entries up to which an item's variance is a sum over their pairs.
const fewEntries = 16

// indexVariances stores the posterior variances of the indices of the rows from ≤ i < to in dst. The posterior must be
// frozen.
func (l *wideLine) indexVariances(dst []float64, s *entries, from, to int) {
	var block *mat.Dense
	for i := from; i < to; i++ {
		column, value := s.row(i)
		v := 0.0
		if len(column) > fewEntries && block == nil {
			block = mat.NewDense(to-from, len(l.mean), nil)
		}
		for a, j := range column {
			k := l.place[j]
			switch {
			case k < 0:
				v += float64(value[a] * value[a] * l.variance(j))
			case len(column) > fewEntries:
				block.Set(i-from, k, value[a])
			default:
				v += float64(value[a] * value[a] * l.inverse.At(k, k))
				for b := range a {
					if other := l.place[column[b]]; other >= 0 {
						v += 2 * float64(value[a]*value[b]*l.inverse.At(k, other))
					}
				}
			}
		}
		dst[i-from] = max(0, v)
	}
	if block == nil {
		return
	}
	deviations := make([]float64, to-from)
	l.inverse.Norms(deviations, block)
	for i, sd := range deviations {
		dst[i] += float64(sd * sd)
	}
}

// reduce stores in dst each item's features that experts read, and its index plus optimism times its posterior standard
// deviation, if it is frozen.
func (l *wideLine) reduce(dst *scratch.Matrix, x *mat.Dense, rows *entries, optimism float64) *mat.Dense {
	n, _ := x.Dims()
	reduced := dst.Reshape(n, l.direct+1)
	for i := range n {
		from, to := x.RawRowView(i), reduced.RawRowView(i)
		for k, j := range l.numeric[:l.direct] {
			to[k] = from[j]
		}
		to[l.direct] = l.index(rows.row(i))
	}
	if optimism == 0 {
		return reduced
	}
	var variances [indexRows]float64
	for from := 0; from < n; from += indexRows {
		to := min(from+indexRows, n)
		l.indexVariances(variances[:], rows, from, to)
		for i := from; i < to; i++ {
			row := reduced.RawRowView(i)
			row[l.direct] += float64(optimism * math.Sqrt(variances[i-from]))
		}
	}
	return reduced
}

// join gives an indicator a place in the block, if there is one left.
func (l *wideLine) join(j int) {
	k := l.intercept() + 1 + len(l.joined)
	if k == l.limit {
		return
	}
	if k == len(l.mean) {
		l.grow(min(2*k, l.limit))
	}
	l.mean[k] = l.mode(j)
	if l.known[j] > 0 {
		unit := make([]float64, len(l.mean))
		unit[k] = 1
		l.block.Add(l.known[j], unit)
		l.known[j], l.pull[j] = 0, 0
	}
	l.joined, l.place[j] = append(l.joined, j), k
}

// columnSums is a round's information about an indicator outside the block.
type columnSums struct {
	average float64 // Σ_i p_i x_ij
	square  float64 // Σ_i p_i x_ij²
	move    float64 // of φ̂_j
}

// learn moves the posterior by a round in which the rows x were offered. The takes are the choice and what followed it.
func (l *wideLine) learn(x *mat.Dense, takes []vitrine.Choice) {
	n, _ := x.Dims()
	var rows entries
	rows.scan(l, x)
	for _, j := range rows.column {
		if l.place[j] < 0 {
			l.join(j)
		}
	}
	d := len(l.mean)
	z, solved := mat.NewDense(n, d, nil), mat.NewDense(n, d, nil) // X and XH⁻¹ of the block
	u, p := make([]float64, n), make([]float64, n+1)
	for i := range n {
		row := z.RawRowView(i)
		for k, j := range l.numeric[:l.direct] {
			row[k] = l.standardised(k, x.At(i, j))
		}
		row[l.intercept()] = 1
		column, value := rows.row(i)
		for a, j := range column {
			if k := l.place[j]; k >= 0 {
				row[k] = value[a]
			} else {
				u[i] += float64(value[a] * l.mode(j))
			}
		}
		u[i] += kernel.Dot(row, l.mean)
		l.block.Solve(solved.RawRowView(i), row)
	}
	further := len(takes) - 1
	mle.ExpectedTakes(p, u, further)
	s := l.covariance(z, solved, &rows)
	a, ok := residuals(s, p[1:], takes)
	if !ok {
		return
	}
	shorten(a, u, s, takes)
	l.step(z, solved, &rows, p, a, further)
}

// shorten halves the step −H⁻¹Xᵀa while its loss, ℓ(u − Sa) + ½aᵀSa, is more than 1 above ℓ(u): if choice probabilities
// are near 0 or 1 the information does not determine how far to go, as in [mle.Laplace.Step].
func shorten(a, u []float64, s *mat.SymDense, takes []vitrine.Choice) {
	n := len(a)
	loss := func(u []float64) float64 {
		p := make([]float64, n+1)
		vitrine.Probabilities(p, u)
		loss := -portable.Log(p[takes[0]])
		if len(takes) > 1 {
			all := kernel.LogSumExp(u)
			for _, y := range takes[1:] {
				loss += all - u[y-1]
			}
		}
		return loss
	}
	var moved mat.VecDense
	next, before := make([]float64, n), loss(u)
	for range 30 {
		moved.MulVec(s, mat.NewVecDense(n, a))
		floats.SubTo(next, u, moved.RawVector().Data)
		if loss(next)+float64(kernel.Dot(a, moved.RawVector().Data)/2) <= before+1 {
			return
		}
		floats.Scale(0.5, a)
	}
}

// covariance returns S = XH⁻¹Xᵀ.
func (l *wideLine) covariance(z, solved *mat.Dense, rows *entries) *mat.SymDense {
	n, _ := z.Dims()
	s := mat.NewSymDense(n, nil)
	for i := range n {
		weighted := map[int]float64{} // the values of row i beside the block times their variances
		column, value := rows.row(i)
		for a, j := range column {
			if l.place[j] < 0 {
				weighted[j] = value[a] * l.variance(j)
			}
		}
		for k := i; k < n; k++ {
			sum := kernel.Dot(solved.RawRowView(i), z.RawRowView(k))
			column, value := rows.row(k)
			for a, j := range column {
				if l.place[j] < 0 {
					sum += float64(value[a] * weighted[j])
				}
			}
			s.SetSym(i, k, sum)
		}
	}
	return s
}

// residuals returns a = (I + WS)⁻¹(p − y). ok is false if they are not numbers.
func residuals(s *mat.SymDense, p []float64, takes []vitrine.Choice) (a []float64, ok bool) {
	n, shrink := len(p), kernel.Shrinkage(p, len(takes)-1)
	system, residual := mat.NewDense(n, n, nil), mat.NewVecDense(n, slices.Clone(p))
	for i := range n {
		for j := range n {
			sum := float64(p[i] * s.At(i, j))
			for k := range n {
				sum -= float64(shrink * p[i] * p[k] * s.At(k, j))
			}
			if i == j {
				sum++
			}
			system.Set(i, j, sum)
		}
	}
	for _, y := range takes {
		if y != vitrine.Outside {
			residual.SetVec(int(y)-1, residual.AtVec(int(y)-1)-1)
		}
	}
	a = make([]float64, n)
	if err := mat.NewVecDense(n, a).SolveVec(system, residual); err != nil {
		return nil, false
	}
	return a, !slices.ContainsFunc(a, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// step moves the means by −H⁻¹Xᵀa, and adds the information of the round: with the mean row x̄ = Σ_i p_i x_i,
//
//	XᵀWX = Σ_i p_i (x_i − x̄)(x_i − x̄)ᵀ + p_0 x̄x̄ᵀ
//
// With further takes, x̄ is the mean row of a take, and p_0 (1 − p_0) takes the place of p_0. It changes z.
func (l *wideLine) step(z, solved *mat.Dense, rows *entries, p, a []float64, further int) {
	sums, shrink := map[int]*columnSums{}, kernel.Shrinkage(p[1:], further)
	average := make([]float64, len(l.mean))
	for i, move := range a {
		kernel.Axpy(l.mean, -move, solved.RawRowView(i))
		kernel.Axpy(average, p[i+1], z.RawRowView(i))
		column, value := rows.row(i)
		for b, j := range column {
			if l.place[j] >= 0 {
				continue
			}
			sum := sums[j]
			if sum == nil {
				sum = new(columnSums)
				sums[j] = sum
			}
			sum.average += float64(p[i+1] * value[b])
			sum.square += float64(p[i+1] * value[b] * value[b])
			sum.move -= float64(l.variance(j) * value[b] * move)
		}
	}
	for j, sum := range sums {
		mode := l.mode(j) + sum.move
		l.known[j] += max(0, sum.square-float64(shrink*sum.average*sum.average))
		l.pull[j] = mode / l.variance(j)
	}
	outside := kernel.MeanTake(average, p[0], further)
	for i := range a {
		row := z.RawRowView(i)
		kernel.Axpy(row, -1, average)
		l.block.Add(p[i+1], row)
	}
	l.block.Add(outside, average)
}

// renew sets τ and σ by one step of expectation maximisation: each is the mean square of its parameters, the slopes or
// the n indicators seen, and of one more as before the first round,
//
//	σ² ← (½² + Σ_j (φ̂_j² + v_j)) / (1 + n)
//
// It also changes the standardisation to z. If rounding leaves no positive definite precision, it changes nothing.
func (l *wideLine) renew(z standardisation) {
	g, r := l.information()
	slopes, effects := newShrinkage(l.firstSlope()), newShrinkage(wideEffectSD)
	inverse := l.block.Inverse()
	for k := range l.numeric {
		slopes.add(l.mean[k], inverse.At(k, k))
	}
	for k := range l.joined {
		k += l.intercept() + 1
		effects.add(l.mean[k], inverse.At(k, k))
	}
	for j, information := range l.known {
		if information > 0 {
			effects.add(l.mode(j), l.variance(j))
		}
	}
	before := *l
	l.restate(g, r, z)
	l.slope, l.spread, l.z = slopes.sd(), effects.sd(), z
	if err := l.setBlock(g, r); err != nil {
		*l = before
	}
}

// restate converts the rounds' information to the same utilities of features standardised by z. With w = Mw',
//
//	θ_k = θ'_k s_k/s'_k,  b = b' + Σ_k θ'_k (m_k − m'_k)/s'_k,  G' = MᵀGM,  r' = Mᵀr
func (l *wideLine) restate(g *mat.SymDense, r []float64, z standardisation) {
	if l.z.shift == nil {
		return // every round was empty
	}
	b := l.intercept()
	for k := range l.numeric {
		scale, shift := l.z.scale[k]/z.scale[k], (l.z.shift[k]-z.shift[k])/z.scale[k]
		corner := float64(scale*scale*g.At(k, k)) + float64(2*scale*shift*g.At(k, b)) + float64(shift*shift*g.At(b, b))
		for j := range r {
			g.SetSym(k, j, float64(scale*g.At(k, j))+float64(shift*g.At(b, j)))
		}
		g.SetSym(k, k, corner)
		r[k] = float64(scale*r[k]) + float64(shift*r[b])
	}
}

// shrinkage is the mean square of some parameters of one scale.
type shrinkage struct{ sum, count float64 }

func newShrinkage(sd float64) shrinkage { return shrinkage{sd * sd, 1} }

func (s *shrinkage) add(mode, variance float64) {
	s.sum += float64(mode*mode) + variance
	s.count++
}

// The bounds of τ and σ.
const minScale, maxScale = 0.03, 3

func (s *shrinkage) sd() float64 { return max(minScale, min(maxScale, math.Sqrt(s.sum/s.count))) }

// freeze returns a copy for a policy.
func (l *wideLine) freeze() *wideLine {
	f := *l
	f.block, f.inverse = nil, l.block.Inverse()
	f.mean, f.place = slices.Clone(l.mean), slices.Clone(l.place)
	f.known, f.pull = slices.Clone(l.known), slices.Clone(l.pull)
	return &f
}

// fields passes over the posterior l, and returns it or the one that is read.
func (l *wideLine) fields(f *fields.Fields) *wideLine {
	n := l
	if f.Reads() {
		n = newWideLine(len(l.known), l.limit, l.numeric, l.direct)
	}
	n.z.fields(f, len(l.numeric))
	f.Vector(&n.known, &n.pull)
	f.Float(&n.slope, &n.spread)
	f.Check(min(n.slope, n.spread) >= minScale && max(n.slope, n.spread) <= maxScale, "the standard deviations %v "+
		"and %v, which must be from %v to %v", n.slope, n.spread, minScale, maxScale)
	fields.Integers(f, &n.joined)
	size := len(n.mean)
	f.Count(&size)
	if f.Reads() {
		f.Check(size >= n.intercept()+1+len(n.joined) && size <= n.limit, "a block of %d parameters, with %d "+
			"indicators", size, len(n.joined))
		for k, j := range n.joined {
			if f.Check(j < len(n.place) && n.place[j] < 0, "the column %d is in the block, where it cannot be",
				j); f.Err() != nil {
				return nil
			}
			n.place[j] = n.intercept() + 1 + k
		}
		if f.Err() != nil {
			return nil
		}
		n.grow(size)
	}
	f.Vector(&n.mean)
	n.block.Fields(f)
	for j, g := range n.known {
		f.Check(!(g < 0 || g > 0 && n.place[j] >= 0), "the information of column %d is %v", j, g)
	}
	return n
}
