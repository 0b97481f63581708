package choice

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"vitrine/internal/kernel"
	"vitrine/internal/scratch"
)

// Random is a coefficient that varies between decision makers.
type Random struct {
	Coefficient  string `toml:"coefficient" json:"coefficient"`
	Distribution string `toml:"distribution" json:"distribution"` // normal (""), lognormal, uniform or triangular
}

// mixed is the mixed logit model: some coefficients vary between decision makers n,
//
//	β_nj = b_j + s_j η_nj,   or exp(b_j + s_j η_nj) if it is lognormal,
//
// with η standard normal, uniform on [−1, 1] or triangular on [−1, 1]. If they are correlated, Σ_m L_jm η_nm replaces
// s_j η_nj, with a lower triangular L: the covariance is LLᵀ. A panel holds one decision maker's choices; without
// panels every choice is its own decision maker. A decision maker's likelihood is the mean, over draws r of η, of the
// product L_nr of the choices' MNL probabilities. With the posterior h_r = L_r/Σ_q L_q of a draw, and the derivatives
// g_r, H_r of log L_r,
//
//	∇log L  = Σ_r h_r g_r = ḡ
//	∇²log L = Σ_r h_r (H_r + g_r g_rᵀ) − ḡ ḡᵀ
//
// Draws form a Halton sequence without its first 100 elements. Each decision maker takes the next part of it. Source:
// Train (2009), Chapters 6 and 9 and Section 9.3.3.
type mixed struct {
	*design
	outside bool
	draws   int
	random  []varying
	spreads []spread
	columnsOf
	eta []float64 // decision maker × random coefficient × draw
}

// varying is a random coefficient.
type varying struct {
	coefficient int
	lognormal   bool
	quantile    func(u float64) float64
	base        int // of the Halton sequence
}

// spread is a parameter: how much the random coefficient with index of varies with the η of the random coefficient with
// index with.
type spread struct{ of, with int }

// columnsOf describes derivatives in the parameters: parameter a moves coefficient of[a] by the factor
// factors[factor[a]].
type columnsOf struct {
	of, factor []int
	factors    []factor
}

// factor is the product of a lognormal coefficient and η, both as indices of random coefficients; -1 stands for 1.
type factor struct{ beta, eta int }

func (c *columnsOf) append(coefficient int, f factor) {
	i := slices.Index(c.factors, f)
	if i < 0 {
		i = len(c.factors)
		c.factors = append(c.factors, f)
	}
	c.of, c.factor = append(c.of, coefficient), append(c.factor, i)
}

// quantiles maps the distributions of η to their quantile functions.
var quantiles = map[string]func(u float64) float64{
	"normal":    distuv.UnitNormal.Quantile,
	"lognormal": distuv.UnitNormal.Quantile,
	"uniform":   func(u float64) float64 { return 2*u - 1 },
	"triangular": func(u float64) float64 {
		if u < 0.5 {
			return math.Sqrt(2*u) - 1
		}
		return 1 - math.Sqrt(2*(1-u))
	},
}

// mostDraws bounds the memory of the draws, in bytes.
const mostDraws = 8e9

// newMixed resolves the random coefficients, and makes the draws for the data's decision makers. Mirrored coefficients
// get draws with the opposite sign.
func newMixed(ctx context.Context, g *design, model *Model, mirrored []string, d *Data) (*mixed, error) {
	draws := model.draws()
	m := &mixed{design: g, outside: d.Outside, draws: draws}
	for k, v := range model.Random {
		j := slices.Index(g.names, v.Coefficient)
		if j < 0 {
			return nil, fmt.Errorf("model.random: there is no coefficient %q: there are %q", v.Coefficient, g.names)
		}
		distribution := cmp.Or(v.Distribution, "normal")
		m.random = append(m.random, varying{j, distribution == "lognormal", quantiles[distribution], prime(k)})
	}
	for j := range g.names {
		f := factor{-1, -1}
		if k := slices.IndexFunc(m.random, func(v varying) bool { return v.coefficient == j && v.lognormal }); k >= 0 {
			f.beta = k
		}
		m.append(j, f)
	}
	for k, v := range m.random {
		first := k
		if model.Correlated {
			first = 0
		}
		for with := first; with <= k; with++ {
			m.spreads = append(m.spreads, spread{k, with})
			m.append(v.coefficient, factor{m.factors[m.factor[v.coefficient]].beta, with})
		}
	}
	if err := checkPanelWeights(d); err != nil {
		return nil, err
	}
	makers := cmp.Or(d.Panels, d.Choices)
	if need := 8 * float64(makers) * float64(len(m.random)) * float64(draws); need > mostDraws {
		return nil, fmt.Errorf("the draws of %d decision makers would need %.3g GB of memory, and %.0f GB are the limit: lower "+
			"model.draws, now %d, or fit fewer random coefficients or a part of the data", makers, need/1e9, mostDraws/1e9, draws)
	}
	m.eta = make([]float64, makers*len(m.random)*draws)
	const skip = 100
	for n := range makers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for k, v := range m.random {
			for r := range draws {
				m.eta[(n*len(m.random)+k)*draws+r] = v.quantile(halton(skip+n*draws+r, v.base))
			}
		}
	}
	for k, v := range m.random {
		if slices.Contains(mirrored, g.names[v.coefficient]) {
			m.reflect(k)
		}
	}
	return m, nil
}

