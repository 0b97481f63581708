package choice

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"vitrine/internal/kernel"
	"vitrine/internal/scratch"
)

// Nest is a group of alternatives with similar unobserved utilities.
type Nest struct {
	Name         string   `toml:"name" json:"name"`
	Alternatives []string `toml:"alternatives" json:"alternatives"`
	// nests with the same parameter share it; "" means the nest's name
	Parameter string `toml:"parameter" json:"parameter,omitempty"`
}

// nested is the nested logit model. With the dissimilarity λ_k of nest k,
//
//	P_i = P_k q_i,  q_i = exp(V_i/λ_k) / Σ_{j∈k} exp(V_j/λ_k),  P_k = exp(A_k) / Σ_l exp(A_l)
//	A_k = λ_k I_k,  I_k = log Σ_{j∈k} exp(V_j/λ_k)
//
// over the available alternatives. An alternative without a nest, and the outside option, is its own nest with λ = 1.
// The model is consistent with utility maximisation if 0 < λ_k ≤ 1, and equals MNL if all λ_k are 1.
//
// The derivatives build on the scaled utilities y_i = V_i/λ_k in θ = (β, λ). With z_i = ∇y_i, m the chosen nest, c_k =
// [k=m](1−λ_m) + P_k λ_k, s_k = P_k − [k=m], z̄_k = Σ_{j∈k} q_j z_j, a_k = ∇A_k = λ_k z̄_k + I_k e_k and r_i = c_k q_i
// − [i chosen],
//
//	−∇log P  = Σ_i r_i z_i + Σ_k s_k I_k e_k
//	−∇²log P = Σ_i c_k q_i z_i z_iᵀ − Σ_k c_k z̄_k z̄_kᵀ + Σ_k P_k a_k a_kᵀ − ā āᵀ
//	           + Σ_i r_i ∇²y_i + Σ_k s_k (e_k z̄_kᵀ + z̄_k e_kᵀ),  ā = Σ_k P_k a_k
//
// Source: Train (2009), Section 4.2.
type nested struct {
	*design
	outside    bool
	parameters []string
	nest       []int // by alternative: its nest, or -1
	parameter  []int // by nest: its parameter
}

// newNested resolves a model's nests over the given alternatives against data.
func newNested(g *design, nests []Nest, alternatives []string, d *Data) (*nested, error) {
	n := &nested{design: g, outside: d.Outside, nest: slices.Repeat([]int{-1}, len(d.Alternatives))}
	placed := map[string]bool{}
	for k, nest := range nests {
		for _, a := range nest.Alternatives {
			if !slices.Contains(alternatives, a) {
				return nil, fmt.Errorf("model.nests: nest %q: alternative %q: %w",
					nest.Name, a, unknownAlternative(alternatives))
			}
			if placed[a] {
				return nil, fmt.Errorf("model.nests: alternative %q is in two nests", a)
			}
			placed[a] = true
			if i := slices.Index(d.Alternatives, a); i >= 0 {
				n.nest[i] = k
			}
		}
		name := "dissimilarity[" + cmp.Or(nest.Parameter, nest.Name) + "]"
		if !slices.Contains(n.parameters, name) {
			n.parameters = append(n.parameters, name)
		}
		n.parameter = append(n.parameter, slices.Index(n.parameters, name))
	}
	return n, nil
}

// checkTogether returns an error if no choice offers two alternatives of a nest, for some dissimilarity.
func (n *nested) checkTogether(d *Data) error {
	latest := make([]int, len(n.parameter)) // by nest: the number of the last choice that offers it
	together := make([]bool, len(n.parameters))
	for _, b := range d.blocks {
		for s := range b.end {
			lo, hi := b.span(s)
			for _, a := range b.alt[lo:hi] {
				if k := n.nest[a]; k >= 0 {
					together[n.parameter[k]] = together[n.parameter[k]] || latest[k] == b.first+s+1
					latest[k] = b.first + s + 1
				}
			}
		}
	}
	if p := slices.Index(together, false); p >= 0 {
		return fmt.Errorf("model.nests: no choice offers two alternatives of the nest of %s: leave the nest out",
			n.parameters[p])
	}
	return nil
}

