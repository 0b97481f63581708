package gram_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/fields"
	"vitrine/internal/gram"
)

// naive computes V and its inverse by gonum, from the definition.
type naive struct{ v *mat.SymDense }

func (n naive) norm(t *testing.T, g []float64) float64 {
	var inv mat.Dense
	fatal.If(t, inv.Inverse(n.v))
	x := mat.NewVecDense(len(g), g)
	var y mat.VecDense
	y.MulVec(&inv, x)
	return math.Sqrt(mat.Dot(x, &y))
}

func TestMatrixAgreesWithADenseInverse(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, d := range []int{1, 2, 3, 7, 16} {
		const lambda = 0.5
		m := gram.New(d, lambda)
		want := naive{mat.NewSymDense(d, nil)}
		for i := range d {
			want.v.SetSym(i, i, lambda)
		}
		rows := mat.NewDense(6, d, nil)
		for range 50 {
			g, c := normals(rng, d), rng.Float64()
			m.Add(c, g)
			want.v.SymRankOne(want.v, c, mat.NewVecDense(d, g))
		}
		for i := range 6 {
			rows.SetRow(i, normals(rng, d))
		}
		norms := make([]float64, 6)
		m.Inverse().Norms(norms, rows)
		for i, got := range norms {
			if w := want.norm(t, rows.RawRowView(i)); math.Abs(got-w) > 1e-10*w {
				t.Errorf("d = %d: ‖g_%d‖ = %v, want %v", d, i, got, w)
			}
		}
		var inverse mat.Dense
		fatal.If(t, inverse.Inverse(want.v))
		if v, w := m.Trace(), m.Inverse().Trace(); math.Abs(v-mat.Trace(want.v)) > 1e-12*v ||
			math.Abs(w-mat.Trace(&inverse)) > 1e-9*w {
			t.Errorf("d = %d: the traces are %v and %v, want %v and %v",
				d, v, w, mat.Trace(want.v), mat.Trace(&inverse))
		}
		if !mat.EqualApprox(m.Sym(nil), want.v, 1e-12) {
			t.Errorf("d = %d: V differs from its definition", d)
		}
		x := make([]float64, d)
		m.Solve(x, rows.RawRowView(0))
		var y mat.VecDense
		y.MulVec(want.v, mat.NewVecDense(d, x))
		for j, v := range rows.RawRowView(0) {
			if math.Abs(y.AtVec(j)-v) > 1e-9 {
				t.Errorf("d = %d: V(V⁻¹g) = %v, want g = %v", d, y.AtVec(j), v)
			}
		}
	}
}

// After 40 000 updates, which cross the refresh twice, the inverse is still accurate.
func TestInverseDoesNotDrift(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	const d = 16
	m := gram.New(d, 1)
	for range 40_000 {
		m.Add(1, normals(rng, d))
	}
	checkSolve(t, m, normals(rng, d))
}

// checkSolve compares V⁻¹g with the solution by the Cholesky factor of V.
func checkSolve(t *testing.T, m *gram.Matrix, g []float64) {
	t.Helper()
	var chol mat.Cholesky
	if !chol.Factorize(m.Sym(nil)) {
		t.Fatal("V is not positive definite")
	}
	var want mat.VecDense
	fatal.If(t, chol.SolveVecTo(&want, mat.NewVecDense(len(g), g)))
	got := make([]float64, len(g))
	m.Solve(got, g)
	for j := range got {
		if math.Abs(got[j]-want.AtVec(j)) > 1e-10*mat.Norm(&want, 2) {
			t.Errorf("(V⁻¹g)_%d = %v, want %v", j, got[j], want.AtVec(j))
		}
	}
}

// With a tiny λ and large vectors, the formula of Sherman and Morrison loses all digits. Recomputing the inverse
// restores them.
func TestInverseIsComputedAfresh(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	const d, updates = 6, 1<<14 + 50
	m := gram.New(d, 1e-9)
	for range updates {
		g := normals(rng, d)
		for j := range g {
			g[j] *= 1e4
		}
		m.Add(1, g)
	}
	checkSolve(t, m, normals(rng, d))
}

