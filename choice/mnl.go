package choice

import (
	"math"

	"vitrine/internal/kernel"
	"vitrine/internal/scratch"
)

// mnl is the multinomial logit model: with the utilities V = Xθ,
//
//	P_i = exp(V_i) / Σ_j exp(V_j)
//
// over the available alternatives and the outside option, if there is one, with V = 0. Its negative log-likelihood is
// convex:
//
//	∇ℓ  = Σ_s w_s Σ_i (P_i − y_i) x_i
//	∇²ℓ = Σ_s w_s (Σ_i P_i x_i x_iᵀ − m_s m_sᵀ),  m_s = Σ_i P_i x_i
//
// Source: Train (2009), Sections 3.7.1 and 8.
//
// With a network, see [neural], the variables are the gradients of the utilities.
type mnl struct {
	*design
	outside bool
	network *fitted // nil without a network
}

func (m mnl) names() []string { return m.design.names }

func (m mnl) worker() worker { return &mnlWorker{mnl: m} }

type mnlWorker struct {
	mnl
	x            matrix    // variables
	mean         matrix    // √w_s m_s, by coefficient
	p            []float64 // by row: probabilities, later residuals
	out          []float64 // by choice: the probability of the outside option
	logsum, logp []float64 // by choice: log Σ exp V, and the log-likelihood
	product      []float64
	networkScratch
}

// linearize stores the utilities for a block's rows in u, and returns their gradients in θ, column by column.
func (w *mnlWorker) linearize(u []float64, b *block, theta []float64) [][]float64 {
	x := w.columns(&w.x, b)
	utilities(u, x, theta[:w.dim()])
	if w.network != nil {
		w.network.add(u, &w.x, w.dim(), b, theta[w.dim():], &w.networkScratch)
		x = w.x.row
	}
	return x
}

// utilities stores Xθ for the variables x in dst.
func utilities(dst []float64, x [][]float64, theta []float64) {
	clear(dst)
	for j, v := range theta {
		kernel.Axpy(dst, v, x[j])
	}
}

// softmax turns the utilities in a block's rows into probabilities, in place. For each choice it stores the probability
// of the outside option in out (0 if there is none), and the logarithm of the sum of exponentials in logsum.
func softmax(u, out, logsum []float64, b *block, outside bool) {
	lo := 0
	for s, end := range b.end {
		v := u[lo:end]
		lo = int(end)
		largest := math.Inf(-1)
		if outside {
			largest = 0
		}
		for _, x := range v {
			largest = max(largest, x)
		}
		for i := range v {
			v[i] -= largest
		}
		out[s], logsum[s] = -largest, largest
	}
	kernel.Exp(u, u)
	if outside {
		kernel.Exp(out, out)
	} else {
		clear(out)
	}
	lo = 0
	for s, end := range b.end {
		p := u[lo:end]
		lo = int(end)
		sum := out[s]
		for _, x := range p {
			sum += x
		}
		scale := 1 / sum
		for i := range p {
			p[i] *= scale
		}
		out[s] *= scale
		logsum[s] += math.Log(sum)
	}
}

// probabilities implements worker.
func (w *mnlWorker) probabilities(p, out, logsum []float64, b *block, theta []float64) {
	utilities(p, w.columns(&w.x, b), theta[:w.dim()])
	if w.network != nil {
		w.network.add(p, nil, 0, b, theta[w.dim():], &w.networkScratch)
	}
	softmax(p, out, logsum, b, w.outside)
}

// evaluate computes a block's variables, its probabilities and log p(chosen).
func (w *mnlWorker) evaluate(b *block, theta []float64) (x [][]float64) {
	w.p = scratch.Grow(w.p, b.rows())
	scratch.GrowAll(b.choices(), &w.out, &w.logp, &w.logsum)
	x = w.linearize(w.p, b, theta)
	for s, c := range b.chosen {
		w.logp[s] = 0
		if c != none {
			w.logp[s] = w.p[c]
		}
	}
	softmax(w.p, w.out, w.logsum, b, w.outside)
	kernel.Axpy(w.logp, -1, w.logsum)
	return x
}

// scores implements worker.
func (w *mnlWorker) scores(dst []float64, b *block, theta []float64) {
	x := w.evaluate(b, theta)
	for _, c := range b.chosen {
		if c != none {
			w.p[c]--
		}
	}
	negativeSums(dst, b, w.p, x)
}

// negativeSums stores −Σ_i r_i x_ij over the rows of each choice in dst, choices × columns of x.
func negativeSums(dst []float64, b *block, r []float64, x [][]float64) {
	for j, xj := range x {
		for s := range b.end {
			lo, hi := b.span(s)
			dst[s*len(x)+j] = -kernel.Dot(r[lo:hi], xj[lo:hi])
		}
	}
}

// add implements worker.
func (w *mnlWorker) add(s *sums, b *block, theta []float64) {
	x := w.evaluate(b, theta)
	if b.weight == nil {
		s.value -= kernel.Sum(w.logp)
	} else {
		s.value -= kernel.Dot(b.weight, w.logp)
		for c, weight := range b.weight {
			lo, hi := b.span(c)
			for i := lo; i < hi; i++ {
				w.p[i] *= weight
			}
		}
	}
	if s.hessian != nil {
		w.curvature(s, b, x)
	}
	if s.gradient == nil {
		return
	}
	for c, chosen := range b.chosen {
		if chosen != none {
			w.p[chosen] -= b.weightOf(c)
		}
	}
	for j, xj := range x {
		s.gradient[j] += kernel.Dot(w.p, xj)
	}
}

// curvature adds a block's Hessian, given w_s P in the rows. With the columns x_j of the variables, and q_sj = √w_s Σ_i
// P_i x_ij for choice s,
//
//	h_jk = Σ_i w P_i x_ij x_ik − Σ_s q_sj q_sk
func (w *mnlWorker) curvature(s *sums, b *block, x [][]float64) {
	h := s.hessian
	w.mean.resize(len(x), b.choices())
	w.product = scratch.Grow(w.product, b.rows())
	for j, xj := range x {
		t := w.product
		for i, p := range w.p {
			t[i] = p * xj[i]
		}
		q := w.mean.own(j)
		lo := 0
		for c, end := range b.end {
			sum := 0.0
			for _, v := range t[lo:end] {
				sum += v
			}
			lo = int(end)
			q[c] = sum
		}
		for c, weight := range b.weight {
			if weight > 0 {
				q[c] /= math.Sqrt(weight)
			}
		}
		// Row j of the packed Hessian begins after rows 0 … j−1. The columns before j are already multiplied.
		at := j * (2*len(x) - j + 1) / 2
		square := kernel.Dot(t, xj)
		s.moment[j] += square
		h[at] += square
		for k := j + 1; k < len(x); k++ {
			h[at+k-j] += kernel.Dot(t, x[k])
		}
	}
	k := 0
	for i := range x {
		for j := i; j < len(x); j++ {
			h[k] -= kernel.Dot(w.mean.row[i], w.mean.row[j])
			k++
		}
	}
}
