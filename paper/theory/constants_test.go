package theory_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/env"
	"vitrine/paper/theory"
	"vitrine/utility"
)

// No random output weights, and no units that are on or off for each of three items, give a smaller p(0)p(i), and the
// smallest value found comes close.
func TestKappaOfNetworksAgainstRandomSearch(t *testing.T) {
	const hidden, draws = 2, 40_000
	rng := newRand(5)
	for _, norm := range []float64{0.3, 1, 3} {
		for size := 1; size <= 3; size++ {
			want, minimum := theory.KappaOfNetworks(norm, hidden, size), 1.0
			u := make([]float64, size)
			for range draws {
				w := normal(hidden+1, rng)
				floats.Scale(norm/floats.Norm(w, 2), w)
				sum := 1.0
				for j := range u {
					u[j] = w[hidden]
					for _, v := range w[:hidden] {
						u[j] += v * float64(rng.IntN(2))
					}
					sum += math.Exp(u[j])
				}
				for _, v := range u {
					minimum = min(minimum, math.Exp(v)/(sum*sum))
				}
			}
			if !(minimum > want*(1-1e-6) && minimum < want*1.1) {
				t.Errorf("‖w‖ = %v, K = %d: κ = %v, and %v among those drawn", norm, size, want, minimum)
			}
		}
	}
	if got := theory.KappaOfNetworks(0, hidden, 1); got != 0.25 {
		t.Errorf("κ = %v for one item of utility 0, want 1/4", got)
	}
}

// 1/κ is at least 4K, because the smallest p(i) in a set is at most (1 − p(0))/K, and at least (1 + K)² for families
// that contain the utility 0: the K² that the paper calls the worst case (tex 376) is a lower bound.
func TestKappaFallsWithTheSizeOfASet(t *testing.T) {
	rng := newRand(6)
	for size := 1; size <= 20; size++ {
		for _, norm := range []float64{0, 0.1, 1, 3} {
			if k := theory.KappaOfNetworks(norm, 3, size); !(k <= 1/float64((1+size)*(1+size))) {
				t.Errorf("‖w‖ = %v, K = %d: κ = %v", norm, size, k)
			}
		}
		for range 1000 {
			u, p := normal(size, rng), make([]float64, size+1)
			floats.AddConst(2*rng.NormFloat64(), u)
			vitrine.Probabilities(p, u)
			if least := p[0] * floats.Min(p[1:]); least > 1/float64(4*size)*(1+1e-12) {
				t.Fatalf("K = %d: p(0)p(i) ≥ %v", size, least)
			}
		}
	}
}

// A linear utility of standard normal features satisfies ∇f = (x, 1), without curvature, and E[∇f ∇fᵀ] = I, so that
// ∇²ℓ_sq = 2 E|S| I.
func TestConstantsOfALinearUtility(t *testing.T) {
	m, w := utility.NewLinear(3, true), []float64{0.3, -0.2, 0.1, 0.5}
	n := theory.Sample{Items: 20_000, Hessians: 50, Sets: 5000, Expected: 4.9}
	c := theory.Measure(m, w, env.Gaussian{}, 5, n, newRand(1))
	x := mat.NewDense(n.Items, 3, nil)
	env.Gaussian{}.Draw(x, newRand(1))
	cf, cg := 0.0, 0.0
	for i := range n.Items {
		row := x.RawRowView(i)
		cf = max(cf, math.Abs(floats.Dot(row, w[:3])+w[3]))
		cg = max(cg, math.Sqrt(floats.Dot(row, row)+1))
	}
	if math.Abs(c.Cf-cf) > 1e-12 || math.Abs(c.Cg-cg) > 1e-12 {
		t.Errorf("C_f = %v and C_g = %v, want %v and %v", c.Cf, c.Cg, cf, cg)
	}
	if c.Ch > 1e-8 {
		t.Errorf("C_h = %v, want 0", c.Ch)
	}
	// The smallest of four eigenvalues of a mean of 20 000: within 5%.
	if want := 2 * n.Expected; math.Abs(c.Mu/want-1) > 0.05 {
		t.Errorf("μ = %v, want %v", c.Mu, want)
	}
	if bound := 1 + math.Exp(-cf) + 4*math.Exp(cf); !(c.Kappa > math.Exp(-cf)/(bound*bound) && c.Kappa < 0.25) {
		t.Errorf("κ = %v is not above that of |u| ≤ %v", c.Kappa, cf)
	}
}

// C_h is the largest second derivative of f along any direction: no random direction exceeds it, by second differences
// of f itself, and the largest value found comes close.
func TestCurvatureAgainstSecondDifferences(t *testing.T) {
	s := theory.Symmetries{Features: 2, Hidden: 1, Activation: utility.Sigmoid}
	m, w := network(s), normal(s.NumParams(), newRand(2))
	const items, step = 20, 1e-3
	c := theory.Measure(m, w, env.Gaussian{}, 1, theory.Sample{Items: items, Hessians: items, Sets: 1, Expected: 1},
		newRand(3))
	x := mat.NewDense(items, 2, nil)
	env.Gaussian{}.Draw(x, newRand(3))
	rng, largest := newRand(4), 0.0
	at, ahead, behind := make([]float64, items), make([]float64, items), make([]float64, items)
	m.Utilities(at, w, x)
	for range 4000 {
		v := normal(len(w), rng)
		floats.Scale(1/floats.Norm(v, 2), v)
		moved := append([]float64(nil), w...)
		floats.AddScaled(moved, step, v)
		m.Utilities(ahead, moved, x)
		floats.AddScaled(moved, -2*step, v)
		m.Utilities(behind, moved, x)
		for i := range at {
			largest = max(largest, math.Abs(ahead[i]-2*at[i]+behind[i])/(step*step))
		}
	}
	if largest > c.Ch*(1+1e-5) || largest < 0.8*c.Ch {
		t.Errorf("C_h = %v, and %v along the directions drawn", c.Ch, largest)
	}
}

// μ is the smallest curvature of the squared loss: by second differences of a loss over the same items, no direction
// has less.
func TestConvexityAgainstSecondDifferences(t *testing.T) {
	s := theory.Symmetries{Features: 1, Hidden: 1, Activation: utility.Tanh}
	m, w := network(s), []float64{1, 0.3, 0.8, -0.2}
	n := theory.Sample{Items: 400, Hessians: 1, Sets: 1, Expected: 2}
	c := theory.Measure(m, w, env.Gaussian{}, 1, n, newRand(3))
	x := mat.NewDense(n.Items, 1, nil)
	env.Gaussian{}.Draw(x, newRand(3))
	truth, u := make([]float64, n.Items), make([]float64, n.Items)
	m.Utilities(truth, w, x)
	loss := func(w []float64) float64 {
		m.Utilities(u, w, x)
		d := floats.Distance(u, truth, 2)
		return n.Expected * d * d / float64(n.Items)
	}
	rng, minimum := newRand(4), math.Inf(1)
	for range 20_000 {
		const step = 1e-4
		v := normal(len(w), rng)
		floats.Scale(step/floats.Norm(v, 2), v)
		moved := append([]float64(nil), w...)
		floats.Add(moved, v)
		ahead := loss(moved)
		floats.AddScaled(moved, -2, v)
		minimum = min(minimum, (ahead+loss(moved))/(step*step))
	}
	if minimum < c.Mu*(1-1e-3) || minimum > 3*c.Mu+1e-3 {
		t.Errorf("μ = %v, and %v along the directions drawn", c.Mu, minimum)
	}
}