func TestInverseIsACopy(t *testing.T) {
	m := gram.New(2, 1)
	inv := m.Inverse()
	m.Add(1, []float64{1, 1})
	norm := make([]float64, 1)
	inv.Norms(norm, mat.NewDense(1, 2, []float64{3, 4}))
	if norm[0] != 5 {
		t.Errorf("a frozen inverse moved: ‖(3, 4)‖ = %v under I, want 5", norm[0])
	}
}

func TestCholeskyOfTheInverse(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	m := gram.New(3, 2)
	for range 10 {
		m.Add(1, normals(rng, 3))
	}
	l := fatal.Or(m.Inverse().Cholesky())(t)
	var lt, prod mat.Dense
	lt.Mul(l, l.T())
	prod.Mul(&lt, m.Sym(nil))
	for i := range 3 {
		for j := range 3 {
			want := 0.0
			if i == j {
				want = 1
			}
			if math.Abs(prod.At(i, j)-want) > 1e-12 {
				t.Errorf("(LLᵀV)_%d%d = %v, want %v", i, j, prod.At(i, j), want)
			}
		}
	}
}

func TestSetRefusesAnIndefiniteMatrix(t *testing.T) {
	m := gram.New(2, 1)
	expect.Refused(m.Set([]float64{1, 2, 1}))(t, "the matrix (1 2; 2 1)")
	expect.Equal(t, m.Sym(nil).At(0, 0), 1, "a refused Set changed V to")
	expect.Error(t, m.Set([]float64{2, 1, 2}), nil)
	x := make([]float64, 2)
	m.Solve(x, []float64{3, 3})
	if math.Abs(x[0]-1) > 1e-15 || math.Abs(x[1]-1) > 1e-15 {
		t.Errorf("V⁻¹(3, 3) = %v, want (1, 1)", x)
	}
}

func TestNewRefusesWhatIsNotAMatrix(t *testing.T) {
	for _, bad := range []struct {
		d      int
		lambda float64
	}{{0, 1}, {2, 0}, {2, -1}, {2, math.NaN()}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("New(%d, %v) did not panic", bad.d, bad.lambda)
				}
			}()
			gram.New(bad.d, bad.lambda)
		}()
	}
}

func TestSnapshotOfAMatrix(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	m := gram.New(5, 1)
	for range 9 {
		m.Add(1, normals(rng, 5))
	}
	w := fields.Writer(nil)
	m.Fields(&w)
	r := fields.Reader(w.Rest())
	same := gram.New(5, 7)
	same.Fields(&r)
	fatal.If(t, r.Close())
	if !mat.Equal(same.Sym(nil), m.Sym(nil)) {
		t.Error("V changed in a snapshot")
	}
	r = fields.Reader(w.Rest())
	gram.New(4, 1).Fields(&r)
	if r.Close() == nil {
		t.Error("no error for a matrix of another order")
	}
}

func normals(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

func BenchmarkNorms(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 2))
	for _, shape := range []struct {
		name string
		n, d int
	}{{"N=100,d=16", 100, 16}, {"N=100,d=76", 100, 76}, {"N=1000,d=76", 1000, 76}} {
		b.Run(shape.name, func(b *testing.B) {
			m := gram.New(shape.d, 1)
			for range 100 {
				m.Add(1, normals(rng, shape.d))
			}
			g := mat.NewDense(shape.n, shape.d, normals(rng, shape.n*shape.d))
			dst, inv := make([]float64, shape.n), m.Inverse()
			b.ReportAllocs()
			for b.Loop() {
				inv.Norms(dst, g)
			}
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	rng := rand.New(rand.NewPCG(6, 2))
	for _, d := range []int{16, 76} {
		m, g := gram.New(d, 1), normals(rng, d)
		b.Run(map[int]string{16: "d=16", 76: "d=76"}[d], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Add(1, g)
			}
		})
	}
}

