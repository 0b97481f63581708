package sparse

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/panics"
	_ "vitrine/internal/rapidseed"
)

// fromDense keeps the nonzero entries.
func fromDense(x *mat.Dense) *Matrix {
	m, n := x.Dims()
	start, column, value := []int{0}, []int32{}, []float64{}
	for i := range m {
		for j := range n {
			if v := x.At(i, j); v != 0 {
				column, value = append(column, int32(j)), append(value, v)
			}
		}
		start = append(start, len(value))
	}
	return &Matrix{Columns: n, Start: start, Column: column, Value: value}
}

func toDense(a *Matrix) *mat.Dense {
	m, n := a.Dims()
	x := mat.NewDense(m, n, nil)
	for i := range m {
		for p := a.Start[i]; p < a.Start[i+1]; p++ {
			x.Set(i, int(a.Column[p]), x.At(i, int(a.Column[p]))+a.Value[p])
		}
	}
	return x
}

// random returns a dense m×n matrix with the given share of nonzero entries.
func random(rng *rand.Rand, m, n int, density float64) *mat.Dense {
	x := mat.NewDense(m, n, nil)
	x.Apply(func(int, int, float64) float64 {
		if rng.Float64() < density {
			return rng.NormFloat64()
		}
		return 0
	}, x)
	return x
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// withValues returns an m×n matrix with the given singular values.
func withValues(rng *rand.Rand, m, n int, sigma ...float64) *mat.Dense {
	orthonormal := func(rows int) *mat.Dense {
		var qr mat.QR
		qr.Factorize(random(rng, rows, rows, 1))
		var q mat.Dense
		qr.QTo(&q)
		return mat.DenseCopyOf(q.Slice(0, rows, 0, len(sigma)))
	}
	var x mat.Dense
	x.Product(orthonormal(m), mat.NewDiagDense(len(sigma), sigma), orthonormal(n).T())
	return &x
}

// fataler is the common part of *testing.T and *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// check compares the k largest triplets of x with gonum's values, and with their definition.
func check(t fataler, x *mat.Dense, k int, seed uint64) {
	t.Helper()
	s, err := TruncatedSVD(context.Background(), fromDense(x), k, newRand(seed), nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var want mat.SVD
	if !want.Factorize(x, mat.SVDNone) {
		t.Fatalf("gonum's decomposition failed")
	}
	sigma := want.Values(nil)
	const tolerance = 1e-11
	scale := sigma[0]
	for i, v := range s.Values {
		if math.Abs(v-sigma[i]) > tolerance*scale {
			t.Fatalf("singular values %v, want %v", s.Values, sigma[:k])
		}
	}
	near := func(name string, got, want mat.Matrix, scale float64) {
		t.Helper()
		var diff mat.Dense
		diff.Sub(got, want)
		if d := mat.Max(absolute(&diff)); d > tolerance*scale {
			t.Fatalf("%s is off by %g, at singular values %v", name, d, s.Values)
		}
	}
	eye := mat.NewDiagDense(k, slices.Repeat([]float64{1}, k))
	values := mat.NewDiagDense(k, s.Values)
	var uu, vv, av, us, au, vs mat.Dense
	uu.Mul(s.U.T(), s.U)
	near("UᵀU − I", &uu, eye, 1)
	vv.Mul(s.V.T(), s.V)
	near("VᵀV − I", &vv, eye, 1)
	av.Mul(x, s.V)
	us.Mul(s.U, values)
	near("AV − UΣ", &av, &us, scale)
	au.Mul(x.T(), s.U)
	vs.Mul(s.V, values)
	near("AᵀU − VΣ", &au, &vs, scale)
	for i := range k {
		if v := mat.Col(nil, i, s.V); slices.Max(v) < -slices.Min(v) {
			t.Fatalf("the largest entry of v_%d is negative", i+1)
		}
	}
}

func absolute(x *mat.Dense) *mat.Dense {
	x.Apply(func(_, _ int, v float64) float64 { return math.Abs(v) }, x)
	return x
}

func TestTruncatedSVD(t *testing.T) {
	rng := newRand(1)
	geometric := make([]float64, 40)
	for i := range geometric {
		geometric[i] = math.Pow(0.5, float64(i))
	}
	empty := random(rng, 30, 20, 0.3)
	for j := range 20 {
		empty.Set(0, j, 0)
		empty.Set(13, j, 0)
		empty.Set(29, j, 0)
	}
	for _, c := range []struct {
		name string
		x    *mat.Dense
		k    []int
	}{
		{"tall", random(rng, 60, 20, 0.4), []int{1, 5, 19, 20}},
		{"wide", random(rng, 20, 60, 0.4), []int{1, 5, 19, 20}},
		{"square", random(rng, 30, 30, 0.2), []int{3, 30}},
		{"one row", random(rng, 1, 30, 1), []int{1}},
		{"one column", random(rng, 30, 1, 1), []int{1}},
		{"one entry", mat.NewDense(1, 1, []float64{-3}), []int{1}},
		{"zero but for one entry", withValues(rng, 7, 5, 4), []int{1}},
		{"empty rows", empty, []int{4, 20}},
		{"nearly repeated", withValues(rng, 40, 30, 5, 5*(1-1e-9), 4, 3, 3*(1-1e-7), 1), []int{1, 2, 5, 6}},
		{"rank 3", withValues(rng, 40, 30, 3, 2, 1), []int{2, 3}},
		{"nine decimal orders", withValues(rng, 50, 45, geometric[:30]...), []int{10, 30}},
		{"large enough for two processors", random(rng, 400, 300, 0.3), []int{10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, k := range c.k {
				check(t, c.x, k, uint64(k))
			}
		})
	}
}

// diagonal returns the n×n diagonal matrix with the given entries, followed by ones.
func diagonal(n int, entries ...float64) *Matrix {
	a := &Matrix{Columns: n, Start: []int{0}}
	for i := range n {
		v := 1.0
		if i < len(entries) {
			v = entries[i]
		}
		a.Column, a.Value, a.Start = append(a.Column, int32(i)), append(a.Value, v), append(a.Start, i+1)
	}
	return a
}

func TestTruncatedSVDOfAnyMatrix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, n := rapid.IntRange(1, 14).Draw(t, "m"), rapid.IntRange(1, 14).Draw(t, "n")
		seed := rapid.Uint64().Draw(t, "seed")
		check(t, random(newRand(seed), m, n, 1), rapid.IntRange(1, min(m, n)).Draw(t, "k"), seed)
	})
}

