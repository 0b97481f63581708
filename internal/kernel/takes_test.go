package kernel_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"vitrine/internal/kernel"
)

// The expected takes and the loss are their definitions, in numbers of 2,500 bits, and stay so where exp(u) does not
// fit a float64.
func TestTakes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 38))
	for _, shift := range []float64{0, 5, -30, 300, -300, 699, -699} {
		for n := range 4 {
			u := make([]float64, 1+rng.IntN(6))
			sum := new(big.Float).SetPrec(2500)
			v := make([]*big.Float, len(u))
			for k := range u {
				u[k] = math.Round(shift + 3*rng.NormFloat64())
				v[k] = power(int(u[k]))
				sum.Add(sum, v[k])
			}
			with := new(big.Float).Add(sum, big.NewFloat(1))
			w := append([]float64(nil), u...)
			logOutside, loss := kernel.Takes(w, n)
			near := func(what string, got, want float64) {
				t.Helper()
				if !(math.Abs(got-want) <= 1e-13*math.Abs(want)+1e-300) {
					t.Errorf("u around %v, n = %d: %s = %v, want %v", shift, n, what, got, want)
				}
			}
			for k := range u {
				p, _ := new(big.Float).Quo(v[k], with).Float64()
				q, _ := new(big.Float).Quo(v[k], sum).Float64()
				if n > 0 { // Takes is for pages with further takes: 1 − p_0 alone is not precise
					near("a take", w[k], p+float64(n)*q)
				}
			}
			near("log p_0", logOutside, -logOf(with))
			near("the loss", loss, logOf(with)+float64(n)*logOf(sum))
			near("LogSumExp", kernel.LogSumExp(u), logOf(sum))

			// The Hessian of the loss in a utility, by its definition.
			first, _ := new(big.Float).Quo(v[0], with).Float64()
			later, _ := new(big.Float).Quo(v[0], sum).Float64()
			if n > 0 {
				near("∂²/∂u²", w[0]-kernel.Shrinkage(w, n)*w[0]*w[0]+1, first*(1-first)+float64(n)*later*(1-later)+1)
				mean := []float64{w[0]}
				positive := kernel.MeanTake(mean, math.Exp(logOutside), n) * mean[0] * mean[0]
				for k := range w {
					off := mean[0]
					if k == 0 {
						off--
					}
					positive += w[k] * off * off
				}
				near("∂²/∂u² in positive terms", positive+1, first*(1-first)+float64(n)*later*(1-later)+1)
			}
		}
	}
	if !math.IsInf(kernel.LogSumExp(nil), -1) || kernel.Shrinkage([]float64{0.2, 0.3}, 0) != 1 {
		t.Error("no entries, or no further takes")
	}
	w := []float64{-5000, -5001}
	if logOutside, loss := kernel.Takes(w, 1); math.Abs(w[0]+w[1]-1) > 1e-15 || logOutside != 0 ||
		math.Abs(loss+5000-math.Log1p(math.Exp(-1))) > 1e-12 {
		t.Errorf("of utilities near −5000: %v, %v, %v", w, logOutside, loss)
	}
}

// power returns eᵏ.
func power(k int) *big.Float {
	e, term := new(big.Float).SetPrec(2500).SetInt64(1), new(big.Float).SetPrec(2500).SetInt64(1)
	for i := int64(1); i < 300; i++ {
		term.Quo(term, new(big.Float).SetInt64(i))
		e.Add(e, term)
	}
	p := new(big.Float).SetPrec(2500).SetInt64(1)
	for range max(k, -k) {
		p.Mul(p, e)
	}
	if k < 0 {
		p.Quo(new(big.Float).SetPrec(2500).SetInt64(1), p)
	}
	return p
}

// logOf returns log x, precise to the last bits also for x near 1.
func logOf(x *big.Float) float64 {
	mantissa := new(big.Float).SetPrec(2500)
	exponent := x.MantExp(mantissa)
	m, _ := mantissa.Float64()
	if off, _ := new(big.Float).SetPrec(2500).Sub(x, big.NewFloat(1)).Float64(); math.Abs(off) < 0.5 {
		return math.Log1p(off)
	}
	return math.Log(m) + float64(exponent)*math.Ln2
}
