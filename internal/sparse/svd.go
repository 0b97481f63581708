package sparse

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// SVD holds the k largest singular values of an m×n matrix and their vectors:
//
//	A v_i = σ_i u_i,  Aᵀu_i = σ_i v_i,  σ_1 ≥ … ≥ σ_k ≥ 0
//
// Signs are fixed by making the largest entry in magnitude of each v_i positive.
type SVD struct {
	Values []float64  // σ
	U      *mat.Dense // m×k, orthonormal columns u_i
	V      *mat.Dense // n×k, orthonormal columns v_i
}

// tolerance is the residual ‖Aᵀu_i − σ_i v_i‖ at which a triplet has converged. negligible is the length at which a
// Lanczos vector counts as zero. Both are relative to the largest singular value.
const (
	tolerance  = 1e-12
	negligible = 1e-13
)

// TruncatedSVD returns the k largest singular values of A, whose entries must be finite, with their vectors. It uses the
// bidiagonalisation of Golub and Kahan (1965) from a random vector with full reorthogonalisation, until the residuals
// are below 1e-12 σ_1. The run finds only one vector of a repeated singular value, so TruncatedSVD returns an error if A
// has fewer than k different singular values above 0. Its other error is the context's. After every step it calls
// progress, unless nil, with the number of values that have converged.
func TruncatedSVD(ctx context.Context, a *Matrix, k int, rng *rand.Rand, progress func(converged int)) (*SVD, error) {
	l, at := &lanczos{}, a.T()
	v := make([]float64, a.Columns)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	length := norm(v)
	for i := range v {
		v[i] /= length
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// A v_j = β_{j-1} u_{j-1} + α_j u_j
		l.v = append(l.v, v)
		u := a.MulVec(nil, v)
		alpha := l.direction(u, l.u)
		l.u = append(l.u, u)
		l.b.diagonal = append(l.b.diagonal, alpha)
		// Aᵀu_j = α_j v_j + β_j v_{j+1}
		v = at.MulVec(nil, u)
		beta := l.direction(v, l.v)
		found := l.converged(k, beta)
		if progress != nil {
			progress(found)
		}
		switch {
		case found == k:
			return l.svd(k), nil
		case beta == 0:
			return nil, fmt.Errorf("the matrix has only %d different singular values above 0, want %d", found, k)
		}
		l.b.above = append(l.b.above, beta)
	}
}

// lanczos is a bidiagonalisation A V = U B.
type lanczos struct {
	b     bidiagonal
	u, v  [][]float64
	scale float64 // a lower bound on σ_1
}

// converged returns how many of the k largest singular values of B have converged.
func (l *lanczos) converged(k int, beta float64) (n int) {
	sigma, last := l.b.values()
	for n < min(k, len(sigma)) && sigma[n] > negligible*l.scale && beta*math.Abs(last[n]) <= tolerance*l.scale {
		n++
	}
	return n
}

// svd returns the k largest triplets.
func (l *lanczos) svd(k int) *SVD {
	s := &SVD{U: mat.NewDense(len(l.u[0]), k, nil), V: mat.NewDense(len(l.v[0]), k, nil)}
	for i, t := range l.b.triplets(k, l.u, l.v) {
		if largest := floats.Norm(t.v, math.Inf(1)); !slices.Contains(t.v, largest) {
			floats.Scale(-1, t.u)
			floats.Scale(-1, t.v)
		}
		s.Values = append(s.Values, t.sigma)
		s.U.SetCol(i, t.u)
		s.V.SetCol(i, t.v)
	}
	return s
}

// direction makes w orthogonal to the basis and of length 1. It returns the length before normalisation, or 0 if only
// rounding errors remain of w.
func (l *lanczos) direction(w []float64, basis [][]float64) float64 {
	orthogonalize(w, basis)
	orthogonalize(w, basis)
	length := norm(w)
	l.scale = max(l.scale, length)
	if length <= negligible*l.scale {
		clear(w)
		return 0
	}
	inverse := 1 / length
	for i := range w {
		w[i] *= inverse
	}
	return length
}