// One copy of a repeated value is found, and zeros are not.
func TestTooFewDifferentValues(t *testing.T) {
	for want, a := range map[string]*Matrix{
		"only 3 different singular values above 0, want 4": diagonal(20, 10, 10, 9),
		"only 2 different singular values above 0, want 4": fromDense(withValues(newRand(1), 9, 7, 2, 1)),
		"only 0 different singular values above 0, want 4": fromDense(mat.NewDense(7, 5, nil)),
	} {
		expect.Part(TruncatedSVD(context.Background(), a, 4, newRand(1), nil))(t, want)
	}
}

func TestProducts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, n := rapid.IntRange(0, 9).Draw(t, "m"), rapid.IntRange(1, 9).Draw(t, "n")
		a := &Matrix{Columns: n, Start: []int{0}}
		for range m {
			for _, j := range rapid.SliceOfN(rapid.Int32Range(0, int32(n-1)), 0, 6).Draw(t, "columns") {
				a.Column = append(a.Column, j)
				a.Value = append(a.Value, float64(rapid.IntRange(-5, 5).Draw(t, "value")))
			}
			a.Start = append(a.Start, len(a.Value))
		}
		x, y := make([]float64, n), make([]float64, m)
		for j := range x {
			x[j] = float64(rapid.IntRange(-5, 5).Draw(t, "x"))
		}
		for i := range y {
			y[i] = float64(rapid.IntRange(-5, 5).Draw(t, "y"))
		}
		ax, ay := make([]float64, m), make([]float64, n)
		for i := range m {
			for p := a.Start[i]; p < a.Start[i+1]; p++ {
				ax[i] += a.Value[p] * x[a.Column[p]]
				ay[a.Column[p]] += a.Value[p] * y[i]
			}
		}
		expect.Equal(fatal.T(t), a.MulVec(nil, x), ax, "A x")
		expect.Equal(fatal.T(t), a.T().MulVec(nil, y), ay, "Aᵀy")
		if r, c := a.T().Dims(); r != n || c != m {
			t.Fatalf("Aᵀ is %d×%d", r, c)
		}
		if m > 0 && !mat.Equal(toDense(a), toDense(a.T()).T()) {
			t.Fatalf("Aᵀ is not A transposed")
		}
	})
}

func TestSameBitsOnAnyNumberOfProcessors(t *testing.T) {
	a := fromDense(random(newRand(3), 500, 400, 0.3))
	decompose := func(processors int) *SVD {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		s := fatal.Or(TruncatedSVD(context.Background(), a, 8, newRand(4), nil))(t)
		return s
	}
	one := decompose(1)
	for _, processors := range []int{2, 3, 8} {
		s := decompose(processors)
		if !slices.Equal(one.Values, s.Values) || !mat.Equal(one.U, s.U) || !mat.Equal(one.V, s.V) {
			t.Errorf("another result with %d processors", processors)
		}
	}
}

func TestTruncatedSVDReportsAndStops(t *testing.T) {
	a := fromDense(random(newRand(5), 60, 50, 0.5))
	heard := -1
	ctx, cancel := context.WithCancel(context.Background())
	_, err := TruncatedSVD(ctx, a, 4, newRand(6), func(converged int) {
		if converged < 0 || converged > 4 {
			t.Errorf("%d of 4 have converged", converged)
		}
		heard = converged
		if converged == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || heard != 2 {
		t.Errorf("error %v after %d had converged, want a cancelled context after 2", err, heard)
	}
}

func TestPanics(t *testing.T) {
	a := &Matrix{Columns: 2, Start: []int{0, 1}, Column: []int32{1}, Value: []float64{3}}
	for name, f := range map[string]func(){
		"vector too long": func() { a.MulVec(nil, make([]float64, 3)) },
		"result too long": func() { a.MulVec(make([]float64, 2), make([]float64, 2)) },
		"no values":       func() { _, _ = TruncatedSVD(context.Background(), a, 0, newRand(1), nil) },
	} {
		if panics.Value(f) == nil {
			t.Errorf("%s: no panic", name)
		}
	}
}