func (n *nested) names() []string { return append(slices.Clone(n.design.names), n.parameters...) }

// start implements startable with MNL's estimate.
func (n *nested) start(mnl *minimum, _ int) []float64 {
	return append(slices.Clone(mnl.theta), slices.Repeat([]float64{1}, len(n.parameters))...)
}

func (n *nested) worker() worker {
	return &nestedWorker{nested: n, latest: make([]int, len(n.parameter))}
}

// nestedWorker evaluates blocks. A pair is a nest in a choice.
type nestedWorker struct {
	*nested
	x, z, mean, slope, total matrix

	pairOf               []int32   // by row: its pair
	parameterOf          []int     // by pair: the parameter, or -1 if λ = 1
	choiceOf             []int32   // by pair
	inclusive, p         []float64 // by pair: I and P
	v, q, inv            []float64 // by row: V, q and 1/λ
	logsum, logp         []float64 // by choice
	chosen               []int32   // by choice: the chosen pair, or none
	out                  []float64
	c, s                 []float64 // by pair, with the weight
	r, product, weighted []float64

	latest []int // by nest: 1 + its latest pair
}

// minDissimilarity and maxDissimilarity bound λ: outside, the likelihood counts as 0.
const (
	minDissimilarity = 0.02
	maxDissimilarity = 50
)

// atBounds returns the dissimilarities at a bound.
func (n *nested) atBounds(theta []float64) (names []string) {
	for k, lambda := range theta[n.dim():] {
		if lambda < 1.001*minDissimilarity || lambda > maxDissimilarity/1.001 {
			names = append(names, n.parameters[k])
		}
	}
	return names
}

// lawful reports whether the dissimilarities are within bounds.
func (w *nestedWorker) lawful(theta []float64) bool {
	return !slices.ContainsFunc(theta[w.dim():], func(lambda float64) bool {
		return !(lambda >= minDissimilarity && lambda <= maxDissimilarity)
	})
}

// evaluate computes a block's probabilities.
func (w *nestedWorker) evaluate(b *block, theta []float64) (x [][]float64) {
	n := b.rows()
	lambda := theta[w.dim():]
	x = w.columns(&w.x, b)
	scratch.GrowAll(n, &w.v, &w.q, &w.inv)
	w.pairOf = scratch.Grow(w.pairOf, n)
	utilities(w.v, x, theta[:w.dim()])
	w.pair(b)
	pairs := len(w.parameterOf)
	scratch.GrowAll(pairs, &w.inclusive, &w.p)
	for k := range w.inclusive {
		w.inclusive[k] = math.Inf(-1)
	}
	for i, k := range w.pairOf {
		w.inv[i] = 1
		if t := w.parameterOf[k]; t >= 0 {
			w.inv[i] = 1 / lambda[t]
		}
		w.q[i] = w.v[i] * w.inv[i]
		w.inclusive[k] = max(w.inclusive[k], w.q[i])
	}
	w.logp = scratch.Grow(w.logp, b.choices())
	for s, c := range b.chosen {
		w.logp[s] = 0
		if c != none {
			w.logp[s] = w.q[c]
		}
	}
	for i, k := range w.pairOf {
		w.q[i] -= w.inclusive[k]
	}
	kernel.Exp(w.q, w.q)
	clear(w.p)
	for i, k := range w.pairOf {
		w.p[k] += w.q[i]
	}
	for i, k := range w.pairOf {
		w.q[i] /= w.p[k]
	}
	scratch.GrowAll(b.choices(), &w.logsum, &w.out)
	w.chosen = scratch.Grow(w.chosen, b.choices())
	for s := range w.logsum {
		w.logsum[s] = math.Inf(-1)
		if w.outside {
			w.logsum[s] = 0
		}
	}
	for k, s := range w.choiceOf {
		w.inclusive[k] += math.Log(w.p[k])
		w.p[k] = w.dissimilarity(k, lambda) * w.inclusive[k] // A
		w.logsum[s] = max(w.logsum[s], w.p[k])
	}
	clear(w.out)
	for s, top := range w.logsum {
		if w.outside {
			w.out[s] = math.Exp(-top)
		}
	}
	for k, s := range w.choiceOf {
		w.out[s] += math.Exp(w.p[k] - w.logsum[s])
	}
	for s := range w.logsum {
		w.logsum[s] += math.Log(w.out[s])
		w.out[s], w.chosen[s] = 0, none
		if w.outside {
			w.out[s] = math.Exp(-w.logsum[s])
		}
		w.logp[s] -= w.logsum[s]
		if c := b.chosen[s]; c != none {
			k := w.pairOf[c]
			w.chosen[s] = k
			w.logp[s] += w.p[k] - w.inclusive[k]
		}
	}
	for k, s := range w.choiceOf {
		w.p[k] = math.Exp(w.p[k] - w.logsum[s])
	}
	return x
}

