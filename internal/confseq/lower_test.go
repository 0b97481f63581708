package confseq

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Even if checked after every observation, the bound exceeds the average mean in at most a share alpha of the runs: for
// sales, drifting means, growing bounds, and weights without an upper bound.
func TestLowerCoverage(t *testing.T) {
	const alpha, runs, end = 0.1, 400, 1000
	for name, world := range map[string]func(t int, rng *rand.Rand) (base, y, bound, mean float64){
		"sales": func(_ int, rng *rand.Rand) (float64, float64, float64, float64) {
			return 0.25, sale(rng, 0.3, 1) - 0.25, 0.25, 0.3
		},
		"drift": func(t int, rng *rand.Rand) (float64, float64, float64, float64) {
			p := 0.5 + 0.4*math.Sin(float64(t)/100)
			return 0, sale(rng, p, 3), 0, 3 * p
		},
		"bounds grow": func(t int, rng *rand.Rand) (float64, float64, float64, float64) {
			b := 1 + float64(t/100)
			return 0, b * (2*sale(rng, 0.5, 1) - 1), b, 0
		},
		"weights": func(_ int, rng *rand.Rand) (float64, float64, float64, float64) {
			mu := 0.02 + 0.98*rng.Float64()*rng.Float64()
			return 0.5, sale(rng, mu*0.4, 1/mu) - 0.5, 0.5, 0.4
		},
	} {
		wrong := 0
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 8))
			var l Lower
			truth := 0.0
			for n := range end {
				base, y, bound, mean := world(n, rng)
				l.Add(base, y, bound)
				if truth += mean; l.first > 0 && l.wealth(l.sum-truth) >= l.target(alpha) {
					wrong++
					break
				}
			}
		}
		t.Logf("%s: wrong at some time in %d of %d runs", name, wrong, runs)
		if most := alpha*runs + 3*math.Sqrt(alpha*(1-alpha)*runs); float64(wrong) > most {
			t.Errorf("%s: %d of %d runs had a bound on the wrong side at some time, at most %.0f may",
				name, wrong, runs, most)
		}
	}
}

// No λ gains from an observation on average, however large its bound: with the largest λ, for an observation that is
// almost always at the centre and rarely at its bound, also after smaller bounds.
func TestLowerIsFair(t *testing.T) {
	for _, bounds := range [][]float64{{1}, {0.5, 1}, {0.01, 1}, {1e-6, 1}, {2, 1}} {
		for _, rare := range []float64{1e-6, 0.01, 0.1, 0.5, 0.99} {
			var before Lower
			for _, b := range bounds[:len(bounds)-1] {
				before.Add(0, 0, b)
			}
			mean := -rare
			never, once := before, before
			never.Add(0, 0, 1)
			once.Add(0, -1, 1)
			for j := range before.spent {
				factor := func(y float64, after *Lower) float64 {
					return math.Exp(after.lambda(j)*(y-mean) - (after.spent[j] - before.spent[j]))
				}
				if e := (1-rare)*factor(0, &never) + rare*factor(-1, &once); e > 1+1e-12 {
					t.Errorf("bounds %v, a share of %v at the bound: λ_%d gains a factor %v", bounds, rare, j, e)
				}
			}
		}
	}
}

// The inequality of Fan, Grama and Liu behind ψ, and its limits.
func TestPsi(t *testing.T) {
	for _, b := range []float64{0, 1e-6, 0.3, 1, 2} {
		for lambda := 0.01; b*lambda < 0.99 && lambda < 5; lambda *= 1.5 {
			for x := -b; x < 20; x += 0.05 {
				if left, right := math.Exp(lambda*x-psi(lambda, b)*x*x), 1+lambda*x; left > right+1e-9 {
					t.Fatalf("b = %v, λ = %v, x = %v: %v > %v", b, lambda, x, left, right)
				}
			}
		}
	}
	if a, b := psi(1, 1e-4*0.999999), psi(1, 1e-4*1.000001); math.Abs(a-b) > 1e-8 {
		t.Errorf("%v and %v where the series ends", a, b)
	}
}

// At the bound the wealth is J/α. The bound is closer than Mean's, and includes everything that was certain.
func TestLowerBound(t *testing.T) {
	var l Lower
	if low := l.Low(0.05); !math.IsInf(low, -1) {
		t.Errorf("%v without observations", low)
	}
	if l.Add(2, 0, 0); l.Low(0.05) != 2 {
		t.Errorf("%v of a certain 2", l.Low(0.05))
	}
	l, m := Lower{}, Mean{}
	rng := rand.New(rand.NewPCG(3, 1))
	for n := range 2000 {
		x := sale(rng, 0.2, 1)
		l.Add(0.2, x-0.2, 0.2)
		b := m.Begin()
		b.Add(x, 1)
		m.Add(&b)
		low := l.Low(0.05)
		if s := (l.sum/float64(l.n) - low) * float64(l.n); math.Abs(l.wealth(s)-math.Log(10/0.05)) > 1e-6 {
			t.Fatalf("after %d observations the wealth at the bound is %v", n+1, l.wealth(s))
		}
		if n > 10 && low < m.Low(0.05) {
			t.Fatalf("after %d observations the bound is %v, and that of Mean %v", n+1, low, m.Low(0.05))
		}
	}
	if low := l.Low(0.05); low < 0.15 {
		t.Errorf("after 2000 sales at a rate of 0.2 the bound is %v", low)
	}
	before := l.Low(0.05)
	l.Add(0, 0, 1e9) // every λ is too large for this bound
	if have, want := l.Low(0.05), (before*2000-1e9)/2001; math.Abs(have/want-1) > 1e-6 {
		t.Errorf("%v after an observation that could have been −1e9, want %v", have, want)
	}
	// The bounds scale with the currency.
	var a, b Lower
	for k := range 100 {
		a.Add(1, float64(k%3)-1, 1)
		b.Add(1024, 1024*(float64(k%3)-1), 1024)
	}
	if x, y := 1024*a.Low(0.05), b.Low(0.05); math.Abs(x-y) > 1e-9 {
		t.Errorf("%v and %v", x, y)
	}
}