// reflect changes the sign of a random coefficient's draws.
func (m *mixed) reflect(k int) {
	for at := k * m.draws; at < len(m.eta); at += len(m.random) * m.draws {
		for r := range m.draws {
			m.eta[at+r] *= -1
		}
	}
}

// halton returns the i-th number of the Halton sequence in a base, the radical inverse of i.
func halton(i, base int) float64 {
	sum, f := 0.0, 1.0
	for ; i > 0; i /= base {
		f /= float64(base)
		sum += f * float64(i%base)
	}
	return sum
}

// prime returns the k-th prime, counted from 0.
func prime(k int) int {
	for p := 2; ; p++ {
		if big.NewInt(int64(p)).ProbablyPrime(0) {
			if k--; k < 0 {
				return p
			}
		}
	}
}

func (m *mixed) names() []string {
	names := slices.Clone(m.design.names)
	for _, s := range m.spreads {
		name := m.design.names[m.random[s.of].coefficient]
		if s.with != s.of {
			name += ", " + m.design.names[m.random[s.with].coefficient]
		}
		names = append(names, "spread["+name+"]")
	}
	return names
}

// start implements startable: MNL, with spreads as large as the coefficients and no correlation. If a coefficient is
// smaller than its standard error, with weights of mean 1, the error is used instead, so that neither the start nor the
// likelihood depends on the units of variables and weights.
func (m *mixed) start(mnl *minimum, _ int) []float64 {
	theta := slices.Clone(mnl.theta)
	covariance, _ := inverse(mnl.hessian) // the caller checked that the data determine the coefficients
	for _, s := range m.spreads {
		v := m.random[s.of]
		b, se := &theta[v.coefficient], math.Sqrt(mnl.origin.weight*covariance.At(v.coefficient, v.coefficient))
		switch {
		case s.with != s.of:
			theta = append(theta, 0)
		case v.lognormal:
			*b = math.Log(math.Max(*b, se))
			theta = append(theta, 0.5)
		default:
			theta = append(theta, math.Max(math.Abs(*b), se))
		}
	}
	return theta
}

// mirror returns θ after changing the sign of η_k for a random coefficient: its spread changes its sign, and so does
// the column of L that has the spread on its diagonal. Because η and −η are equally distributed, the sign has no
// meaning. But finite draws are not symmetric, and the likelihood has a maximum on either side.
func (m *mixed) mirror(theta []float64, k int) []float64 {
	other := slices.Clone(theta)
	for l, s := range m.spreads {
		if s.with == k {
			other[m.dim()+l] *= -1
		}
	}
	return other
}

// upright makes the spreads at a minimum positive, by reflecting the draws of random coefficients with a negative
// spread, and returns their names. All probabilities stay the same.
func (m *mixed) upright(best *minimum) (mirrored []string) {
	for l, s := range m.spreads {
		if s.with != s.of || best.theta[m.dim()+l] >= 0 {
			continue
		}
		m.reflect(s.of)
		mirrored = append(mirrored, m.design.names[m.random[s.of].coefficient])
		best.theta = m.mirror(best.theta, s.of)
		sign := m.mirror(slices.Repeat([]float64{1}, len(best.theta)), s.of)
		hessian := best.hessian
		best.hessian = symOf(len(sign), func(i, j int) float64 { return sign[i] * sign[j] * hessian.At(i, j) })
	}
	return mirrored
}

