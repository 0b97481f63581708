package sparse

import (
	"math"

	"vitrine/internal/kernel"
)

// orthogonalize removes from w its components along an orthonormal basis, by classical Gram–Schmidt:
//
//	w ← w − Q Qᵀw
//
// Twice is enough (Giraud et al. 2005). The result does not depend on the number of processors: each coefficient is
// summed by one processor, and each entry of w subtracts the basis vectors in order.
func orthogonalize(w []float64, basis [][]float64) {
	coefficient := make([]float64, len(basis))
	each(len(basis), len(w), func(k int) { coefficient[k] = -kernel.Dot(w, basis[k]) })
	combine(w, coefficient, basis)
}

// combine adds Σ_k c_k q_k to w.
func combine(w, c []float64, q [][]float64) {
	const block = 2048 // entries of w that stay in the L1 cache
	blocks := (len(w) + block - 1) / block
	each(blocks, block*len(q), func(b int) {
		lo, hi := b*block, min((b+1)*block, len(w))
		for k, v := range q {
			kernel.Axpy(w[lo:hi], c[k], v[lo:hi])
		}
	})
}

// each calls f for 0, …, n−1, in parallel if a call of the given cost makes that worthwhile.
func each(n, cost int, f func(i int)) {
	inParallel(n*cost, func(from, to int) {
		for i := (from + cost - 1) / max(cost, 1); i*cost < to; i++ {
			f(i)
		}
	})
}

func norm(v []float64) float64 { return math.Sqrt(kernel.Dot(v, v)) }
