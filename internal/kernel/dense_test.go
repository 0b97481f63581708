package kernel_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/kernel"
	_ "vitrine/internal/rapidseed"
)

// integers draws n small integers, so that sums of products are exact in any order.
func integers(t *rapid.T, name string, n int) []float64 {
	v := make([]float64, n)
	for i, k := range rapid.SliceOfN(rapid.IntRange(-99, 99), n, n).Draw(t, name) {
		v[i] = float64(k)
	}
	return v
}

func TestDotSumMulAxpy(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.IntRange(0, 80).Draw(t, "n")
			a, b := integers(t, "a", n), integers(t, "b", n)
			alpha := integers(t, "alpha", 1)[0]

			dot, sum := 0.0, 0.0
			mul, axpy := make([]float64, n), make([]float64, n)
			for i := range n {
				dot += a[i] * b[i]
				sum += a[i]
				mul[i] = a[i] * b[i]
				axpy[i] = a[i] + alpha*b[i]
			}

			expect.Equal(t, kernel.Dot(a, b), dot, "Dot")
			expect.Equal(t, kernel.Sum(a), sum, "Sum")
			got := slices.Clone(a)
			kernel.Mul(got, b)
			expect.Equal(t, got, mul, "Mul")
			for i, v := range b {
				mul[i] = v * (1 - v)
			}
			kernel.MulComplement(got, b)
			expect.Equal(t, got, mul, "MulComplement")
			got = slices.Clone(a)
			kernel.Axpy(got, alpha, b)
			expect.Equal(t, got, axpy, "Axpy")
		})
	})
}

// The rows of W X + c 1ᵀ and of WᵀY are combinations of the rows of X and Y, weighted by the rows and columns of W.
func TestCombine(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			h := rapid.IntRange(1, 9).Draw(t, "h")
			d := rapid.IntRange(1, 9).Draw(t, "d")
			n := rapid.IntRange(0, 70).Draw(t, "n")
			w, x, y := integers(t, "w", h*d), integers(t, "x", d*n), integers(t, "y", h*n)
			c := integers(t, "c", h)

			for j := range h {
				want := make([]float64, n)
				for i := range want {
					want[i] = c[j]
					for k := range d {
						want[i] += w[j*d+k] * x[k*n+i]
					}
				}
				got := make([]float64, n)
				kernel.Combine(got, c[j], w[j*d:(j+1)*d], 1, x, d)
				expect.Equal(t, got, want, "row", j, "of W X + c")
			}
			for k := range d {
				want := make([]float64, n)
				for i := range want {
					for j := range h {
						want[i] += w[j*d+k] * y[j*n+i]
					}
				}
				got := make([]float64, n)
				kernel.Combine(got, 0, w[k:], d, y, h)
				expect.Equal(t, got, want, "row", k, "of WᵀY")
			}
		})
	})
}

// A sum for one item does not depend on the other items of the batch.
func TestCombinePosition(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			d := rapid.IntRange(1, 9).Draw(t, "d")
			n := rapid.IntRange(1, 40).Draw(t, "n")
			real := rapid.Float64Range(-10, 10)
			w := rapid.SliceOfN(real, d, d).Draw(t, "w")
			x := rapid.SliceOfN(real, d*n, d*n).Draw(t, "x")
			batch := make([]float64, n)
			kernel.Combine(batch, 0.1, w, 1, x, d)
			for i := range n {
				column, alone := make([]float64, d), make([]float64, 1)
				for k := range d {
					column[k] = x[k*n+i]
				}
				kernel.Combine(alone, 0.1, w, 1, column, d)
				if batch[i] != alone[0] {
					t.Errorf("item %d: %v in the batch, %v alone", i, batch[i], alone[0])
				}
			}
		})
	})
}

