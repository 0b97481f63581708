package mle

import (
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/internal/gram"
	"vitrine/utility"
)

// Recursive follows the maximum of the penalised likelihood of utilities u_k(w) = g_kᵀw, with the penalty (λ/2)‖w‖².
// Neither its memory nor its cost per round grows with the number of rounds. Each round takes one step of [Online] with
// η = σ = 1, an extended Kalman filter whose last Hessian is taken after the step:
//
//	H̃_t     = H_t + ∇²ℓ_t(w_t),  H_1 = λI
//	w_{t+1} = w_t − H̃_t⁻¹ ∇ℓ_t(w_t)
//	H_{t+1} = H_t + ∇²ℓ_t(w_{t+1})
//
// A full fit to the kept rounds replaces w by the maximum and H by the Hessian there: up to round 4096 whenever the rounds
// have increased by a fifth, and then whenever 4096 rounds are kept. From round 4096 on, each fit also makes Laplace's
// approximation of the posterior after the older half the prior of the newer half, and drops the older half. A round of K
// items costs O(K d²) on average, fits included.
type Recursive struct {
	*Online
	model  *utility.Linear
	lambda float64
	kept   *Choices
	prior  *Laplace // of the dropped rounds; nil for N(0, I/λ)
	next   int      // number of kept rounds at the next fit
	zeros  []float64
}

const (
	recursiveWindow = 4096 // number of kept rounds at which a fit drops half of them
	recursiveGrowth = 1.2  // of the number of kept rounds between fits below the window
)

// NewRecursive returns an estimate of d parameters at its first round, which is 0.
func NewRecursive(lambda float64, d int) *Recursive {
	return &Recursive{
		Online: NewOnline(lambda, make([]float64, d), 1, 1), model: utility.NewLinear(d, false), lambda: lambda,
		kept: NewChoices(d), next: 1,
	}
}

// Update learns a round with choice y, and any further takes, among items with utilities Gw.
func (r *Recursive) Update(g *mat.Dense, y vitrine.Choice, more ...vitrine.Choice) {
	n, _ := g.Dims()
	for len(r.zeros) < n {
		r.zeros = append(r.zeros, 0)
	}
	r.Online.Update(r.zeros[:n], g, y, more...)
	r.kept.AppendRows(g, y, more...)
	if r.kept.Rounds() < r.next {
		return
	}
	r.fit()
	if r.next == recursiveWindow {
		r.drop(r.next / 2)
	} else {
		r.next = min(max(r.next+1, int(recursiveGrowth*float64(r.next))), recursiveWindow)
	}
}

// fit moves the estimate to the maximum. If rounding or unbounded utilities prevent that, the filter's estimate stays.
func (r *Recursive) fit() {
	p, err := r.posterior(r.kept)
	if err == nil && r.h.Set(gram.Pack(nil, p.h)) == nil {
		copy(r.w, p.Mode)
	}
}

// posterior returns the approximate posterior after some rounds.
func (r *Recursive) posterior(c *Choices) (*Laplace, error) {
	nll := &NLL{Model: r.model, Choices: c, Ridge: r.lambda, Anchor: r.prior}
	return LevenbergMarquardt{Steps: 30, Tolerance: 1e-6}.Laplace(nll, slices.Clone(r.w))
}

// drop drops the oldest n rounds and makes the posterior after them the prior of the others. If rounding prevents that,
// the prior stays as it is.
func (r *Recursive) drop(n int) {
	if p, err := r.posterior(r.kept.Slice(0, n)); err == nil {
		r.prior = p
	}
	r.kept.Drop(n)
}

// Fields encodes or decodes the estimate. When decoding, r must be of the same dimension.
func (r *Recursive) Fields(f *fields.Fields) {
	r.Online.Fields(f)
	r.kept.Fields(f)
	hasPrior := r.prior != nil
	if f.Flag(&hasPrior); hasPrior {
		LaplaceFields(f, &r.prior, len(r.w))
	}
	f.Count(&r.next)
	f.Check(r.kept.Rounds() < r.next && r.next <= recursiveWindow, "%d rounds are kept, and the next fit is to %d",
		r.kept.Rounds(), r.next)
}
