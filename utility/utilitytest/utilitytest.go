// Package utilitytest tests the contract of [utility.Model]. Every family of utilities must pass.
package utilitytest

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/expect"
	"vitrine/utility"
)

// checks are the clauses of the contract. A check returns an error that describes the violation.
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

// TestModel tests that m keeps the contract of [utility.Model], and, as far as m implements them, the contracts of
// [utility.Linearizer], [utility.Backpropagator], [utility.Columnar] and [utility.LinearInParams]:
//
//   - Init fills w repeatably with finite numbers from rng.
//   - Gradients agree with central differences of Utilities, to 1e-7 of the item's largest derivative (or of 1).
//     Entries at a kink, where two step sizes disagree, are skipped, but at most a tenth of all entries.
//   - Linearize agrees with Utilities and Gradients exactly, Backpropagate with Gᵀc to 1e-12 of Σ_i |g_ij c_i|, and
//     columns with rows to 1e-12 of |u_i| + Σ_j |g_ij w_j| + |g_ij δ_j|.
//   - If a model claims to be linear in its parameters, its gradients do not depend on w and its Utilities equal wᵀ∇f,
//     to 1e-12 of Σ_j |w_j g_ij|.
//   - An item's results are the same on its own and in a batch, bit for bit.
//   - Views with a stride are accepted, and arguments stay unchanged.
//   - Wrong lengths and shapes panic.
//   - Calls do not allocate in steady state.
//   - Concurrent calls return the same results as single ones.
//
// Do not run it alongside parallel tests, because it counts allocations.
func TestModel(t *testing.T, m utility.Model) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			expect.Error(t, c.check(m), nil)
		})
	}
}

// draw returns initial parameters of m, and n items with standard Gaussian features.
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
