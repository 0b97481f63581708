package utility

import "vitrine/internal/kernel"

// NewSpectral returns the family of linear utilities plus waves,
//
//	f_w(x) = aᵀx + b + Σ_k α_k sin(θ_kᵀx) + β_k cos(θ_kᵀx),  γ_k = (α_k, β_k)
//
// The prior is θ ~ N(0, 9) for frequencies and γ ~ N(0, 1/m) for amplitudes, for m units. NewSpectral panics if d or
// units is below 1.
func NewSpectral(d, units int) *Additive { return newAdditive(d, units, waveUnit{}) }

type waveUnit struct{}

func (waveUnit) name() string { return "spectral" }

func (waveUnit) outputs() int { return 2 }

func (waveUnit) inputs(d int) (first, count int) { return 1, d }

func (waveUnit) apply(h []float64, n int) {
	kernel.Sincos(h[:n], h[n:2*n], h[:n])
}

func (waveUnit) slope(dst, h, gamma []float64) {
	n := len(dst)
	sin, cos := h[:n], h[n:2*n]
	for i := range dst {
		dst[i] = float64(gamma[0]*cos[i]) - float64(gamma[1]*sin[i])
	}
}

func (waveUnit) precisions(gamma, theta []float64, m int) {
	gamma[0], gamma[1] = float64(m), float64(m)
	for j := range theta {
		theta[j] = precision(3)
	}
}
