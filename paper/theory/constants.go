package theory

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/env"
	"vitrine/utility"
)

// Constants are estimates of the constants in the assumptions. The paper takes extrema over all of 𝒳 and 𝒲. Here they
// are over a sample of items at one w, so the estimated bounds are too small, and κ and μ too large.
type Constants struct {
	Kappa float64 `json:"kappa"` // κ: the smallest p(0|S) p(i|S) over sets of K items
	Cf    float64 `json:"c_f"`   // the largest |f|
	Cg    float64 `json:"c_g"`   // the largest ‖∇f‖
	Ch    float64 `json:"c_h"`   // the largest ‖∇²f‖, the operator norm
	Mu    float64 `json:"mu"`    // λ_min(∇²ℓ_sq(w)), the largest μ of local strong convexity
}

// Sample holds the numbers of items and sets for the estimates.
type Sample struct {
	Items    int     // for f, ∇f and ℓ_sq
	Hessians int     // how many of those items for ∇²f
	Sets     int     // for κ
	Expected float64 // E|S|, for ℓ_sq
}

// Measure estimates the constants at w for items from contexts, and sets of size items. ∇²f is computed by central
// differences of ∇f, with an error of some 1e-9.
func Measure(m utility.Model, w []float64, contexts env.Contexts, size int, n Sample, rng *rand.Rand) Constants {
	x := mat.NewDense(n.Items, m.NumFeatures(), nil)
	contexts.Draw(x, rng)
	u, g := make([]float64, n.Items), mat.NewDense(n.Items, len(w), nil)
	utility.Linearize(m, u, g, w, x)

	c := Constants{Kappa: kappa(u, size, n.Sets, rng), Mu: convexity(g, n.Expected)}
	for i, f := range u {
		c.Cf = max(c.Cf, math.Abs(f))
		c.Cg = max(c.Cg, floats.Norm(g.RawRowView(i), 2))
	}
	for _, h := range hessians(m, w, x.Slice(0, n.Hessians, 0, m.NumFeatures()).(*mat.Dense)) {
		values := eigenvalues(h)
		c.Ch = max(c.Ch, -values[0], values[len(values)-1])
	}
	return c
}

// convexity returns the smallest eigenvalue of
//
//	∇²ℓ_sq(w*) = 2 E|S| E[∇f_w*(x) ∇f_w*(x)ᵀ]
//
// where the rows of g are ∇f_w*(x) and E|S| is expected.
func convexity(g *mat.Dense, expected float64) float64 {
	n, _ := g.Dims()
	var second mat.SymDense
	second.SymOuterK(2*expected/float64(n), g.T())
	return max(eigenvalues(&second)[0], 0)
}

// kappa returns the smallest p(0|S) p(i|S) over sets of the given size, with utilities drawn from u.
func kappa(u []float64, size, sets int, rng *rand.Rand) float64 {
	minimum := 1.0
	set, p := make([]float64, size), make([]float64, size+1)
	for range sets {
		for k := range set {
			set[k] = u[rng.IntN(len(u))]
		}
		vitrine.Probabilities(p, set)
		for _, q := range p[1:] {
			minimum = min(minimum, p[0]*q)
		}
	}
	return minimum
}

// KappaOfNetworks returns the infimum of p(0|S) p(i|S) over sets of any K items and networks with one layer of m
// sigmoids and ‖w‖ ≤ norm,
//
//	κ = min e^a / (1 + e^a + (K−1) e^b)²,   a = c + Σ_k min(v_k, 0),  b = c + Σ_k max(v_k, 0)
//
// over ‖(v, c)‖ = norm: one item is at the network's minimum and all others at its maximum. Unbounded features approach
// both with any hidden weights. −log κ is convex in (a, b), so the v_k at the minimum are equal. That leaves one angle,
// which is searched in steps that give six digits.
func KappaOfNetworks(norm float64, hidden, size int) float64 {
	const steps = 1 << 14
	minimum := 1.0
	for k := range steps {
		sin, cos := math.Sincos(2 * math.Pi * float64(k) / steps)
		c, v := norm*cos, norm*sin*math.Sqrt(float64(hidden))
		a, b := c+min(v, 0), c+max(v, 0)
		sum := 1 + math.Exp(a) + float64(size-1)*math.Exp(b)
		minimum = min(minimum, math.Exp(a)/(sum*sum))
	}
	return minimum
}

// hessians returns ∇²f_w at each row of x.
func hessians(m utility.Model, w []float64, x *mat.Dense) []*mat.SymDense {
	const step = 1e-5
	n, _ := x.Dims()
	d := len(w)
	all := make([]*mat.SymDense, n)
	for i := range all {
		all[i] = mat.NewSymDense(d, nil)
	}
	w = append([]float64(nil), w...)
	ahead, behind := mat.NewDense(n, d, nil), mat.NewDense(n, d, nil)
	for j := range d {
		at := w[j]
		w[j] = at + step
		m.Gradients(ahead, w, x)
		w[j] = at - step
		m.Gradients(behind, w, x)
		w[j] = at
		for i, h := range all {
			for k := range d {
				// Entries (j,k) and (k,j) are halves of the symmetric part.
				part := (ahead.At(i, k) - behind.At(i, k)) / (4 * step)
				if k == j {
					part *= 2
				}
				h.SetSym(j, k, h.At(j, k)+part)
			}
		}
	}
	return all
}

// eigenvalues returns a symmetric matrix's eigenvalues, smallest first.
func eigenvalues(s mat.Symmetric) []float64 {
	var e mat.EigenSym
	if !e.Factorize(s, false) {
		panic("theory: a symmetric matrix without eigenvalues: it is not finite")
	}
	return e.Values(nil)
}