// pair finds a block's pairs.
func (w *nestedWorker) pair(b *block) {
	w.parameterOf, w.choiceOf = w.parameterOf[:0], w.choiceOf[:0]
	clear(w.latest)
	for s := range b.end {
		lo, hi := b.span(s)
		begin := len(w.parameterOf)
		for i := lo; i < hi; i++ {
			nest := w.nest[b.alt[i]]
			if nest >= 0 && w.latest[nest] > begin {
				w.pairOf[i] = int32(w.latest[nest] - 1)
				continue
			}
			w.pairOf[i] = int32(len(w.parameterOf))
			parameter := -1
			if nest >= 0 {
				w.latest[nest] = len(w.parameterOf) + 1
				parameter = w.parameter[nest]
			}
			w.parameterOf = append(w.parameterOf, parameter)
			w.choiceOf = append(w.choiceOf, int32(s))
		}
	}
}

// dissimilarity returns a pair's λ.
func (w *nestedWorker) dissimilarity(k int, lambda []float64) float64 {
	if t := w.parameterOf[k]; t >= 0 {
		return lambda[t]
	}
	return 1
}

// probabilities implements worker.
func (w *nestedWorker) probabilities(p, out, logsum []float64, b *block, theta []float64) {
	w.evaluate(b, theta)
	for i, k := range w.pairOf {
		p[i] = w.p[k] * w.q[i]
	}
	copy(out, w.out)
	copy(logsum, w.logsum)
}

// residuals computes the pairs' c and s and the rows' r, with the choices' weights.
func (w *nestedWorker) residuals(b *block, theta []float64, weighted bool) {
	lambda := theta[w.dim():]
	scratch.GrowAll(len(w.p), &w.c, &w.s)
	w.r = scratch.Grow(w.r, b.rows())
	weight := func(s int32) float64 {
		if weighted {
			return b.weightOf(int(s))
		}
		return 1
	}
	for k, s := range w.choiceOf {
		l := w.dissimilarity(k, lambda)
		w.c[k], w.s[k] = w.p[k]*l, w.p[k]
		if w.chosen[s] == int32(k) {
			w.c[k] += 1 - l
			w.s[k]--
		}
		w.c[k] *= weight(s)
		w.s[k] *= weight(s)
	}
	for i, k := range w.pairOf {
		w.r[i] = w.c[k] * w.q[i]
	}
	for s, c := range b.chosen {
		if c != none {
			w.r[c] -= weight(int32(s))
		}
	}
}

// gradients computes z, the scaled utilities' gradients.
func (w *nestedWorker) gradients(b *block, x [][]float64) [][]float64 {
	d := w.dim()
	w.z.resize(d+len(w.parameters), b.rows())
	for j, xj := range x {
		z := w.z.own(j)
		for i, v := range xj {
			z[i] = v * w.inv[i]
		}
	}
	for t := range w.parameters {
		z := w.z.own(d + t)
		for i, k := range w.pairOf {
			z[i] = 0
			if w.parameterOf[k] == t {
				z[i] = -w.v[i] * w.inv[i] * w.inv[i]
			}
		}
	}
	return w.z.row
}

// scores implements worker.
func (w *nestedWorker) scores(dst []float64, b *block, theta []float64) {
	x := w.evaluate(b, theta)
	w.residuals(b, theta, false)
	z := w.gradients(b, x)
	dim := len(z)
	negativeSums(dst, b, w.r, z)
	for k, s := range w.choiceOf {
		if t := w.parameterOf[k]; t >= 0 {
			dst[int(s)*dim+w.dim()+t] -= w.s[k] * w.inclusive[k]
		}
	}
}

