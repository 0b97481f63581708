package confseq

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Lower bounds the average conditional mean μ_n = (1/n) Σ E[x_t | past] from below, for observations x_t ≥ x̂_t − b_t,
// where the centre x̂_t and the bound b_t are known before x_t. The x_t are unbounded above, and the b_t may grow. With
//
//	ψ_b(λ) = (−log(1 − bλ) − bλ)/b²,  ψ_0(λ) = λ²/2,  bλ < 1
//
// exp(λ Σ (x_t − E[x_t | past]) − Σ ψ_{b_t}(λ) (x_t − x̂_t)²) is a supermartingale (Fan, Grama and Liu 2015,
// Exponential inequalities for martingales with applications, Electronic Journal of Probability 20(1), Lemma 4.1), and
// so is its mean over any fixed λ_j. By Ville's inequality
//
//	P(for some n: μ_n < x̄_n − s_n/n) ≤ α
//	s_n the root of (1/J) Σ_j exp(λ_j s − Σ_t ψ_{b_t}(λ_j) (x_t − x̂_t)²) = 1/α
//
// (Howard, Ramdas, McAuliffe and Sekhon 2021, Time-uniform, nonparametric, nonasymptotic confidence sequences, Annals
// of Statistics 49(2)). The λ_j are halves of each other, starting at √2 divided by the first positive bound. If b_t
// λ_j ≥ 1, λ_j (x_t − x̂_t + b_t) ≥ 0 replaces ψ_{b_t}(λ_j) (x_t − x̂_t)²: the observation counts as its smallest
// possible value, which cannot exceed its mean.
//
// The zero value contains no observations. Unlike [Mean], Lower takes observations one by one, and its bounds are
// tighter.
type Lower struct {
	n            int
	sum, changes float64     // Σ x_t, and its varying part
	first        float64     // the first positive bound
	spent        [10]float64 // Σ_t ψ_{b_t}(λ_j) (x_t − x̂_t)², or its replacement
}

// Add adds the observation base + y, where base is known in advance, and y ≥ −bound. The centre is base plus the mean
// of the y so far.
func (l *Lower) Add(base, y, bound float64) {
	centre := 0.0
	if l.n > 0 {
		centre = l.changes / float64(l.n)
	}
	b := max(bound+centre, 0)
	if l.first == 0 {
		if l.first = b; b == 0 {
			y = 0 // lower it, because no λ is known yet
		}
	}
	if l.first > 0 {
		for j := range l.spent {
			if lambda := l.lambda(j); b*lambda < 1 {
				l.spent[j] += psi(lambda, b) * (y - centre) * (y - centre)
			} else {
				l.spent[j] += lambda * (y + bound)
			}
		}
	}
	l.n++
	l.sum += base + y
	l.changes += y
}

func (l *Lower) lambda(j int) float64 { return math.Sqrt2 / l.first * math.Exp2(-float64(j)) }

// psi returns ψ_b(λ).
func psi(lambda, b float64) float64 {
	x := b * lambda
	if x < 1e-4 { // the series, without cancellation
		return lambda * lambda * (0.5 + x/3)
	}
	return (-math.Log1p(-x) - x) / (b * b)
}

// wealth returns log Σ_j exp(λ_j s − spent_j).
func (l *Lower) wealth(s float64) float64 {
	var logs [len(l.spent)]float64
	for j, spent := range l.spent {
		logs[j] = l.lambda(j)*s - spent
	}
	return floats.LogSumExp(logs[:])
}

// target returns log J/α.
func (l *Lower) target(alpha float64) float64 { return math.Log(float64(len(l.spent)) / alpha) }

// Low returns a lower bound on μ_n. The probability that it ever exceeds μ_n is at most alpha.
func (l *Lower) Low(alpha float64) float64 {
	switch {
	case l.n == 0:
		return math.Inf(-1)
	case l.first == 0:
		return l.sum / float64(l.n) // every observation counts as its known minimum
	}
	target := l.target(alpha)
	inside, outside := 0.0, l.first
	for !math.IsInf(outside, 1) && l.wealth(outside) < target {
		inside, outside = outside, 2*outside
	}
	for range 60 {
		if s := (inside + outside) / 2; l.wealth(s) < target {
			inside = s
		} else {
			outside = s
		}
	}
	return (l.sum - outside) / float64(l.n)
}
