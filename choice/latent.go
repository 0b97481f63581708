package choice

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"vitrine/internal/kernel"
	"vitrine/internal/scratch"
)

// latent is the latent class model: a decision maker n belongs to class c with the probability
//
//	π_nc = exp(γ_cᵀz_n) / Σ_k exp(γ_kᵀz_n),  γ_1 = 0
//
// where z_n is 1 and the membership variables, and chooses by MNL with the coefficients β_c. A panel holds one decision
// maker's choices; without panels every choice is its own decision maker. With the product L_nc of the choices' MNL
// probabilities, the posterior h_c = π_c L_c / Σ_k π_k L_k, and the derivatives g_c and H_c of log π_c L_c in θ = (β,
// γ),
//
//	∇log L  = Σ_c h_c g_c = ḡ
//	∇²log L = Σ_c h_c H_c + Σ_c h_c g_c g_cᵀ − ḡ ḡᵀ
//
// The first sum is the Hessian if the classes were known. Newton steps with this part alone are EM steps with a
// one-step maximisation (Lange 1995): they are safe far from the maximum, where the Hessian is not definite. Source:
// Train (2009), Section 14.2.
type latent struct {
	*design
	outside    bool
	classes    int
	membership []int // indices of variables in the data
	labels     []string
	seed       uint64
	starts     int
	complete   bool // whether to use only the Hessian for known classes
}

// newLatent resolves the membership variables against data.
func newLatent(g *design, m *Model, d *Data) (*latent, error) {
	if err := checkPanelWeights(d); err != nil {
		return nil, err
	}
	membership, err := d.indices("model.membership", m.Membership)
	if err != nil {
		return nil, err
	}
	for k, v := range membership {
		if who := d.varying(v); who != "" {
			return nil, fmt.Errorf("model.membership: %s varies among the rows of %s: use one value per decision maker, "+
				"for example the mean", m.Membership[k], who)
		}
	}
	return &latent{design: g, outside: d.Outside, classes: m.Classes, membership: membership, labels: m.Membership,
		seed: m.Seed, starts: m.starts()}, nil
}

func (l *latent) names() (names []string) {
	for c := range l.classes {
		for _, name := range l.design.names {
			names = append(names, fmt.Sprintf("%s (class %d)", name, c+1))
		}
	}
	for c := 1; c < l.classes; c++ {
		names = append(names, fmt.Sprintf("class %d", c+1))
		for _, name := range l.labels {
			names = append(names, fmt.Sprintf("%s in class %d", name, c+1))
		}
	}
	return names
}

// start implements startable: MNL's estimate, moved at random for each class by about half a unit of utility per
// coefficient.
func (l *latent) start(mnl *minimum, n int) []float64 {
	rng := rand.New(rand.NewPCG(l.seed, uint64(n)))
	var theta []float64
	for range l.classes {
		for j, b := range mnl.theta {
			theta = append(theta, b+0.5*rng.NormFloat64()/math.Sqrt(mnl.moment[j]/mnl.origin.weights()))
		}
	}
	return append(theta, make([]float64, (l.classes-1)*(1+len(l.membership)))...)
}

// climb implements several: climb with the steps for known classes, and finish with Newton's.
func (l *latent) climb() (likelihood, int) {
	climbing := *l
	climbing.complete = true
	return &climbing, l.starts
}

func (l *latent) worker() worker {
	w := &latentWorker{latent: l, dim: l.classes*l.design.dim() + (l.classes-1)*(1+len(l.membership))}
	for range l.classes {
		w.class = append(w.class, mnlWorker{mnl: mnl{design: l.design, outside: l.outside}})
	}
	w.logl, w.prior, w.z = make([]float64, l.classes), make([]float64, l.classes), make([]float64, 1+len(l.membership))
	w.gradient, w.mean = make([]float64, w.dim), make([]float64, w.dim)
	w.part = newSums(l.design.dim(), second)
	return w
}

type latentWorker struct {
	*latent
	dim   int // length of θ
	class []mnlWorker

	logl           []float64 // by class: log π_c L_c, later h_c
	prior          []float64 // by class: π_c
	z              []float64
	posterior      matrix // by class: w h_c for each choice
	scored         matrix // by class: the choices' scores
	gradient, mean []float64
	part           *sums
	p              []float64
	out, logsum    []float64
}

func (w *latentWorker) coefficients(theta []float64, c int) []float64 {
	d := w.design.dim()
	return theta[c*d : (c+1)*d]
}

// member returns the offset of γ_c in θ, for c ≥ 1.
func (w *latentWorker) member(c int) int { return w.classes*w.design.dim() + (c-1)*len(w.z) }

// priors computes a decision maker's z and π.
func (w *latentWorker) priors(b *block, u unit, theta []float64) {
	row, _ := b.span(u.from)
	w.z[0] = 1
	for k, v := range w.membership {
		w.z[1+k] = b.x[v][row]
	}
	w.prior[0] = 0
	for c := 1; c < len(w.prior); c++ {
		w.prior[c] = kernel.Dot(theta[w.member(c):][:len(w.z)], w.z)
	}
	shares(w.prior)
}

// shares replaces each v_i by exp(v_i) / Σ_j exp(v_j), and returns log Σ_j exp(v_j).
func shares(v []float64) float64 {
	top, sum := slices.Max(v), 0.0
	for i := range v {
		v[i] = math.Exp(v[i] - top)
		sum += v[i]
	}
	for i := range v {
		v[i] /= sum
	}
	return top + math.Log(sum)
}