// add implements worker.
func (w *nestedWorker) add(sum *sums, b *block, theta []float64) {
	if !w.lawful(theta) {
		sum.value = math.Inf(1)
		return
	}
	x := w.evaluate(b, theta)
	for s, logp := range w.logp {
		sum.value -= b.weightOf(s) * logp
	}
	if sum.gradient == nil {
		return
	}
	w.residuals(b, theta, true)
	z := w.gradients(b, x)
	for j, zj := range z {
		sum.gradient[j] += kernel.Dot(w.r, zj)
	}
	for k, t := range w.parameterOf {
		if t >= 0 {
			sum.gradient[w.dim()+t] += w.s[k] * w.inclusive[k]
		}
	}
	if sum.hessian != nil {
		w.curvature(sum, b, theta, x, z)
	}
}

// curvature adds a block's Hessian.
func (w *nestedWorker) curvature(sum *sums, b *block, theta []float64, x, z [][]float64) {
	d, dim, pairs := w.dim(), len(z), len(w.parameterOf)
	lambda := theta[d:]
	w.mean.resize(dim, pairs)
	w.slope.resize(dim, pairs)
	w.total.resize(dim, b.choices())
	w.product = scratch.Grow(w.product, b.rows())
	w.weighted = scratch.Grow(w.weighted, max(pairs, b.choices()))
	for j, zj := range z {
		mean, slope, total := w.mean.own(j), w.slope.own(j), w.total.own(j)
		clear(mean)
		clear(total)
		for i, k := range w.pairOf {
			mean[k] += w.q[i] * zj[i]
		}
		for k, s := range w.choiceOf {
			slope[k] = w.dissimilarity(k, lambda) * mean[k]
			if t := w.parameterOf[k]; t >= 0 && t == j-d {
				slope[k] += w.inclusive[k]
			}
			total[s] += w.p[k] * slope[k]
		}
	}
	at := 0
	for j, zj := range z {
		add := func(sign float64, v []float64, rows [][]float64) {
			for l := j; l < dim; l++ {
				sum.hessian[at+l-j] += sign * kernel.Dot(v, rows[l])
			}
		}
		for i, k := range w.pairOf {
			w.product[i] = w.c[k] * w.q[i] * zj[i]
		}
		sum.moment[j] += math.Abs(kernel.Dot(w.product, zj))
		add(1, w.product, z)
		for k, c := range w.c {
			w.weighted[k] = c * w.mean.row[j][k]
		}
		add(-1, w.weighted[:pairs], w.mean.row)
		for k, p := range w.p {
			w.weighted[k] = p * b.weightOf(int(w.choiceOf[k])) * w.slope.row[j][k]
		}
		add(1, w.weighted[:pairs], w.slope.row)
		for s, v := range w.total.row[j] {
			w.weighted[s] = b.weightOf(s) * v
		}
		add(-1, w.weighted[:b.choices()], w.total.row)
		at += dim - j
	}
	// Add the second derivatives of y, and the cross terms in λ.
	for t := range w.parameters {
		for i, k := range w.pairOf {
			w.product[i] = 0
			if w.parameterOf[k] == t {
				w.product[i] = -w.r[i] * w.inv[i] * w.inv[i]
			}
		}
		for j := range d {
			cross := kernel.Dot(w.product, x[j])
			for k, of := range w.parameterOf {
				if of == t {
					cross += w.s[k] * w.mean.row[j][k]
				}
			}
			sum.hessian[packedAt(j, d+t, dim)] += cross
		}
		own := 0.0
		for i := range w.product {
			own -= 2 * w.product[i] * w.v[i] * w.inv[i]
		}
		for k, of := range w.parameterOf {
			if of == t {
				own += 2 * w.s[k] * w.mean.row[d+t][k]
			}
		}
		sum.hessian[packedAt(d+t, d+t, dim)] += own
	}
}

// packedAt returns the index of entry (i, j), i ≤ j, in a packed symmetric d×d matrix.
func packedAt(i, j, d int) int { return i*(2*d-i+1)/2 + j - i }
