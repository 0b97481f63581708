package mle

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/portable"
)

// Langevin draws from the density π(w) ∝ exp(−U(w)) by the Metropolis-adjusted Langevin algorithm (Roberts and Tweedie
// 1996; Roberts and Rosenthal 1998). With ξ ~ N(0, I) and a root L of a guess LLᵀ of the covariance, it proposes
//
//	w' = w − (h²/2) LLᵀ∇U(w) + h Lξ
//
// and accepts with the probability that leaves π invariant,
//
//	min(1, exp(U(w) − U(w') + (‖ξ‖² − ‖ξ'‖²)/2)),   ξ' = (h/2) Lᵀ(∇U(w) + ∇U(w')) − ξ
//
// where ξ' is the noise that would lead back. A w' at which U is not a number is always rejected.
type Langevin struct {
	Root *mat.TriDense // L, lower triangular, d×d
	Step float64       // h > 0

	grad, next, nextGrad, drift, nextDrift, noise, move *mat.VecDense
}

// Target is a density to draw from.
type Target interface {
	// Gradient stores ∇U(w) in dst and returns U(w).
	Gradient(dst, w []float64) float64
}

// TargetAcceptance is the acceptance rate at which the chain is most efficient as d grows (Roberts and Rosenthal 1998).
const TargetAcceptance = 0.574

// Run makes the given number of moves from w, in place, and returns their mean acceptance probability, or 0 if moves is
// 0. After each move it calls visit, unless visit is nil, with w and U(w). U(w) must be a number at the start.
func (l *Langevin) Run(
	target Target, w []float64, moves int, rng *rand.Rand, visit func(w []float64, u float64),
) float64 {
	d := len(w)
	for _, v := range []**mat.VecDense{&l.grad, &l.next, &l.nextGrad, &l.drift, &l.nextDrift, &l.noise, &l.move} {
		if *v == nil || (*v).Len() != d {
			*v = mat.NewVecDense(d, nil)
		}
	}
	u := target.Gradient(l.grad.RawVector().Data, w)
	l.drift.MulVec(l.Root.T(), l.grad)
	accepted := 0.0
	for range moves {
		for j := range d {
			l.noise.SetVec(j, rng.NormFloat64())
		}
		// Work in the coordinates in which LLᵀ is the identity.
		l.move.AddScaledVec(l.noise, -l.Step/2, l.drift)
		l.next.MulVec(l.Root, l.move)
		next := l.next.RawVector().Data
		for j := range next {
			next[j] = w[j] + float64(l.Step*next[j])
		}
		nextU := target.Gradient(l.nextGrad.RawVector().Data, next)
		l.nextDrift.MulVec(l.Root.T(), l.nextGrad)
		log := u - nextU
		for j := range d {
			xi := l.noise.AtVec(j)
			back := float64(l.Step/2*(l.drift.AtVec(j)+l.nextDrift.AtVec(j))) - xi
			log += float64((float64(xi*xi) - float64(back*back)) / 2)
		}
		p := 0.0
		if log == log {
			p = math.Min(1, portable.Exp(log))
		}
		accepted += p
		if rng.Float64() < p {
			copy(w, next)
			u = nextU
			l.grad, l.nextGrad = l.nextGrad, l.grad
			l.drift, l.nextDrift = l.nextDrift, l.drift
		}
		if visit != nil {
			visit(w, u)
		}
	}
	return accepted / float64(max(moves, 1))
}

// EffectiveSize returns the number of independent draws that would determine the mean as well as the chain's draws x
// do,
//
//	n / (1 + 2 Σ_k ρ_k)
//
// summing the autocorrelations ρ_k until the sum of two neighbours is no longer positive (Geyer 1992, the initial
// positive sequence). The result is at most n, and 1 if all draws are equal.
func EffectiveSize(x []float64) float64 {
	n := len(x)
	mean := 0.0
	for _, v := range x {
		mean += v / float64(n)
	}
	covariance := func(lag int) float64 {
		sum := 0.0
		for t := lag; t < n; t++ {
			sum += float64((x[t] - mean) * (x[t-lag] - mean))
		}
		return sum
	}
	variance := covariance(0)
	if !(variance > 0) {
		return math.Min(1, float64(n))
	}
	time := -1.0 // Σ over pairs of 2(ρ_2k + ρ_{2k+1}), less ρ_0
	for k := 0; k+1 < n; k += 2 {
		pair := (covariance(k) + covariance(k+1)) / variance
		if !(pair > 0) {
			break
		}
		time += 2 * pair
	}
	return float64(n) / math.Max(time, 1)
}
