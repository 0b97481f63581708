package kernel_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// shapes cover whole and incomplete blocks of rows, a single column, and every width of a tile.
var shapes = []struct{ n, d int }{{0, 3}, {1, 1}, {3, 1}, {4, 5}, {5, 4}, {9, 16}, {11, 7}, {200, 25}, {17, 76}}

func normals(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

// pack returns a random symmetric matrix and its packed upper triangle.
func pack(rng *rand.Rand, d int) ([]float64, *mat.SymDense) {
	p, s := normals(rng, kernel.PackedLen(d)), mat.NewSymDense(d, nil)
	k := 0
	for i := range d {
		for j := i; j < d; j++ {
			s.SetSym(i, j, p[k])
			k++
		}
	}
	return p, s
}

func wantNear(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-12*(1+math.Abs(want)) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func wantPacked(t *testing.T, what string, p []float64, want mat.Matrix) {
	t.Helper()
	d, _ := want.Dims()
	k := 0
	for i := range d {
		for j := i; j < d; j++ {
			wantNear(t, fmt.Sprintf("%s_%d%d", what, i, j), p[k], want.At(i, j))
			k++
		}
	}
}

func TestGemv(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		for _, s := range shapes {
			rng := rand.New(rand.NewPCG(1, uint64(s.n)))
			a, g, w := normals(rng, s.n), normals(rng, s.n*s.d), normals(rng, s.d)
			got := make([]float64, s.n)
			kernel.Gemv(got, a, g, w, s.n, s.d)
			c, sum := normals(rng, s.n), normals(rng, s.d)
			want := append([]float64(nil), sum...)
			kernel.GemvTrans(sum, g, c, s.n, s.d)
			for i := range s.n {
				u := a[i]
				for j := range s.d {
					u += g[i*s.d+j] * w[j]
					want[j] += c[i] * g[i*s.d+j]
				}
				wantNear(t, "a + Gw", got[i], u)
			}
			for j := range want {
				wantNear(t, "Gᵀc", sum[j], want[j])
			}
		}
	})
}

func TestPackedKernels(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		for _, s := range shapes {
			rng := rand.New(rand.NewPCG(2, uint64(s.n)))
			p, dense := pack(rng, s.d)
			v := mat.NewVecDense(s.d, normals(rng, s.d))

			got := make([]float64, s.d)
			kernel.SymMulVec(got, p, v.RawVector().Data)
			var want mat.VecDense
			want.MulVec(dense, v)
			for j := range got {
				wantNear(t, "Pv", got[j], want.AtVec(j))
			}

			kernel.SymRankOne(p, -0.7, v.RawVector().Data)
			dense.SymRankOne(dense, -0.7, v)
			wantPacked(t, "P − 0.7vvᵀ", p, dense)

			w, g := normals(rng, s.n), normals(rng, s.n*s.d)
			kernel.SymRankK(p, w, g, s.n, s.d)
			forms := make([]float64, s.n)
			for i := range s.n {
				dense.SymRankOne(dense, w[i], mat.NewVecDense(s.d, g[i*s.d:(i+1)*s.d]))
			}
			wantPacked(t, "P + GᵀWG", p, dense)

			kernel.SymQuadForms(forms, p, g, s.n, s.d)
			for i := range s.n {
				row := mat.NewVecDense(s.d, g[i*s.d:(i+1)*s.d])
				wantNear(t, "gᵀPg", forms[i], mat.Inner(row, dense, row))
			}
		}
	})
}

func BenchmarkGemv(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, s := range []struct{ n, d int }{{192, 16}, {192, 76}} {
		a, g, w := normals(rng, s.n), normals(rng, s.n*s.d), normals(rng, s.d)
		dst, sum := make([]float64, s.n), make([]float64, s.d)
		b.Run(fmt.Sprintf("Gw,n=%d,d=%d", s.n, s.d), func(b *testing.B) {
			for b.Loop() {
				kernel.Gemv(dst, a, g, w, s.n, s.d)
			}
		})
		b.Run(fmt.Sprintf("Gᵀc,n=%d,d=%d", s.n, s.d), func(b *testing.B) {
			for b.Loop() {
				kernel.GemvTrans(sum, g, a, s.n, s.d)
			}
		})
	}
}

// Compares the forms of the rows of G with gonum's alternatives: T = G P and the products of the rows of T and G; and
// for P = R⁻¹R⁻ᵀ, R upper triangular, the squares of the rows of G R⁻¹, by a solve or with the inverse at hand.
func BenchmarkSymQuadForms(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, s := range []struct{ n, d int }{{100, 16}, {100, 76}, {1000, 76}, {1000, 256}, {1000, 1025}} {
		p, dense := pack(rng, s.d)
		g, dst := normals(rng, s.n*s.d), make([]float64, s.n)
		t := make([]float64, s.n*s.d)
		rows := blas64.General{Rows: s.n, Cols: s.d, Stride: s.d, Data: g}
		out := blas64.General{Rows: s.n, Cols: s.d, Stride: s.d, Data: t}
		square := blas64.General{Rows: s.d, Cols: s.d, Stride: s.d, Data: dense.RawSymmetric().Data}
		triangle := blas64.Triangular{Uplo: blas.Upper, Diag: blas.NonUnit, N: s.d, Stride: s.d, Data: square.Data}
		for i := range s.d {
			triangle.Data[i*s.d+i] += float64(4 * s.d) // keeps the solve from overflowing
		}
		dots := func(a, c []float64) {
			for i := range dst {
				dst[i] = kernel.Dot(a[i*s.d:(i+1)*s.d], c[i*s.d:(i+1)*s.d])
			}
		}
		for _, bench := range []struct {
			name string
			call func()
		}{
			{"kernel", func() { kernel.SymQuadForms(dst, p, g, s.n, s.d) }},
			{"gonum-gemm", func() {
				blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, rows, square, 0, out)
				dots(t, g)
			}},
			{"gonum-trsm", func() {
				copy(t, g)
				blas64.Trsm(blas.Right, blas.NoTrans, 1, triangle, out)
				dots(t, t)
			}},
			{"gonum-trmm", func() {
				copy(t, g)
				blas64.Trmm(blas.Right, blas.NoTrans, 1, triangle, out)
				dots(t, t)
			}},
		} {
			b.Run(fmt.Sprintf("n=%d,d=%d/%s", s.n, s.d, bench.name), func(b *testing.B) {
				for b.Loop() {
					bench.call()
				}
			})
		}
	}
}

func BenchmarkSymRankK(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, s := range []struct{ n, d int }{{192, 16}, {192, 76}, {1000, 76}, {1000, 256}} {
		p, w, g := normals(rng, kernel.PackedLen(s.d)), normals(rng, s.n), normals(rng, s.n*s.d)
		b.Run(fmt.Sprintf("n=%d,d=%d", s.n, s.d), func(b *testing.B) {
			for b.Loop() {
				kernel.SymRankK(p, w, g, s.n, s.d)
			}
		})
	}
}

func BenchmarkSymVec(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, d := range []int{16, 76, 256} {
		p, v, dst := normals(rng, kernel.PackedLen(d)), normals(rng, d), make([]float64, d)
		b.Run(fmt.Sprintf("RankOne,d=%d", d), func(b *testing.B) {
			for b.Loop() {
				kernel.SymRankOne(p, 1e-9, v)
			}
		})
		b.Run(fmt.Sprintf("MulVec,d=%d", d), func(b *testing.B) {
			for b.Loop() {
				kernel.SymMulVec(dst, p, v)
			}
		})
	}
}
