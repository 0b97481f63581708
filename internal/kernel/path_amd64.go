package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

func best() path {
	x := cpu.X86
	switch {
	case !(x.HasAVX2 && x.HasFMA && x.HasBMI2):
		return generic
	case !(x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512VL):
		return avx2
	}
	return avx512
}

// lanes returns the number of float64s in a vector, which is also the number of rows in a tile.
func (p path) lanes() int {
	if p == avx512 {
		return 8
	}
	return 4
}

// whole returns n rounded down to a multiple of the lanes.
func (p path) whole(n int) int { return n &^ (p.lanes() - 1) }

// The kernels of the vector paths. Callers check the lengths. A kernel that returns a number has computed that many
// leading entries.

func expVector(dst, x []float64) int {
	if active == generic {
		return 0
	}
	return expAVX(unsafe.SliceData(dst), unsafe.SliceData(x), len(x))
}

func sigmoidVector(dst, x []float64) int {
	if active == generic {
		return 0
	}
	return sigmoidAVX(unsafe.SliceData(dst), unsafe.SliceData(x), len(x))
}

func tanhVector(dst, x []float64) int {
	if active == generic {
		return 0
	}
	return tanhAVX(unsafe.SliceData(dst), unsafe.SliceData(x), len(x))
}

func softplusVector(dst, x []float64) int {
	if active == generic {
		return 0
	}
	return softplusAVX(unsafe.SliceData(dst), unsafe.SliceData(x), len(x))
}

func sincosVector(sin, cos, x []float64) int {
	if active == generic {
		return 0
	}
	return sincosAVX(unsafe.SliceData(sin), unsafe.SliceData(cos), unsafe.SliceData(x), len(x))
}

func dotVector(a, b []float64) float64 {
	return dotAVX(unsafe.SliceData(a), unsafe.SliceData(b), len(a))
}

func sumVector(a []float64) float64 { return sumAVX(unsafe.SliceData(a), len(a)) }

func axpyVector(dst []float64, alpha float64, x []float64) int {
	if active == generic {
		return 0
	}
	n := active.whole(len(x))
	axpyAVX(unsafe.SliceData(dst), alpha, unsafe.SliceData(x), n)
	return n
}

func mulVector(dst, x []float64) int {
	if active == generic {
		return 0
	}
	n := active.whole(len(x))
	mulAVX(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	return n
}

func mulComplementVector(dst, y []float64) int {
	if active == generic {
		return 0
	}
	n := active.whole(len(y))
	mulComplementAVX(unsafe.SliceData(dst), unsafe.SliceData(y), n)
	return n
}

func addSquaresVector(dst, x []float64, d int) bool {
	if active == generic {
		return false
	}
	addSquaresAVX(unsafe.SliceData(dst), unsafe.SliceData(x), d, len(dst))
	return true
}

func columnsVector(dst, x []float64, stride, n, d int) bool {
	to, s := unsafe.SliceData(dst), unsafe.SliceData(x)
	switch {
	case active == generic || min(n, d) < avx2.lanes():
		return false
	case active == avx512 && min(n, d) >= avx512.lanes():
		columnsAVX512(to, s, stride, n, d)
	default:
		columnsAVX2(to, s, stride, n, d)
	}
	return true
}

// forms returns the number of forms that bilinearVector computes at a time.
func (p path) forms() int { return p.lanes() / 2 }

func bilinearVector(dst []float64, n int, y []float64, h int, x []float64, d int, w []float64, bias, stride int) bool {
	s, t, u := unsafe.SliceData(y), unsafe.SliceData(x), len(dst)/n
	if active == generic {
		return false
	}
	for k := 0; k < u; k += active.forms() {
		to, v := unsafe.SliceData(dst[k*n:]), unsafe.SliceData(w[k*stride:])
		bilinearAVX(to, n, s, h, t, d, v, bias, stride, u-k)
	}
	return true
}

func combineVector(dst []float64, c float64, w []float64, stride int, x []float64, d int) {
	combineAVX(unsafe.SliceData(dst), c, unsafe.SliceData(w), stride, unsafe.SliceData(x), d, len(dst))
}

func mulPairsVector(dst []float64, stride int, x []float64, n int, pairs []int32) bool {
	count := len(pairs) / 2
	if active == generic || min(n, count) < active.lanes() {
		return false
	}
	mulPairsAVX(unsafe.SliceData(dst), stride, unsafe.SliceData(x), n, unsafe.SliceData(pairs), count)
	return true
}

func gemvVector(dst, a, g, w []float64, n, d int) {
	var q [8]float64
	for i := 0; i < n; i += active.lanes() {
		gemvAVX(&q[0], unsafe.SliceData(g[i*d:]), unsafe.SliceData(w), n-i, d)
		for s := i; s < min(i+active.lanes(), n); s++ {
			dst[s] = a[s] + q[s-i]
		}
	}
}

func gemvTransVector(dst, g, c []float64, n, d int) {
	gemvTransAVX(unsafe.SliceData(dst), unsafe.SliceData(g), unsafe.SliceData(c), n, d)
}

// symMulVecVector adds to dst the contribution to P g of the rows of p up to a multiple of eight.
func symMulVecVector(dst, p, g []float64) {
	symMulVecAVX(unsafe.SliceData(dst), unsafe.SliceData(p), unsafe.SliceData(g), len(g))
}

// symRankOneVector returns the number of rows of p that it has computed.
func symRankOneVector(p []float64, c float64, v []float64) int {
	d, first := len(v), 0
	if active == generic {
		return 0
	}
	if active == avx512 {
		symRankOneAVX512(unsafe.SliceData(p), c, unsafe.SliceData(v), d)
		first = max(d-7, 0)
		p, v = trailing(p, d, first), v[first:]
	}
	symRankOneAVX2(unsafe.SliceData(p), c, unsafe.SliceData(v), len(v))
	return max(d-3, 0)
}

// symRankKVector computes the rows of p up to a multiple of eight.
func symRankKVector(p, w, g []float64, n, d int) {
	symRankKAVX(unsafe.SliceData(p), unsafe.SliceData(w), unsafe.SliceData(g), n, d)
}

func symQuadFormsVector(dst, p, g []float64, n, d int) {
	var q [8]float64
	for i := 0; i < n; i += active.lanes() {
		symQuadFormsAVX(&q[0], unsafe.SliceData(p), unsafe.SliceData(g[i*d:]), n-i, d)
		copy(dst[i:], q[:min(active.lanes(), n-i)])
	}
}