// posteriors computes a decision maker's π and h, and returns log Σ_c π_c L_c.
func (w *latentWorker) posteriors(b *block, u unit, theta []float64) float64 {
	w.priors(b, u, theta)
	for c := range w.logl {
		w.logl[c] = math.Log(w.prior[c]) + kernel.Sum(w.class[c].logp[u.from:u.to])
	}
	return shares(w.logl)
}

// add implements worker.
func (w *latentWorker) add(s *sums, b *block, theta []float64) {
	for c := range w.class {
		w.class[c].evaluate(b, w.coefficients(theta, c))
	}
	w.posterior.resize(w.classes, b.choices())
	for c := range w.classes {
		w.posterior.own(c)
	}
	if s.hessian != nil && !w.complete {
		w.score(b, theta)
	}
	units(b, func(u unit) {
		weight := b.weightOf(u.from)
		s.value -= weight * w.posteriors(b, u, theta)
		for c, h := range w.logl {
			for t := u.from; t < u.to; t++ {
				w.posterior.row[c][t] = weight * h
			}
		}
		if s.gradient != nil {
			w.membershipSums(s, weight)
		}
		if s.hessian != nil && !w.complete {
			w.between(s, u, weight)
		}
	})
	if s.gradient == nil {
		return
	}
	// Given the posteriors, each class is a weighted MNL.
	d := w.design.dim()
	for c := range w.class {
		weighted := *b
		weighted.weight = w.posterior.row[c]
		part := &sums{gradient: s.gradient[c*d : (c+1)*d]}
		if s.hessian != nil {
			clear(w.part.hessian)
			part.hessian, part.moment = w.part.hessian, s.moment[c*d:(c+1)*d]
		}
		w.class[c].add(part, &weighted, w.coefficients(theta, c))
		if s.hessian == nil {
			continue
		}
		for i := range d {
			for j := i; j < d; j++ {
				s.hessian[packedAt(c*d+i, c*d+j, w.dim)] += part.hessian[packedAt(i, j, d)]
			}
		}
	}
}

// membershipSums adds log π's gradient and Hessian in γ.
func (w *latentWorker) membershipSums(s *sums, weight float64) {
	for c := 1; c < w.classes; c++ {
		at := w.member(c)
		kernel.Axpy(s.gradient[at:at+len(w.z)], weight*(w.prior[c]-w.logl[c]), w.z)
		if s.hessian == nil {
			continue
		}
		for k := c; k < w.classes; k++ {
			cross := -w.prior[c] * w.prior[k]
			if k == c {
				cross += w.prior[c]
			}
			for i, zi := range w.z {
				for j, zj := range w.z {
					if k > c || j >= i {
						s.hessian[packedAt(at+i, w.member(k)+j, w.dim)] += weight * cross * zi * zj
					}
				}
				if k == c {
					s.moment[at+i] += weight * w.prior[c] * zi * zi
				}
			}
		}
	}
}

// score computes the choices' scores in each class.
func (w *latentWorker) score(b *block, theta []float64) {
	d := w.design.dim()
	w.scored.resize(w.classes, b.choices()*d)
	for c := range w.class {
		// Computing the scores leaves log p(chosen) unchanged.
		w.class[c].scores(w.scored.own(c), b, w.coefficients(theta, c))
	}
}

// gradientOf stores the gradient of a decision maker's log π_c L_c.
func (w *latentWorker) gradientOf(c int, u unit) {
	d := w.design.dim()
	clear(w.gradient)
	for t := u.from; t < u.to; t++ {
		kernel.Axpy(w.gradient[c*d:(c+1)*d], 1, w.scored.row[c][t*d:(t+1)*d])
	}
	for k := 1; k < w.classes; k++ {
		kernel.Axpy(w.gradient[w.member(k):][:len(w.z)], indicator(k == c)-w.prior[k], w.z)
	}
}

// between adds a decision maker's −Σ_c h_c g_c g_cᵀ + ḡ ḡᵀ.
func (w *latentWorker) between(s *sums, u unit, weight float64) {
	clear(w.mean)
	for c, h := range w.logl {
		w.gradientOf(c, u)
		kernel.SymRankOne(s.hessian, -weight*h, w.gradient)
		kernel.Axpy(w.mean, h, w.gradient)
	}
	kernel.SymRankOne(s.hessian, weight, w.mean)
}

// scores implements worker. A decision maker's score is in the row of the first choice; the other rows are 0.
func (w *latentWorker) scores(dst []float64, b *block, theta []float64) {
	w.score(b, theta)
	clear(dst)
	units(b, func(u unit) {
		w.posteriors(b, u, theta)
		mean := dst[u.from*w.dim : (u.from+1)*w.dim]
		for c, h := range w.logl {
			w.gradientOf(c, u)
			kernel.Axpy(mean, h, w.gradient)
		}
	})
}

// probabilities implements worker, for decision makers with unknown class.
func (w *latentWorker) probabilities(p, out, logsum []float64, b *block, theta []float64) {
	clear(p)
	clear(out)
	clear(logsum)
	w.p = scratch.Grow(w.p, b.rows())
	scratch.GrowAll(b.choices(), &w.out, &w.logsum)
	for c := range w.class {
		w.class[c].probabilities(w.p, w.out, w.logsum, b, w.coefficients(theta, c))
		units(b, func(u unit) {
			w.priors(b, u, theta)
			lo, hi := b.rowsOf(u)
			kernel.Axpy(p[lo:hi], w.prior[c], w.p[lo:hi])
			kernel.Axpy(out[u.from:u.to], w.prior[c], w.out[u.from:u.to])
			kernel.Axpy(logsum[u.from:u.to], w.prior[c], w.logsum[u.from:u.to])
		})
	}
}
