package bandit

import (
	"math"

	"vitrine/internal/portable"
)

// TheorySchedule is the schedule of Theorem "Regret Bound of ONL-MNL": t_0, λ and β_t
// from the constants of the problem. The theorem hides constants and logarithms. These
// are the last displays of its proof, with C_0 = 4(1+6√2)² as given there; the absolute
// constants without a value (C̃ and C̃_α) are 1:
//
//	t_0 = ⌈κ^(−3/2) d_w √T⌉
//	ζ   = log K · log(t_0 C_g) · log(1/δ)                     not below 0
//	ζ_1 = log(1 + T/d_w) · log(T²π²/δ)                        at λ = C_g², the least there
//	C_λ = 2 C_0 C_h d_w κ^(−5/2) (C_0 C_f² C_h ζ + √(C_0² C_f⁴ C_h² κ⁴ ζ² + κ⁷ μ² ζ_1)) / μ
//	λ   = max(C_λ √T, C_g²)
//	α_t = d_w log(1 + T C_g²/(d_w λ)) log(t²π²/δ)
//	β_t = C_0/κ (α_t + C_h² κ⁻⁴ d_w³ C_f⁴ ζ² t/(μ t_0)² + λ κ⁻² d_w C_f² ζ/(μ t_0))
//
// These are Appendix "Proof of Lemma (Confidence set)", lines 596 (ζ), 968
// (C_λ), 1093 (λ ≥ C_g²), 754 (α_t) and 1004 (β_t) of the paper's source.
type TheorySchedule struct {
	Rounds, Size, Params int     // T, K, d_w
	Kappa, Mu, Delta     float64 // κ ∈ (0, ¼], μ > 0, δ ∈ (0, 1)
	Cf, Cg, Ch           float64 // bounds on |f|, ‖∇f‖ and ‖∇²f‖; C_h may be 0
}

// confidence0 is C_0.
var confidence0 = 4 * math.Pow(1+6*math.Sqrt2, 2)

// Warmup returns t_0, a whole number.
func (s TheorySchedule) Warmup() float64 {
	return math.Ceil(math.Pow(s.Kappa, -1.5) * float64(s.Params) * math.Sqrt(float64(s.Rounds)))
}

// MinRounds returns the horizon T = t_0. Phase II begins only under a longer horizon,
//
//	t_0 < T  ⟺  T > κ⁻³ d_w²    (up to rounding)
func (s TheorySchedule) MinRounds() float64 {
	return math.Pow(s.Kappa, -3) * float64(s.Params) * float64(s.Params)
}

// zeta returns ζ.
func (s TheorySchedule) zeta() float64 {
	return max(portable.Log(float64(s.Size))*portable.Log(s.Warmup()*s.Cg)*portable.Log(1/s.Delta), 0)
}

// Lambda returns λ.
func (s TheorySchedule) Lambda() float64 {
	t, d := float64(s.Rounds), float64(s.Params)
	zeta1 := portable.Log(1+t/d) * portable.Log(t*t*math.Pi*math.Pi/s.Delta)
	c := confidence0 * s.Cf * s.Cf * s.Ch * s.zeta()
	root := math.Sqrt(float64(c*c*math.Pow(s.Kappa, 4)) + float64(math.Pow(s.Kappa, 7)*s.Mu*s.Mu*zeta1))
	scale := 2 * confidence0 * s.Ch * d * math.Pow(s.Kappa, -2.5) * (float64(c) + root) / s.Mu
	return max(scale*math.Sqrt(t), s.Cg*s.Cg)
}

// Radius returns β_t.
func (s TheorySchedule) Radius(t int) float64 {
	d, lambda, t0, zeta := float64(s.Params), s.Lambda(), s.Warmup(), s.zeta()
	alpha := d * portable.Log(1+float64(s.Rounds)*s.Cg*s.Cg/(d*lambda)) *
		portable.Log(float64(t)*float64(t)*math.Pi*math.Pi/s.Delta)
	linearised := math.Pow(s.Ch*s.Cf*s.Cf*zeta/(s.Mu*t0), 2) * math.Pow(s.Kappa, -4) * d * d * d * float64(t)
	pilot := lambda * math.Pow(s.Kappa, -2) * d * s.Cf * s.Cf * zeta / (s.Mu * t0)
	return confidence0 / s.Kappa * (float64(alpha) + float64(linearised) + float64(pilot))
}