func (m *mixed) worker() worker {
	w := &mixedWorker{mixed: m, ones: slices.Repeat([]float64{1}, m.draws)}
	for _, v := range []*[]float64{&w.logl, &w.prod, &w.top, &w.sum, &w.outsideOf, &w.denominator, &w.product} {
		*v = make([]float64, m.draws)
	}
	for a, fa := range m.factor {
		for _, fb := range m.factor[a:] {
			if p := [2]int{min(fa, fb), max(fa, fb)}; !slices.Contains(w.pairs, p) {
				w.pairs = append(w.pairs, p)
			}
		}
	}
	w.pairOf = make([]int, kernel.PackedLen(len(m.of)))
	at := 0
	for a, fa := range m.factor {
		for _, fb := range m.factor[a:] {
			w.pairOf[at] = slices.Index(w.pairs, [2]int{min(fa, fb), max(fa, fb)})
			at++
		}
	}
	w.phi, w.mean = make([]float64, len(w.pairs)), make([]float64, len(m.of))
	return w
}

// mixedWorker evaluates decision makers one by one. Vectors run over draws.
type mixedWorker struct {
	*mixed
	x     matrix
	fixed []float64 // by row of the block: the part of the utility that does not vary

	number      int // number of the decision maker
	ones        []float64
	f           matrix    // by factor: the derivative of its coefficient in a parameter
	beta        matrix    // by random coefficient
	p           matrix    // by row of the decision maker: utilities, later probabilities
	sum         []float64 // in a choice: the probability of the outside option
	top         []float64 // in a choice: the largest utility
	denominator []float64 // in a choice: Σ exp(V − top)
	outsideOf   []float64
	logl, prod  []float64 // log L_r, later h_r; a product not yet in log L_r

	score    matrix // by parameter: the gradient of log L_r
	moments  matrix // by parameter: Σ_i P_i x_i in a choice, times the factor
	weighted matrix // by pair of factors: h_r times both
	product  []float64

	pairs  [][2]int  // pairs of factors
	pairOf []int     // by entry of the packed Hessian
	phi    []float64 // by pair of factors, in a row
	mean   []float64 // by parameter: the gradient of log L
}

// draw computes the random coefficients and their derivatives in each draw.
func (w *mixedWorker) draw(number int, theta []float64) {
	w.number = number
	w.beta.resize(len(w.random), w.draws)
	for k, v := range w.random {
		beta := w.beta.own(k)
		for r := range beta {
			beta[r] = theta[v.coefficient]
		}
	}
	for k, s := range w.spreads {
		kernel.Axpy(w.beta.row[s.of], theta[w.dim()+k], w.etaOf(s.with))
	}
	for k, v := range w.random {
		if v.lognormal {
			kernel.Exp(w.beta.row[k], w.beta.row[k])
		}
	}
	w.f.resize(len(w.factors), w.draws)
	for i, f := range w.factors {
		switch {
		case f.beta < 0 && f.eta < 0:
			w.f.row[i] = w.ones
		case f.beta < 0:
			w.f.row[i] = w.etaOf(f.eta)
		case f.eta < 0:
			w.f.row[i] = w.beta.row[f.beta]
		default:
			copy(w.f.own(i), w.beta.row[f.beta])
			kernel.Mul(w.f.row[i], w.etaOf(f.eta))
		}
	}
}

// etaOf returns the decision maker's draws of η for a random coefficient.
func (w *mixedWorker) etaOf(k int) []float64 {
	return w.eta[(w.number*len(w.random)+k)*w.draws:][:w.draws]
}

// spread computes the utilities in a decision maker's rows for each draw.
func (w *mixedWorker) spread(b *block, u unit, x [][]float64) {
	lo, hi := b.rowsOf(u)
	w.p.resize(hi-lo, w.draws)
	for i := lo; i < hi; i++ {
		p := w.p.own(i - lo)
		for r := range p {
			p[r] = w.fixed[i]
		}
		for k, v := range w.random {
			if xi := x[v.coefficient][i]; xi != 0 {
				kernel.Axpy(p, xi, w.beta.row[k])
			}
		}
	}
}

// simulate computes the probabilities in a decision maker's rows for each draw, and log L_r.
func (w *mixedWorker) simulate(b *block, u unit, x [][]float64) {
	lo, _ := b.span(u.from)
	w.spread(b, u, x)
	clear(w.logl)
	copy(w.prod, w.ones)
	for s := u.from; s < u.to; s++ {
		w.normalise(b, s, lo)
		chosen := w.sum // starts as the probability of the outside option
		if c := b.chosen[s]; c != none {
			chosen = w.p.row[int(c)-lo]
		}
		// One logarithm of a product costs less than the logarithms of its factors.
		for r, p := range chosen {
			if w.prod[r] *= p; w.prod[r] < 1e-200 {
				w.logl[r] += math.Log(w.prod[r])
				w.prod[r] = 1
			}
		}
	}
	for r, p := range w.prod {
		w.logl[r] += math.Log(p)
	}
}

