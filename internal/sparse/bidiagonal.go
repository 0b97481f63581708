package sparse

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/lapack/gonum"
)

// bidiagonal is the square matrix B of a bidiagonalisation A V = U B, with α_j on the diagonal and β_j above it.
type bidiagonal struct {
	diagonal []float64 // j
	above    []float64 // j−1
}

// values returns the singular values, largest first, and the last entry of each left singular vector, in O(j²)
// operations.
func (b *bidiagonal) values() (sigma, last []float64) {
	j := len(b.diagonal)
	last = make([]float64, j)
	last[j-1] = 1
	sigma = b.decompose(nil, 0, last, 1)
	return sigma, last
}

// triplet is a singular value with its vectors.
type triplet struct {
	sigma float64
	u, v  []float64
}

// triplets returns the triplets of A for the n largest singular values of B.
func (b *bidiagonal) triplets(n int, us, vs [][]float64) []triplet {
	j := len(b.diagonal)
	left, right := identity(j), identity(j)
	sigma := b.decompose(right, j, left, j)
	ts := make([]triplet, n)
	p := make([]float64, j)
	for i := range ts {
		t := triplet{sigma[i], make([]float64, len(us[0])), make([]float64, len(vs[0]))}
		for k := range p {
			p[k] = left[k*j+i]
		}
		combine(t.u, p, us)
		combine(t.v, right[i*j:(i+1)*j], vs)
		ts[i] = t
	}
	return ts
}

// decompose returns the singular values of B = P Σ Qᵀ, largest first, and replaces right, j×nRight, by Qᵀ right and
// left, nLeft×j, by left P.
func (b *bidiagonal) decompose(right []float64, nRight int, left []float64, nLeft int) []float64 {
	j := len(b.diagonal)
	sigma := append([]float64(nil), b.diagonal...)
	above := append([]float64(nil), b.above...)
	work := make([]float64, 4*j)
	if !(gonum.Implementation{}).Dbdsqr(
		blas.Upper, j, nRight, nLeft, 0, sigma, above, right, max(1, nRight), left, j, nil, 1, work,
	) {
		panic("sparse: the singular values of a bidiagonal matrix did not converge")
	}
	return sigma
}

func identity(n int) []float64 {
	i := make([]float64, n*n)
	for k := range n {
		i[k*n+k] = 1
	}
	return i
}
