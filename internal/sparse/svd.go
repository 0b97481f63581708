package sparse

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

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

// TruncatedSVD returns the k largest singular values of A with their vectors. It panics unless 1 ≤ k ≤ min(m, n) and
// the entries are finite; its error is the context's. After every step it calls progress, unless nil, with the number
// of values that have converged.
//
// The method is the bidiagonalisation of Golub and Kahan (1965) with full reorthogonalisation, run until the residuals
// are below 1e-12 σ_1. One Krylov space contains only one vector of a repeated singular value. The run is therefore
// repeated in the orthogonal complement of the vectors found, from another random vector, until the largest singular
// value there has converged too and does not exceed σ_k. From a random vector the largest Ritz value converges to the
// largest singular value with probability one (Kuczyński and Woźniakowski 1992). A value below 1e-10 σ_1 may be
// returned as 0, because it cannot be distinguished from rounding.
func TruncatedSVD(ctx context.Context, a *Matrix, k int, rng *rand.Rand, progress func(converged int)) (*SVD, error) {
	m, n := a.Dims()
	if k < 1 || k > min(m, n) {
		panic(fmt.Sprintf("sparse: %d singular values of a %d×%d matrix", k, m, n))
	}
	if progress == nil {
		progress = func(int) {}
	}
	a, unit := a.scaled()
	l := &lanczos{a: a, t: a.T(), k: k, rng: rng, progress: progress}
	for again := true; again; {
		var err error
		if again, err = l.run(ctx); err != nil {
			return nil, err
		}
	}
	l.complete()

	s := &SVD{U: mat.NewDense(m, k, nil), V: mat.NewDense(n, k, nil)}
	for i, t := range l.found {
		sign := 1.0
		if largest(t.v) < 0 {
			sign = -1
		}
		s.Values = append(s.Values, t.sigma*unit)
		setColumn(s.U, i, sign, t.u)
		setColumn(s.V, i, sign, t.v)
	}
	return s, nil
}

// scaled returns A/unit, with its largest entry between 1/2 and 1 in magnitude, so that no square of a relevant number
// overflows or underflows. unit is a power of two, which costs no digits. scaled panics if an entry is not finite.
func (a *Matrix) scaled() (scaled *Matrix, unit float64) {
	maximum := 0.0
	for p, v := range a.Value {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			panic(fmt.Sprintf("sparse: entry %d is %v", p, v))
		}
		maximum = max(maximum, math.Abs(v))
	}
	_, exponent := math.Frexp(maximum)
	s := *a
	s.Value = make([]float64, len(a.Value))
	for p, v := range a.Value {
		s.Value[p] = math.Ldexp(v, -exponent)
	}
	return &s, math.Ldexp(1, exponent)
}

// triplet is a singular value with its vectors.
type triplet struct {
	sigma float64
	u, v  []float64
}

// lanczos finds triplets, run after run.
type lanczos struct {
	a, t     *Matrix
	k        int
	rng      *rand.Rand
	progress func(converged int)
	found    []triplet // at most k, largest first
	scale    float64   // a lower bound on σ_1
}

// run adds the triplets of one Krylov space, orthogonal to the ones found, that belong to the k largest. It reports
// whether another run may find more.
func (l *lanczos) run(ctx context.Context) (again bool, err error) {
	us, vs := l.basis()
	locked := len(l.found)
	v := l.random(l.a.Columns, vs)
	if v == nil {
		return false, nil
	}
	var b bidiagonal
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		// A v_j = β_{j-1} u_{j-1} + α_j u_j
		vs = append(vs, v)
		u := l.a.MulVec(nil, v)
		alpha := l.direction(u, us)
		us = append(us, u)
		b.diagonal = append(b.diagonal, alpha)
		// Aᵀu_j = α_j v_j + β_j v_{j+1}
		beta := 0.0
		if alpha > 0 {
			v = l.t.MulVec(nil, u)
			beta = l.direction(v, vs)
		}
		if wanted, done := l.converged(&b, beta); done {
			l.add(b.triplets(wanted, us[locked:], vs[locked:]))
			return wanted > 0, nil
		}
		b.above = append(b.above, beta)
	}
}

// converged returns how many of the largest singular values of B, merged with the earlier ones, have converged and
// belong to the k largest, and whether the run may end. A run that finds some may end early, because another one
// follows. A run without a find is the last, so it ends only when its largest value has converged: a small residual
// shows that a singular value is near, but not that all larger ones were found.
func (l *lanczos) converged(b *bidiagonal, beta float64) (wanted int, done bool) {
	sigma, last := b.values()
	residual := func(i int) float64 { return beta * math.Abs(last[i]) }
	settled := func(i int) bool { return residual(i) <= tolerance*l.scale }
	floor := negligible * l.scale
	if len(l.found) == l.k {
		floor = l.found[l.k-1].sigma + tolerance*l.scale
	}
	for wanted < min(l.k, len(sigma)) && sigma[wanted] > floor && settled(wanted) {
		wanted++
	}
	l.progress(max(wanted, len(l.found)))
	switch {
	case beta == 0 || wanted == l.k:
		return wanted, true
	case wanted == len(sigma):
		return wanted, false
	case wanted == 0:
		return 0, sigma[0] <= floor && residual(0) <= min(floor, tolerance*l.scale)
	default:
		return wanted, sigma[wanted]+residual(wanted) <= floor || sigma[wanted] <= floor && settled(wanted)
	}
}

// add merges the given triplets into the ones found and keeps the k largest.
func (l *lanczos) add(ts []triplet) {
	l.found = append(l.found, ts...)
	slices.SortStableFunc(l.found, func(s, t triplet) int { return cmp.Compare(t.sigma, s.sigma) })
	l.found = l.found[:min(len(l.found), l.k)]
}

// complete adds triplets with singular value 0 up to k, if A is zero on the complement of the vectors found.
func (l *lanczos) complete() {
	m, n := l.a.Dims()
	for len(l.found) < l.k {
		us, vs := l.basis()
		l.found = append(l.found, triplet{0, l.random(m, us), l.random(n, vs)})
	}
}

// basis returns the vectors found so far.
func (l *lanczos) basis() (us, vs [][]float64) {
	for _, t := range l.found {
		us, vs = append(us, t.u), append(vs, t.v)
	}
	return us, vs
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

// random returns a random vector of length 1, orthogonal to the basis, or nil if the basis spans everything.
func (l *lanczos) random(n int, basis [][]float64) []float64 {
	if len(basis) >= n {
		return nil
	}
	w := make([]float64, n)
	for {
		for i := range w {
			w[i] = l.rng.NormFloat64()
		}
		before := norm(w)
		orthogonalize(w, basis)
		orthogonalize(w, basis)
		if length := norm(w); length > 1e-8*before {
			for i := range w {
				w[i] /= length
			}
			return w
		}
	}
}

// largest returns the first entry of largest magnitude.
func largest(v []float64) float64 {
	best := 0.0
	for _, x := range v {
		if math.Abs(x) > math.Abs(best) {
			best = x
		}
	}
	return best
}

func setColumn(dst *mat.Dense, j int, sign float64, v []float64) {
	for i, x := range v {
		dst.Set(i, j, sign*x)
	}
}