// normalise turns the utilities in a choice's rows into probabilities, and stores the outside option's probabilities in
// sum.
func (w *mixedWorker) normalise(b *block, s, lo int) {
	first, end := b.span(s)
	for r := range w.top {
		w.top[r] = math.Inf(-1)
		if w.outside {
			w.top[r] = 0
		}
	}
	for i := first; i < end; i++ {
		for r, v := range w.p.row[i-lo] {
			w.top[r] = max(w.top[r], v)
		}
	}
	for r, t := range w.top {
		w.sum[r] = -t
	}
	kernel.Exp(w.sum, w.sum)
	if !w.outside {
		clear(w.sum)
	}
	copy(w.outsideOf, w.sum)
	for i := first; i < end; i++ {
		p := w.p.row[i-lo]
		kernel.Axpy(p, -1, w.top)
		kernel.Exp(p, p)
		kernel.Axpy(w.sum, 1, p)
	}
	copy(w.denominator, w.sum)
	for r, v := range w.sum {
		w.sum[r] = 1 / v
	}
	for i := first; i < end; i++ {
		kernel.Mul(w.p.row[i-lo], w.sum)
	}
	kernel.Mul(w.sum, w.outsideOf)
}

// posteriors returns log mean_r L_r, and turns log L_r into h_r.
func (w *mixedWorker) posteriors() float64 {
	top := slices.Max(w.logl)
	if math.IsInf(top, -1) {
		return top
	}
	for r := range w.logl {
		w.logl[r] -= top
	}
	kernel.Exp(w.logl, w.logl)
	sum := kernel.Sum(w.logl)
	for r := range w.logl {
		w.logl[r] /= sum
	}
	return top + math.Log(sum/float64(w.draws))
}

// begin computes a block's variables, and the part of the utilities that does not vary.
func (w *mixedWorker) begin(b *block, theta []float64) (x [][]float64) {
	x = w.columns(&w.x, b)
	w.fixed = scratch.Grow(w.fixed, b.rows())
	still := slices.Clone(theta[:w.dim()])
	for _, v := range w.random {
		still[v.coefficient] = 0
	}
	utilities(w.fixed, x, still)
	return x
}

// derivatives computes the gradients of log L_r, and their posterior mean.
func (w *mixedWorker) derivatives(b *block, u unit, x [][]float64) {
	w.score.resize(len(w.of), w.draws)
	lo, hi := b.rowsOf(u)
	for j := range w.dim() {
		g := w.score.own(j)
		constant := 0.0
		for _, c := range b.chosen[u.from:u.to] {
			if c != none {
				constant += x[j][c]
			}
		}
		for r := range g {
			g[r] = constant
		}
		for i := lo; i < hi; i++ {
			if v := x[j][i]; v != 0 {
				kernel.Axpy(g, -v, w.p.row[i-lo])
			}
		}
	}
	for k := range w.spreads {
		w.score.own(w.dim() + k)
	}
	w.chain(w.score.row)
	for a := range w.mean {
		w.mean[a] = kernel.Dot(w.logl, w.score.row[a])
	}
}

// chain turns derivatives in the coefficients into derivatives in the parameters, by row.
func (w *mixedWorker) chain(row [][]float64) {
	for a := w.dim(); a < len(row); a++ {
		copy(row[a], row[w.of[a]])
		kernel.Mul(row[a], w.f.row[w.factor[a]])
	}
	for _, v := range w.random {
		if v.lognormal {
			kernel.Mul(row[v.coefficient], w.f.row[w.factor[v.coefficient]])
		}
	}
}

// add implements worker.
func (w *mixedWorker) add(s *sums, b *block, theta []float64) {
	x := w.begin(b, theta)
	units(b, func(u unit) {
		w.draw(u.number, theta)
		w.simulate(b, u, x)
		weight := b.weightOf(u.from)
		s.value -= weight * w.posteriors()
		if s.gradient == nil {
			return
		}
		w.derivatives(b, u, x)
		kernel.Axpy(s.gradient, -weight, w.mean)
		if s.hessian != nil {
			w.curvature(s, weight, b, u, x)
		}
	})
}

