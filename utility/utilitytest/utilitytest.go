// Package utilitytest is the contract of [utility.Model] as a battery of
// tests, which every family of utilities must pass.
package utilitytest

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/utility"
)

// checks are the clauses of the contract. A check returns what is wrong.
var checks = []struct {
	name  string
	check func(utility.Model) error
}{
	{"Init", checkInit},
	{"GradientsAreDerivatives", checkGradients},
	{"LinearizeIsUtilitiesAndGradients", checkLinearize},
	{"BackpropagateIsGradientsTimesCotangent", checkBackpropagate},
	{"ColumnsAreRows", checkColumns},
	{"LinearInParamsIsTrue", checkLinearInParams},
	{"BatchIsSingleItems", checkBatch},
	{"ViewsAreAccepted", checkViews},
	{"ArgumentsAreKept", checkArguments},
	{"WrongShapesPanic", checkPanics},
	{"NothingIsAllocated", checkAllocations},
	{"ConcurrentCallsAgree", checkConcurrency},
}

// TestModel tests that m keeps the contract of [utility.Model], and those of
// [utility.Linearizer], [utility.Backpropagator], [utility.Columnar] and
// [utility.LinearInParams] where it implements them:
//
//   - Init fills w, repeatably, with finite numbers from rng;
//   - Gradients agree with central differences of Utilities, to 1e-7 of the
//     largest derivative of the item (or of 1); entries at a kink, where two
//     step sizes disagree, are left out, and may not be more than a tenth;
//   - Linearize agrees with Utilities and Gradients exactly, Backpropagate
//     with Gᵀc to 1e-12 of Σ_i |g_ij c_i|, and columns with rows to 1e-12 of
//     |u_i| + Σ_j |g_ij w_j| + |g_ij δ_j|;
//   - a model that says it is linear in its parameters has gradients that do not
//     depend on w, and Utilities that are wᵀ∇f, to 1e-12 of Σ_j |w_j g_ij|;
//   - an item's results are the same alone and in a batch, bit for bit;
//   - views with a stride are accepted, and the arguments left as they were;
//   - wrong lengths and shapes panic;
//   - nothing is allocated in steady state;
//   - concurrent calls return what a single one does.
//
// It may not run beside parallel tests, because it counts allocations.
func TestModel(t *testing.T, m utility.Model) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if err := c.check(m); err != nil {
				t.Error(err)
			}
		})
	}
}

// draw returns initial parameters of m and n items with standard Gaussian
// features.
func draw(m utility.Model, n int) (w []float64, x *mat.Dense) {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	w = make([]float64, m.NumParams())
	m.Init(w, rng)
	x = mat.NewDense(n, m.NumFeatures(), nil)
	x.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, x)
	return w, x
}

// evaluate returns the utilities and gradients of the items x.
func evaluate(m utility.Model, w []float64, x *mat.Dense) (u []float64, g *mat.Dense) {
	n, _ := x.Dims()
	u, g = make([]float64, n), mat.NewDense(n, len(w), nil)
	m.Utilities(u, w, x)
	m.Gradients(g, w, x)
	return u, g
}
