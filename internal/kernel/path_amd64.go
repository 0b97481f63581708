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
	d, s, n := unsafe.SliceData(dst), unsafe.SliceData(x), len(x)
	switch active {
	case avx512:
		return expAVX512(d, s, n)
	case avx2:
		return expAVX2(d, s, n)
	}
	return 0
}

func sigmoidVector(dst, x []float64) int {
	d, s, n := unsafe.SliceData(dst), unsafe.SliceData(x), len(x)
	switch active {
	case avx512:
		return sigmoidAVX512(d, s, n)
	case avx2:
		return sigmoidAVX2(d, s, n)
	}
	return 0
}

func tanhVector(dst, x []float64) int {
	d, s, n := unsafe.SliceData(dst), unsafe.SliceData(x), len(x)
	switch active {
	case avx512:
		return tanhAVX512(d, s, n)
	case avx2:
		return tanhAVX2(d, s, n)
	}
	return 0
}

func softplusVector(dst, x []float64) int {
	d, s, n := unsafe.SliceData(dst), unsafe.SliceData(x), len(x)
	switch active {
	case avx512:
		return softplusAVX512(d, s, n)
	case avx2:
		return softplusAVX2(d, s, n)
	}
	return 0
}

func sincosVector(sin, cos, x []float64) int {
	s, c, a, n := unsafe.SliceData(sin), unsafe.SliceData(cos), unsafe.SliceData(x), len(x)
	switch active {
	case avx512:
		return sincosAVX512(s, c, a, n)
	case avx2:
		return sincosAVX2(s, c, a, n)
	}
	return 0
}

func dotVector(a, b []float64) float64 {
	p, q, n := unsafe.SliceData(a), unsafe.SliceData(b), len(a)
	if active == avx512 {
		return dotAVX512(p, q, n)
	}
	return dotAVX2(p, q, n)
}

func sumVector(a []float64) float64 {
	if active == avx512 {
		return sumAVX512(unsafe.SliceData(a), len(a))
	}
	return sumAVX2(unsafe.SliceData(a), len(a))
}

func axpyVector(dst []float64, alpha float64, x []float64) int {
	d, s, n := unsafe.SliceData(dst), unsafe.SliceData(x), active.whole(len(x))
	switch active {
	case avx512:
		axpyAVX512(d, alpha, s, n)
	case avx2:
		axpyAVX2(d, alpha, s, n)
	default:
		return 0
	}
	return n
}

func mulVector(dst, x []float64) int {
	d, s, n := unsafe.SliceData(dst), unsafe.SliceData(x), active.whole(len(x))
	switch active {
	case avx512:
		mulAVX512(d, s, n)
	case avx2:
		mulAVX2(d, s, n)
	default:
		return 0
	}
	return n
}

func mulComplementVector(dst, y []float64) int {
	d, s, n := unsafe.SliceData(dst), unsafe.SliceData(y), active.whole(len(y))
	switch active {
	case avx512:
		mulComplementAVX512(d, s, n)
	case avx2:
		mulComplementAVX2(d, s, n)
	default:
		return 0
	}
	return n
}

func addSquaresVector(dst, x []float64, d int) bool {
	to, s, n := unsafe.SliceData(dst), unsafe.SliceData(x), len(dst)
	switch active {
	case avx512:
		addSquaresAVX512(to, s, d, n)
	case avx2:
		addSquaresAVX2(to, s, d, n)
	default:
		return false
	}
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
		if active == avx512 {
			bilinearAVX512(to, n, s, h, t, d, v, bias, stride, u-k)
		} else {
			bilinearAVX2(to, n, s, h, t, d, v, bias, stride, u-k)
		}
	}
	return true
}

func combineVector(dst []float64, c float64, w []float64, stride int, x []float64, d int) {
	to, v, s, n := unsafe.SliceData(dst), unsafe.SliceData(w), unsafe.SliceData(x), len(dst)
	if active == avx512 {
		combineAVX512(to, c, v, stride, s, d, n)
	} else {
		combineAVX2(to, c, v, stride, s, d, n)
	}
}

func mulPairsVector(dst []float64, stride int, x []float64, n int, pairs []int32) bool {
	count := len(pairs) / 2
	if active == generic || min(n, count) < active.lanes() {
		return false
	}
	to, s, of := unsafe.SliceData(dst), unsafe.SliceData(x), unsafe.SliceData(pairs)
	if active == avx512 {
		mulPairsAVX512(to, stride, s, n, of, count)
	} else {
		mulPairsAVX2(to, stride, s, n, of, count)
	}
	return true
}

func gemvVector(dst, a, g, w []float64, n, d int) {
	var q [8]float64
	for i := 0; i < n; i += active.lanes() {
		rows, v := unsafe.SliceData(g[i*d:]), unsafe.SliceData(w)
		if active == avx512 {
			gemvAVX512(&q[0], rows, v, n-i, d)
		} else {
			gemvAVX2(&q[0], rows, v, n-i, d)
		}
		for s := i; s < min(i+active.lanes(), n); s++ {
			dst[s] = a[s] + q[s-i]
		}
	}
}

func gemvTransVector(dst, g, c []float64, n, d int) {
	to, rows, s := unsafe.SliceData(dst), unsafe.SliceData(g), unsafe.SliceData(c)
	if active == avx512 {
		gemvTransAVX512(to, rows, s, n, d)
	} else {
		gemvTransAVX2(to, rows, s, n, d)
	}
}

// symMulVecVector adds to dst the contribution to P g of the rows of p up to a multiple of eight.
func symMulVecVector(dst, p, g []float64) {
	to, s, v, d := unsafe.SliceData(dst), unsafe.SliceData(p), unsafe.SliceData(g), len(g)
	if active == avx512 {
		symMulVecAVX512(to, s, v, d)
	} else {
		symMulVecAVX2(to, s, v, d)
	}
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
	to, s, rows := unsafe.SliceData(p), unsafe.SliceData(w), unsafe.SliceData(g)
	if active == avx512 {
		symRankKAVX512(to, s, rows, n, d)
	} else {
		symRankKAVX2(to, s, rows, n, d)
	}
}

func symQuadFormsVector(dst, p, g []float64, n, d int) {
	var q [8]float64
	for i := 0; i < n; i += active.lanes() {
		s, rows := unsafe.SliceData(p), unsafe.SliceData(g[i*d:])
		if active == avx512 {
			symQuadFormsAVX512(&q[0], s, rows, n-i, d)
		} else {
			symQuadFormsAVX2(&q[0], s, rows, n-i, d)
		}
		copy(dst[i:], q[:min(active.lanes(), n-i)])
	}
}