// curvature adds a decision maker's Hessian,
//
//	Σ_r h_r (J_rᵀ M_r J_r − g_r g_rᵀ) + ḡ ḡᵀ
//
// with the choices' Hessians M_r in the coefficients, and the coefficients' derivatives J_r in the parameters. It also
// adds the curvature of lognormal coefficients themselves.
func (w *mixedWorker) curvature(s *sums, weight float64, b *block, u unit, x [][]float64) {
	h := w.logl
	w.weighted.resize(len(w.pairs), w.draws)
	for k, pair := range w.pairs {
		v := w.weighted.own(k)
		copy(v, h)
		kernel.Mul(v, w.f.row[pair[0]])
		kernel.Mul(v, w.f.row[pair[1]])
	}
	lo, _ := b.span(u.from)
	for c := u.from; c < u.to; c++ {
		first, end := b.span(c)
		w.moments.resize(len(w.of), w.draws)
		for a := range w.of {
			clear(w.moments.own(a))
		}
		for i := first; i < end; i++ {
			p := w.p.row[i-lo]
			for k := range w.phi {
				w.phi[k] = weight * kernel.Dot(w.weighted.row[k], p)
			}
			at := 0
			for a, j := range w.of {
				xa := x[j][i]
				if xa == 0 {
					at += len(w.of) - a
					continue
				}
				if a < w.dim() {
					kernel.Axpy(w.moments.row[a], xa, p)
				}
				s.moment[a] += xa * xa * w.phi[w.pairOf[at]]
				for _, l := range w.of[a:] {
					s.hessian[at] += xa * x[l][i] * w.phi[w.pairOf[at]]
					at++
				}
			}
		}
		w.chain(w.moments.row)
		w.subtract(s.hessian, weight, w.moments.row)
	}
	w.subtract(s.hessian, weight, w.score.row)
	kernel.SymRankOne(s.hessian, weight, w.mean)
	// The second derivatives of exp(b + Σ_m l_m η_m) are β, βη_m and βη_m η_k, and the scores already contain the
	// factors β and βη_m.
	n := len(w.of)
	for _, v := range w.random {
		if v.lognormal {
			s.hessian[packedAt(v.coefficient, v.coefficient, n)] -= weight * w.mean[v.coefficient]
		}
	}
	for k, one := range w.spreads {
		a := w.dim() + k
		if !w.random[one.of].lognormal {
			continue
		}
		s.hessian[packedAt(w.of[a], a, n)] -= weight * w.mean[a]
		copy(w.product, h)
		kernel.Mul(w.product, w.score.row[a])
		for l, other := range w.spreads[k:] {
			if other.of == one.of {
				s.hessian[packedAt(a, a+l, n)] -= weight * kernel.Dot(w.product, w.etaOf(other.with))
			}
		}
	}
}

// subtract subtracts Σ_r h_r v_ra v_rb from a packed Hessian.
func (w *mixedWorker) subtract(hessian []float64, weight float64, v [][]float64) {
	at := 0
	for a := range v {
		copy(w.product, w.logl)
		kernel.Mul(w.product, v[a])
		for _, vb := range v[a:] {
			hessian[at] -= weight * kernel.Dot(w.product, vb)
			at++
		}
	}
}

// scores implements worker. A decision maker's score is in the row of the first choice; the other rows are 0.
func (w *mixedWorker) scores(dst []float64, b *block, theta []float64) {
	x := w.begin(b, theta)
	clear(dst)
	units(b, func(u unit) {
		w.draw(u.number, theta)
		w.simulate(b, u, x)
		w.posteriors()
		w.derivatives(b, u, x)
		copy(dst[u.from*len(w.of):], w.mean)
	})
}

// probabilities implements worker, for a decision maker without observed choices.
func (w *mixedWorker) probabilities(p, out, logsum []float64, b *block, theta []float64) {
	x := w.begin(b, theta)
	n := float64(w.draws)
	units(b, func(u unit) {
		w.draw(u.number, theta)
		lo, _ := b.span(u.from)
		w.spread(b, u, x)
		for s := u.from; s < u.to; s++ {
			w.normalise(b, s, lo)
			first, end := b.span(s)
			for i := first; i < end; i++ {
				p[i] = kernel.Sum(w.p.row[i-lo]) / n
			}
			out[s] = kernel.Sum(w.sum) / n
			logsum[s] = kernel.Sum(w.top) / n
			for _, v := range w.denominator {
				logsum[s] += math.Log(v) / n
			}
		}
	})
}
