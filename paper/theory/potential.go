package theory

import "math"

// Potential is the elliptical-potential sum in Lemma sub_lemma:gradient elliptical,
//
//	Σ_s min{1, max_{i∈S_s} ‖∇f_ŵs(x_si)‖²_{V_s⁻¹}} ≤ 2 d_w log(1 + t C_g²/(d_w λ))
//
// over the rounds of Phase II. The zero value is an empty sum.
type Potential struct {
	Sum      float64
	Gradient float64 // largest ‖∇f_ŵs(x_si)‖: C_g over the offered items
	Rounds   int
}

// Add adds a round: norms are ‖∇f‖_{V⁻¹} and gradients ‖∇f‖ for the items in S_s.
func (p *Potential) Add(norms, gradients []float64) {
	largest := 0.0
	for k, n := range norms {
		largest = max(largest, n*n)
		p.Gradient = max(p.Gradient, gradients[k])
	}
	p.Sum += min(1, largest)
	p.Rounds++
}

// Bound returns the lemma's right side, with C_g the largest gradient so far and t the number of rounds in Phase II.
func (p *Potential) Bound(params int, lambda float64) float64 {
	d := float64(params)
	return 2 * d * math.Log(1+float64(p.Rounds)*p.Gradient*p.Gradient/(d*lambda))
}