// The columns between the products stay unchanged.
func TestMulPairs(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			rows := rapid.IntRange(1, 9).Draw(t, "rows")
			n := rapid.IntRange(0, 20).Draw(t, "n")
			pairs := rapid.SliceOfN(rapid.Int32Range(0, int32(rows-1)), 0, 40).Draw(t, "pairs")
			pairs = pairs[:len(pairs)&^1]
			stride := len(pairs)/2 + rapid.IntRange(0, 3).Draw(t, "gap")
			x, want := integers(t, "x", rows*n), integers(t, "dst", n*stride)
			got := slices.Clone(want)
			for i := range n {
				for j := range len(pairs) / 2 {
					want[i*stride+j] = x[int(pairs[2*j])*n+i] * x[int(pairs[2*j+1])*n+i]
				}
			}
			kernel.MulPairs(got, stride, x, n, pairs)
			expect.Equal(t, got, want)
		})
	})
}

func TestAddSquares(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n, d := rapid.IntRange(0, 70).Draw(t, "n"), rapid.IntRange(0, 9).Draw(t, "d")
			got, x := integers(t, "dst", n), integers(t, "x", d*n)
			want := slices.Clone(got)
			for i, v := range x {
				want[i%n] += v * v
			}
			kernel.AddSquares(got, x, d)
			expect.Equal(t, got, want)
		})
	})
}

func TestBilinear(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.IntRange(1, 40).Draw(t, "n")
			m, h, d := rapid.IntRange(0, 9).Draw(t, "m"),
				rapid.IntRange(0, 4).Draw(t, "h"), rapid.IntRange(0, 9).Draw(t, "d")
			bias := h*d + rapid.IntRange(0, 2).Draw(t, "gap")
			stride := bias + h + rapid.IntRange(0, 2).Draw(t, "gap")
			y, x, w := integers(t, "y", h*n), integers(t, "x", d*n), integers(t, "w", m*stride)
			got := integers(t, "dst", m*n)
			want := slices.Clone(got)
			for k := range m {
				for j := range h {
					for i := range n {
						inner := w[k*stride+bias+j]
						for l := range d {
							inner += w[k*stride+j*d+l] * x[l*n+i]
						}
						want[k*n+i] += y[j*n+i] * inner
					}
				}
			}
			kernel.Bilinear(got, n, y, h, x, d, w, bias, stride)
			expect.Equal(t, got, want)
		})
	})
}

// The entries between the rows stay unchanged.
func TestColumns(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n, d := rapid.IntRange(1, 40).Draw(t, "n"), rapid.IntRange(1, 20).Draw(t, "d")
			stride := d + rapid.IntRange(0, 3).Draw(t, "gap")
			x := integers(t, "x", (n-1)*stride+d)
			got := integers(t, "dst", n*d+1)
			want := slices.Clone(got)
			for j := range d {
				for i := range n {
					want[j*n+i] = x[i*stride+j]
				}
			}
			kernel.Columns(got, x, stride, n, d)
			expect.Equal(t, got, want)
		})
	})
}

func TestDensePanics(t *testing.T) {
	for name, f := range map[string]func(){
		"Dot of a shorter b":    func() { kernel.Dot(make([]float64, 5), make([]float64, 4)) },
		"Axpy on a shorter dst": func() { kernel.Axpy(make([]float64, 4), 1, make([]float64, 5)) },
		"Mul on a shorter dst":  func() { kernel.Mul(make([]float64, 4), make([]float64, 5)) },
		"Combine of too few rows": func() {
			kernel.Combine(make([]float64, 2), 0, make([]float64, 5), 1, make([]float64, 9), 5)
		},
		"Combine of too few multipliers": func() {
			kernel.Combine(make([]float64, 2), 0, make([]float64, 4), 1, make([]float64, 10), 5)
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

func BenchmarkDot(b *testing.B) {
	x, y := make([]float64, 128), make([]float64, 128)
	for b.Loop() {
		kernel.Dot(x, y)
	}
}

func BenchmarkCombine(b *testing.B) {
	dst, w, x := make([]float64, 128), make([]float64, 15), make([]float64, 15*128)
	for _, bench := range []struct {
		name string
		d    int
	}{{"d=3", 3}, {"d=15", 15}} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				kernel.Combine(dst, 1, w, 1, x, bench.d)
			}
		})
	}
}