// Extended gives the same matrix as building it entry by entry.
func TestExtended(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	m := gram.NewDiagonal([]float64{2, 0.5, 4})
	want := mat.NewSymDense(
		5, []float64{2, 0, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0.25},
	)
	add := func(c float64, g []float64) {
		m.Add(c, g)
		want.SymRankOne(want, c, mat.NewVecDense(5, append(slices.Clone(g), make([]float64, 5-len(g))...)))
	}
	add(0.7, []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()})
	m = m.Extended([]float64{8, 0.25})
	add(0.3, []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()})
	if !mat.EqualApprox(m.Sym(nil), want, 1e-12) {
		t.Errorf("V is %v, want %v", mat.Formatted(m.Sym(nil)), mat.Formatted(want))
	}
	var inverse mat.Dense
	fatal.If(t, inverse.Inverse(want))
	packed := gram.Pack(nil, want)
	for i := range 5 {
		for j := range 5 {
			if got := m.Inverse().At(i, j); math.Abs(got-inverse.At(i, j)) > 1e-12 {
				t.Errorf("the inverse has %v at (%d, %d), want %v", got, i, j, inverse.At(i, j))
			}
		}
	}
	for k, v := range m.Packed() {
		if math.Abs(v-packed[k]) > 1e-12 {
			t.Errorf("packed, entry %d is %v, want %v", k, v, packed[k])
		}
	}
}

// With a tiny λ and huge features the inverse keeps as many digits as V itself allows: while some directions are
// unknown, the error of a squared norm is below the condition number of V times the rounding error, 2e13·1e-16, and
// 1e-9 afterwards, where the formula of Sherman and Morrison alone stays off by 2e-3. The reference is elimination of
// the same sum with 300 bits.
func TestLargeUpdatesKeepDigits(t *testing.T) {
	const d, lambda, condition, rounding = 12, 1e-9, 2e13, 1.0 / (1 << 53)
	number := func(v float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(v) }
	rng := rand.New(rand.NewPCG(3, 9))
	for trial := range 20 {
		m := gram.New(d, lambda)
		exact := make([][]*big.Float, d)
		for i := range exact {
			exact[i] = make([]*big.Float, d)
			for j := range exact[i] {
				exact[i][j] = number(0)
			}
			exact[i][i] = number(lambda)
		}
		for update := range 2 * d {
			g := make([]float64, d)
			for j := range g {
				g[j] = rng.NormFloat64()
			}
			floats.Scale(math.Sqrt(condition*lambda)/floats.Norm(g, 2), g)
			m.Add(1, g)
			other := make([]float64, d)
			for i := range d {
				other[i] = rng.NormFloat64()
				for j := range d {
					exact[i][j].Add(exact[i][j], new(big.Float).Mul(number(g[i]), number(g[j])))
				}
			}
			for k, x := range [][]float64{g, other} {
				want, norm := squaredNorm(exact, x), make([]float64, 1)
				m.Inverse().Norms(norm, mat.NewDense(1, d, x))
				tolerance := 4 * condition * rounding
				if update >= d-1 { // V is well conditioned again
					tolerance = 1e-9
				}
				if off := math.Abs(norm[0]*norm[0]/want - 1); off > tolerance {
					t.Errorf("trial %d, update %d, probe %d: the squared norm is off by %v, more than %v",
						trial, update, k, off, tolerance)
				}
			}
		}
	}
}

// squaredNorm returns xᵀA⁻¹x.
func squaredNorm(of [][]*big.Float, x []float64) (norm float64) {
	a := make([][]*big.Float, len(x)) // A and x
	for i, row := range of {
		for _, v := range row {
			a[i] = append(a[i], new(big.Float).Set(v))
		}
		a[i] = append(a[i], new(big.Float).SetPrec(300).SetFloat64(x[i]))
	}
	for i := range a { // A is positive definite, so no pivoting
		for r := range a {
			f := new(big.Float).Quo(a[r][i], a[i][i])
			for c := range a[r] {
				if r != i {
					a[r][c].Sub(a[r][c], new(big.Float).Mul(f, a[i][c]))
				}
			}
		}
	}
	for i := range a {
		v, _ := new(big.Float).Quo(a[i][len(x)], a[i][i]).Float64()
		norm += x[i] * v
	}
	return norm
}
