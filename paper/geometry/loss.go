// Package geometry computes a utility family's expected squared loss over its parameters, and the generalized geometric
// condition that ONL-MNL's regret bound assumes.
//
// The family is small enough to draw: networks of one sine unit with two free parameters and one feature,
//
//	f_w(x) = sin(w_1 x + w_2)
//
// Because sin(z) = sin(π − z), the parameters (w_1, w_2) and (−w_1, π − w_2) give the same function: the loss has two
// global minima, and spurious minima at other frequencies.
package geometry

import (
	"math"
	"math/big"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mat"

	"vitrine/env"
	"vitrine/utility"
)

// Params is a point (w_1, w_2) in the parameter plane.
type Params [2]float64

// Equivalents returns the parameters in box that give the same function as w:
//
//	(w_1, w_2 + 2πk)  and  (−w_1, π − w_2 + 2πk),  k an integer
func Equivalents(w Params, box Box) []Params {
	var all []Params
	for _, v := range []Params{w, {-w[0], math.Pi - w[1]}} {
		first := math.Ceil((box.Low[1] - v[1]) / (2 * math.Pi))
		for v[1] += 2 * math.Pi * first; box.contains(v); v[1] += 2 * math.Pi {
			all = append(all, v)
		}
	}
	return all
}

// Loss is the expected squared loss in Assumption "Generalized geometric condition on the squared loss",
//
//	ℓ_sq(w) = E_{X~D, S~Unif(𝒮)}[Σ_{i∈S} (f_w(x_i) − f_w*(x_i))²]
//
// The items in X are identically distributed, and S does not depend on X. The sum therefore consists of |S| terms with
// the same mean, and the expectation factorises:
//
//	ℓ_sq(w) = E|S| · E_x[(f_w(x) − f_w*(x))²]
//
// The second factor is a Gauss–Legendre quadrature over the features. A loss is not safe for concurrent use.
type Loss struct {
	model  *utility.MLP
	size   float64    // E|S|
	nodes  *mat.Dense // n×1, the features
	weight []float64  // n weights that sum to 1
	truth  []float64  // n, f_w* at the nodes

	params []float64  // the model's; the first two are free
	u      []float64  // n
	g      *mat.Dense // n×d_w
}

// nodes is the number of quadrature nodes. The loss is a mean of cosines of at most 2(|w_1| + |w_1*|) x, for which the
// rule is exact to rounding for |w_1| up to about 8 on [−3, 3].
const nodes = 64

// NewLoss returns ℓ_sq around w* = truth, for items with one feature drawn from contexts and E|S| = size.
func NewLoss(truth Params, contexts env.Uniform, size float64) *Loss {
	l := &Loss{
		model:  utility.NewMLP(1, []int{1}, utility.Sine),
		size:   size,
		weight: make([]float64, nodes),
		truth:  make([]float64, nodes),
		params: []float64{0, 0, 1, 0}, // W_1, b_1, W_2, b_2
		u:      make([]float64, nodes),
	}
	x := make([]float64, nodes)
	quad.Legendre{}.FixedLocations(x, l.weight, contexts.Low, contexts.High)
	for k := range l.weight {
		l.weight[k] /= contexts.High - contexts.Low
	}
	l.nodes = mat.NewDense(nodes, 1, x)
	l.g = mat.NewDense(nodes, l.model.NumParams(), nil)
	copy(l.params, truth[:])
	l.model.Utilities(l.truth, l.params, l.nodes)
	return l
}

// ExpectedSize returns E|S| for S drawn uniformly from the nonempty sets of at
// most k of n items,
//
//	Σ_{l=1}^k l C(n, l) / Σ_{l=1}^k C(n, l)
//
// exact up to the last rounding. It panics unless 1 ≤ k ≤ n.
func ExpectedSize(n, k int) float64 {
	if k < 1 || k > n {
		panic("geometry: sets of at most k of n items need 1 ≤ k ≤ n")
	}
	var sets, items, c big.Int
	for l := range int64(k) {
		c.Binomial(int64(n), l+1)
		sets.Add(&sets, &c)
		items.Add(&items, c.Mul(&c, big.NewInt(l+1)))
	}
	size, _ := new(big.Rat).SetFrac(&items, &sets).Float64()
	return size
}

// At returns ℓ_sq(w).
func (l *Loss) At(w Params) float64 {
	copy(l.params, w[:])
	l.model.Utilities(l.u, l.params, l.nodes)
	sum := 0.0
	for k, u := range l.u {
		sum += l.weight[k] * (u - l.truth[k]) * (u - l.truth[k])
	}
	return l.size * sum
}

// Gradient returns
//
//	∇ℓ_sq(w) = 2 E|S| · E_x[(f_w(x) − f_w*(x)) ∇f_w(x)]
func (l *Loss) Gradient(w Params) (g Params) {
	copy(l.params, w[:])
	l.model.Linearize(l.u, l.g, l.params, l.nodes)
	for k, u := range l.u {
		for j := range g {
			g[j] += 2 * l.size * l.weight[k] * (u - l.truth[k]) * l.g.At(k, j)
		}
	}
	return g
}

// Curvature returns the smallest eigenvalue of
//
//	H = 2 E|S| · E_x[∇f_w(x) ∇f_w(x)ᵀ]
//
// which is ℓ_sq's Hessian if f_w = f_w*, because the residuals are then 0.
func (l *Loss) Curvature(w Params) float64 {
	copy(l.params, w[:])
	l.model.Gradients(l.g, l.params, l.nodes)
	var a, b, c float64 // H = [a b; b c]
	for k, weight := range l.weight {
		h := 2 * l.size * weight
		a += h * l.g.At(k, 0) * l.g.At(k, 0)
		b += h * l.g.At(k, 0) * l.g.At(k, 1)
		c += h * l.g.At(k, 1) * l.g.At(k, 1)
	}
	return (a+c)/2 - math.Hypot((a-c)/2, b)
}
