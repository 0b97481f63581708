package utility

import "vitrine/internal/kernel"

// NewWide returns the family of linear utilities plus a network with one hidden layer of odd sigmoids ("wide and deep",
// Cheng and others 2016):
//
//	f_w(x) = aᵀx + b + Σ_k γ_k (2 sigmoid(θ_kᵀ(x, 1)) − 1)
//
// The prior is θ ~ N(0, 1) and γ ~ N(0, 1/m), for m units. NewWide panics if d or units is below 1.
func NewWide(d, units int) *Additive { return newAdditive(d, units, sigmoidUnit{}) }

type sigmoidUnit struct{}

func (sigmoidUnit) name() string { return "wide" }

func (sigmoidUnit) outputs() int { return 1 }

func (sigmoidUnit) inputs(d int) (first, count int) { return 1, d + 1 }

func (sigmoidUnit) apply(h []float64, n int) {
	kernel.Sigmoid(h[:n], h[:n])
	for i, v := range h[:n] {
		h[i] = 2*v - 1
	}
}

func (sigmoidUnit) slope(dst, h, gamma []float64) {
	c := gamma[0] / 2
	for i := range dst {
		dst[i] = c * (1 - float64(h[i]*h[i]))
	}
}

func (sigmoidUnit) precisions(gamma, theta []float64, m int) {
	gamma[0] = float64(m)
	for j := range theta {
		theta[j] = 1
	}
}
