package abtest

import (
	"vitrine/internal/portable"
)

// Ratio continuously tests whether units arrive in the expected shares: the sequential test of Lindon and Malek (2022,
// Anytime-valid inference for multinomial count data, NeurIPS 35). Its evidence is the likelihood of the counts under a
// Dirichlet prior with the parameters κp against the likelihood under p,
//
//	M_n = Π_t q_t(i_t)/p(i_t),   q_t(i) = (n_i + κ p_i)/(n + κ),   κ = 100
//
// If the shares are p, this is a martingale of mean 1, so that P(for some n: M_n ≥ 1/α) ≤ α. When the shares change,
// the counts start again, and the product continues.
//
// A unit counts when its first decision is made, before its variant can affect anything. Variants may differ in how many
// of their decisions are withdrawn: units of decisions that count would then look divided wrongly.
//
// The zero value contains no units.
type Ratio struct {
	Counts []uint64 // since the shares last changed
	Log    float64  // log M_n
	Max    float64  // maximum so far, at least 0
}

const prior = 100 // κ

// Begin starts new shares.
func (r *Ratio) Begin(classes int) { r.Counts = make([]uint64, classes) }

// Add adds a unit of a class with the share p > 0.
func (r *Ratio) Add(class int, p float64) {
	total := uint64(0)
	for _, c := range r.Counts {
		total += c
	}
	q := (float64(r.Counts[class]) + float64(prior*p)) / (float64(total) + prior)
	r.Log += portable.Log(q / p)
	r.Max = max(r.Max, r.Log)
	r.Counts[class]++
}

// P returns the p-value, 1/max M. If the shares are right, the probability that it ever falls below x is at most x.
func (r *Ratio) P() float64 { return portable.Exp(-r.Max) }
