package bandit

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/optimize"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/fatal"
)

// program draws utilities and revenues of n items, and returns the sets of at most k of them and their revenues.
func program(t *testing.T, k, n int) (*assortment.Sets, []float64) {
	t.Helper()
	sets := fatal.Or(assortment.Enumerate(nil, assortment.AtMost(k), k, n, 100_000))(t)
	rng := newRand()
	u, r := make([]float64, n), make([]float64, n)
	for i := range u {
		u[i], r[i] = rng.NormFloat64(), rng.Float64()
	}
	revenue := make([]float64, sets.Len())
	for m := range revenue {
		revenue[m] = vitrine.ExpectedRevenue(sets.At(m), u, r)
	}
	return sets, revenue
}

// shares returns w_i = Σ_{S∋i} q_S, from its definition.
func shares(sets *assortment.Sets, q []float64, n int) []float64 {
	w := make([]float64, n)
	for m, p := range q {
		for _, i := range sets.At(m) {
			w[i] += p
		}
	}
	return w
}

// value is the objective of the program, from its definition.
func value(sets *assortment.Sets, q, revenue []float64, n int, gamma float64) float64 {
	v := 0.0
	for m, p := range q {
		v += p * revenue[m]
	}
	for _, w := range shares(sets, q, n) {
		v += math.Log(w) / gamma
	}
	return v
}

// The conditions of optimality hold: at the prices 1/(γ w_i) no set is worth more
// than μ, and the sets that are drawn are worth that on average.
func TestBarrierMeetsItsOptimalityConditions(t *testing.T) {
	var b barrier
	for _, n := range []int{1, 2, 5, 12, 40, 3} { // shrinking, too
		for _, gamma := range []float64{1e-3, 1, 100, 1e5} {
			sets, revenue := program(t, 3, n)
			q, gap := b.solve(sets, revenue, n, gamma)
			w := shares(sets, q, n)
			mu, total, best := float64(n)/gamma, 0.0, 0.0
			for m, p := range q {
				if !(p > 0) {
					t.Fatalf("N = %d, γ = %v: q has %v", n, gamma, p)
				}
				total += p
				mu += p * revenue[m]
				best = max(best, revenue[m])
			}
			unit := best + float64(n)/gamma
			worst := 0.0
			for m := range q {
				worth := revenue[m]
				for _, i := range sets.At(m) {
					worth += 1 / (gamma * w[i])
				}
				worst = max(worst, (worth-mu)/unit)
			}
			wantNear(t, "Σ q", total, 1, 1e-12)
			wantNear(t, "the gap that is reported", gap, worst, 1e-9)
			if !(worst <= gapTolerance) {
				t.Errorf("N = %d, γ = %v: a set is worth more than μ by %v of the unit", n, gamma, worst)
			}
		}
	}
}

// A quasi-Newton method on q = softmax(θ), which does not use prices, finds no better distribution, and nearly as good
// a one.
func TestBarrierAgainstBruteForce(t *testing.T) {
	for _, n := range []int{2, 4, 6} {
		for _, gamma := range []float64{0.5, 10, 200} {
			sets, revenue := program(t, 2, n)
			q := make([]float64, sets.Len())
			softmax := func(theta []float64) {
				sum := 0.0
				for m, v := range theta {
					q[m] = math.Exp(v)
					sum += q[m]
				}
				for m := range q {
					q[m] /= sum
				}
			}
			result, err := optimize.Minimize(optimize.Problem{
				Func: func(theta []float64) float64 {
					softmax(theta)
					return -value(sets, q, revenue, n, gamma)
				},
				Grad: func(grad, theta []float64) {
					softmax(theta)
					w, mean := shares(sets, q, n), 0.0
					for m := range q {
						grad[m] = -revenue[m]
						for _, i := range sets.At(m) {
							grad[m] -= 1 / (gamma * w[i])
						}
						mean += q[m] * grad[m]
					}
					for m := range q {
						grad[m] = q[m] * (grad[m] - mean)
					}
				},
			}, make([]float64, sets.Len()), &optimize.Settings{GradientThreshold: 1e-9, MajorIterations: 3000},
				&optimize.BFGS{})
			if result == nil {
				t.Fatal(err)
			}
			got, gap := new(barrier).solve(sets, revenue, n, gamma)
			if v := value(sets, got, revenue, n, gamma); math.Abs(v+result.F) > 2e-5*(1+math.Abs(v)) {
				t.Errorf("N = %d, γ = %v: value %v with gap %v, by brute force %v", n, gamma, v, gap, -result.F)
			}
		}
	}
}

// With one item shown of two, q solves a quadratic equation: r₁ − r₂ + (1/γ)(1/q −
// 1/(1−q)) = 0.
func TestBarrierOfTwoItems(t *testing.T) {
	sets := fatal.Or(assortment.Enumerate(nil, assortment.AtMost(1), 1, 2, 10))(t)
	for _, gamma := range []float64{0.1, 3, 50, 1e4} {
		const gain = 0.25
		q, _ := new(barrier).solve(sets, []float64{0.5, 0.5 - gain}, 2, gamma)
		g := gain * gamma
		want := (g - 2 + math.Sqrt(g*g+4)) / (2 * g)
		wantNear(t, "q", q[0], want, 1e-3)
		wantNear(t, "γ(1 − q)", gamma*q[1], gamma*(1-want), 1e-2)
	}
}

// If all items earn 0, or very much, they are seen alike.
func TestBarrierOfEqualRevenues(t *testing.T) {
	sets, _ := program(t, 2, 5)
	for _, r := range []float64{0, 1, vitrine.MaxRevenue} {
		revenue := make([]float64, sets.Len())
		for m := range revenue {
			revenue[m] = r
		}
		q, gap := new(barrier).solve(sets, revenue, 5, 10)
		if gap > gapTolerance {
			t.Errorf("revenue %v: gap %v", r, gap)
		}
		for _, w := range shares(sets, q, 5) {
			if r < vitrine.MaxRevenue {
				wantNear(t, "w of pairs alone", w, 2.0/5, 1e-3)
			} else if !(w > 0) {
				t.Errorf("revenue %v: w = %v", r, w)
			}
		}
	}
}

func TestSolveDefinite(t *testing.T) {
	a := []float64{4, 99, 99, 2, 5, 99, -2, 1, 6} // 99 is not read
	x := []float64{4*1 + 2*2 - 2*3, 2*1 + 5*2 + 1*3, -2*1 + 1*2 + 6*3}
	if !solveDefinite(a, x) {
		t.Fatal("not definite")
	}
	for i, v := range x {
		wantNear(t, "x", v, float64(i+1), 1e-14)
	}
	if solveDefinite([]float64{1, 0, 2, 1}, []float64{1, 1}) {
		t.Error("an indefinite matrix is factored")
	}
}
