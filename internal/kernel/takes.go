package kernel

import (
	"math"
	"slices"

	"vitrine/internal/portable"
)

// LogSumExp returns log Σ_i exp(x_i), without overflow or underflow, and −∞ for no entries.
func LogSumExp(x []float64) float64 {
	if len(x) == 0 {
		return math.Inf(-1)
	}
	m, sum := slices.Max(x), 0.0
	for _, v := range x {
		sum += portable.Exp(v - m)
	}
	return m + portable.Log(sum)
}

// Takes replaces the utilities u of a page by the expected takes of each item, if someone draws from the page and the
// outside option, and n ≥ 1 others take something,
//
//	p_i + n q_i = (n + 1 − p_0) q_i,   q_i = exp(u_i) / Σ_j exp(u_j)
//
// It returns log p_0 and the part of the loss that does not depend on who took what,
//
//	log(1 + Σ_j exp(u_j)) + n log Σ_j exp(u_j)
//
// It panics if u is empty.
func Takes(u []float64, n int) (logOutside, loss float64) {
	m := slices.Max(u)
	sum := 0.0
	for k, v := range u {
		u[k] = portable.Exp(v - m)
		sum += u[k]
	}
	all := portable.Log1p(sum * portable.Exp(min(m, 0)))
	if m > 0 {
		all = m + portable.Log(portable.Exp(-m)+sum)
	}
	scale := (float64(n+1) - portable.Exp(-all)) / sum
	for k := range u {
		u[k] *= scale
	}
	return -all, all + float64(float64(n)*(m+portable.Log(sum)))
}

// Shrinkage returns the factor s in the Hessian of a page's loss in the utilities,
//
//	diag(w) − s wwᵀ
//
// where w are the expected takes with n further ones, see [Takes]. It is 1 for n = 0, where w are the choice
// probabilities.
func Shrinkage(w []float64, n int) float64 {
	if n == 0 {
		return 1
	}
	sum := 0.0
	for _, v := range w {
		sum += v
	}
	first := sum - float64(n) // 1 − p_0
	return (float64(first*first) + float64(n)) / (sum * sum)
}

// MeanTake scales g = Σ_k w_k g_k to the mean over a take, with the expected takes w for n further ones, see [Takes].
// It returns the weight c of the mean in the Hessian of a page's loss,
//
//	Σ_k w_k (g_k − g)(g_k − g)ᵀ + c ggᵀ,   c = p_0 (1 − p_0)
//
// For n = 0 it leaves g alone and returns p_0.
func MeanTake(g []float64, p0 float64, n int) float64 {
	if n == 0 {
		return p0
	}
	scale := 1 / (float64(n+1) - p0)
	for j := range g {
		g[j] *= scale
	}
	return p0 * (1 - p0)
}
