package utility

import "vitrine/internal/kernel"

// NewSpectral returns the family of a linear utility plus waves,
//
//	f_w(x) = aᵀx + b + Σ_k α_k sin(θ_kᵀx) + β_k cos(θ_kᵀx),  γ_k = (α_k, β_k)
//
// Its prior has frequencies θ ~ N(0, 9) and amplitudes γ ~ N(0, 1/m), for m
// units. It panics if d or the number of units is below 1.
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
