package abtest

import (
	"vitrine/internal/portable"
)

// Ratio tests at all times whether units come in the expected shares: the sequential test of Lindon and Malek (2022,
// Anytime-valid inference for multinomial count data, NeurIPS 35). Its evidence is the likelihood of the counts under a
// Dirichlet prior with the parameters κp against that under p,
//
//	M_n = Π_t q_t(i_t)/p(i_t),   q_t(i) = (n_i + κ p_i)/(n + κ),   κ = 100
//
// which is a martingale of mean 1 if the shares are p, so that P(for some n: M_n ≥ 1/α) ≤ α. With other
// shares the counts begin again, and the product goes on.
//
// The zero value has no units.
type Ratio struct {
	Counts []uint64 // with the present shares
	Log    float64  // log M_n
	Max    float64  // the largest so far, at least 0
}

const prior = 100 // κ

// Begin begins with other shares.
func (r *Ratio) Begin(classes int) { r.Counts = make([]uint64, classes) }

// Add adds n units of a class with the share p, which is positive.
func (r *Ratio) Add(class int, n uint64, p float64) {
	total := uint64(0)
	for _, c := range r.Counts {
		total += c
	}
	for range n {
		q := (float64(r.Counts[class]) + float64(prior*p)) / (float64(total) + prior)
		r.Log += portable.Log(q / p)
		r.Counts[class]++
		total++
	}
}

// Look notes the evidence. The order of the units before it does not matter.
func (r *Ratio) Look() { r.Max = max(r.Max, r.Log) }

// P returns the p-value, 1/max M: that it is ever below x has a probability of at most x if the shares are right.
func (r *Ratio) P() float64 { return portable.Exp(-r.Max) }
