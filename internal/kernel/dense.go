package kernel

import "math"

// worth is the length from which a sum uses eight lanes (see lanes.go). Shorter sums use four lanes with two roundings
// per term, which is faster.
const worth = 12

// Dot returns Σ_i a_i b_i. It panics if b is shorter than a.
func Dot(a, b []float64) float64 {
	b = b[:len(a)]
	if len(a) >= worth {
		if active == generic {
			return dotLanes(a, b)
		}
		return dotVector(a, b)
	}
	var s0, s1, s2, s3 float64
	for len(a) >= 4 && len(b) >= 4 {
		s0 += float64(a[0] * b[0])
		s1 += float64(a[1] * b[1])
		s2 += float64(a[2] * b[2])
		s3 += float64(a[3] * b[3])
		a, b = a[4:], b[4:]
	}
	b = b[:len(a)]
	for i, v := range a {
		s0 += float64(v * b[i])
	}
	return (s0 + s1) + (s2 + s3)
}

// Sum returns Σ_i a_i.
func Sum(a []float64) float64 {
	if len(a) >= worth {
		if active == generic {
			return sumLanes(a)
		}
		return sumVector(a)
	}
	var s0, s1, s2, s3 float64
	for len(a) >= 4 {
		s0 += a[0]
		s1 += a[1]
		s2 += a[2]
		s3 += a[3]
		a = a[4:]
	}
	for _, v := range a {
		s0 += v
	}
	return (s0 + s1) + (s2 + s3)
}

// Axpy adds alpha x to dst. It panics if dst is shorter than x.
func Axpy(dst []float64, alpha float64, x []float64) {
	dst = dst[:len(x)]
	done := axpyVector(dst, alpha, x)
	dst, x = dst[done:], x[done:]
	for len(dst) >= 4 && len(x) >= 4 {
		dst[0] += float64(alpha * x[0])
		dst[1] += float64(alpha * x[1])
		dst[2] += float64(alpha * x[2])
		dst[3] += float64(alpha * x[3])
		dst, x = dst[4:], x[4:]
	}
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] += float64(alpha * v)
	}
}

// Combine stores in dst, of length n, a constant plus a linear combination of the rows x_k of the d×n row-major matrix
// x:
//
//	dst = c + Σ_{k<d} w[k·stride] x_k
//
// If w is a row of a matrix W and the stride is 1, dst is a row of W X + c. If w starts a column of W and the stride is
// the width of W, dst is a row of WᵀX. The entries of dst depend neither on each other nor on n. Combine panics if a
// slice is shorter than its shape. dst must not overlap x.
func Combine(dst []float64, c float64, w []float64, stride int, x []float64, d int) {
	n := len(dst)
	if d < 0 {
		panic("kernel: Combine of fewer than 0 rows")
	}
	if d > 0 {
		_, _ = w[(d-1)*stride], x[:d*n]
	}
	if active != generic {
		combineVector(dst, c, w, stride, x, d)
		return
	}
	k := d % 4
	switch k {
	case 0:
		for i := range dst {
			dst[i] = c
		}
	case 1:
		w0, x0 := w[0], x[:n]
		for i := range dst {
			dst[i] = c + float64(w0*x0[i])
		}
	case 2:
		w0, w1 := w[0], w[stride]
		x0, x1 := x[:n], x[n:][:n]
		for i := range dst {
			dst[i] = c + float64(w0*x0[i]) + float64(w1*x1[i])
		}
	case 3:
		w0, w1, w2 := w[0], w[stride], w[2*stride]
		x0, x1, x2 := x[:n], x[n:][:n], x[2*n:][:n]
		for i := range dst {
			dst[i] = (c + float64(w0*x0[i])) + (float64(w1*x1[i]) + float64(w2*x2[i]))
		}
	}
	for ; k < d; k += 4 {
		w0, w1, w2, w3 := w[k*stride], w[(k+1)*stride], w[(k+2)*stride], w[(k+3)*stride]
		x0, x1, x2, x3 := x[k*n:][:n], x[(k+1)*n:][:n], x[(k+2)*n:][:n], x[(k+3)*n:][:n]
		for i := range dst {
			dst[i] += (float64(w0*x0[i]) + float64(w1*x1[i])) + (float64(w2*x2[i]) + float64(w3*x3[i]))
		}
	}
}

// Mul multiplies dst by x, entry by entry. It panics if dst is shorter than x.
func Mul(dst, x []float64) {
	dst = dst[:len(x)]
	done := mulVector(dst, x)
	dst, x = dst[done:], x[done:]
	for i, v := range x {
		dst[i] *= v
	}
}

// MulComplement stores y_i (1 - y_i) in dst_i, the slope of the sigmoid at the point with value y_i. It panics if dst
// is shorter.
func MulComplement(dst, y []float64) {
	dst = dst[:len(y)]
	done := mulComplementVector(dst, y)
	dst, y = dst[done:], y[done:]
	for i, v := range y {
		dst[i] = v * (1 - v)
	}
}

// MulPairs stores the products of pairs of rows of x, each of n entries, in the columns of dst, which are stride apart:
// for the j-th two numbers a and b of pairs,
//
//	dst[i·stride + j] = x_ai x_bi,  i < n
//
// It panics if a slice is shorter than its shape. dst must not overlap x.
func MulPairs(dst []float64, stride int, x []float64, n int, pairs []int32) {
	count := len(pairs) / 2
	if n == 0 || count == 0 {
		return
	}
	if stride < count {
		panic("kernel: MulPairs needs a stride of at least the number of pairs")
	}
	_ = dst[(n-1)*stride+count-1]
	for _, a := range pairs {
		_ = x[int(a)*n:][:n]
	}
	if mulPairsVector(dst, stride, x, n, pairs) {
		return
	}
	for i := range n {
		row := dst[i*stride:][:count]
		for j := range row {
			row[j] = x[int(pairs[2*j])*n+i] * x[int(pairs[2*j+1])*n+i]
		}
	}
}

// AddSquares adds to dst, of length n, the squares of the rows x_k of the d×n row-major matrix x:
//
//	dst_i += Σ_{k<d} x_ki²
//
// It panics if x is shorter than its shape.
func AddSquares(dst, x []float64, d int) {
	n := len(dst)
	x = x[:d*n]
	if len(x) == 0 || addSquaresVector(dst, x, d) {
		return
	}
	for ; len(x) > 0; x = x[n:] {
		for i, v := range x[:n] {
			dst[i] += float64(v * v)
		}
	}
}

// Bilinear adds to the m rows of dst, each of n entries, forms of the columns of the row-major matrices y, h×n, and x,
// d×n:
//
//	dst_ki += Σ_{j<h} y_ji (c_kj + Σ_{l<d} W_kjl x_li),  k < m
//
// Each sum goes in the order of its index by fused multiply-add; the sum over j starts at 0. W_k is the h×d row-major
// matrix starting at w[k·stride], and c_k starts bias ≥ h·d entries later. Bilinear panics if a slice is shorter than
// its shape. dst must not overlap the others.
func Bilinear(dst []float64, n int, y []float64, h int, x []float64, d int, w []float64, bias, stride int) {
	if n == 0 || h == 0 || len(dst) < n {
		return
	}
	m := len(dst) / n
	if bias < h*d {
		panic("kernel: Bilinear needs the constants after the matrices")
	}
	dst, y, x = dst[:m*n], y[:h*n], x[:d*n]
	_ = w[(m-1)*stride+bias+h-1]
	if d > 0 && bilinearVector(dst, n, y, h, x, d, w, bias, stride) {
		return
	}
	for k := range m {
		to, w := dst[k*n:][:n], w[k*stride:]
		i := 0
		for ; i+4 <= n; i += 4 {
			var s0, s1, s2, s3 float64
			for j := range h {
				c := w[bias+j]
				t0, t1, t2, t3 := c, c, c, c
				for l, v := range w[j*d:][:d] {
					xl := x[l*n+i:][:4]
					t0 = math.FMA(v, xl[0], t0)
					t1 = math.FMA(v, xl[1], t1)
					t2 = math.FMA(v, xl[2], t2)
					t3 = math.FMA(v, xl[3], t3)
				}
				yj := y[j*n+i:][:4]
				s0 = math.FMA(yj[0], t0, s0)
				s1 = math.FMA(yj[1], t1, s1)
				s2 = math.FMA(yj[2], t2, s2)
				s3 = math.FMA(yj[3], t3, s3)
			}
			to[i] += s0
			to[i+1] += s1
			to[i+2] += s2
			to[i+3] += s3
		}
		for ; i < n; i++ {
			sum := 0.0
			for j := range h {
				inner := w[bias+j]
				for l, v := range w[j*d:][:d] {
					inner = math.FMA(v, x[l*n+i], inner)
				}
				sum = math.FMA(y[j*n+i], inner, sum)
			}
			to[i] += sum
		}
	}
}

// Columns stores the columns of n rows of d entries, stride apart in x, one after the other in dst:
//
//	dst[j·n + i] = x[i·stride + j],  i < n, j < d
//
// It panics if a slice is shorter than its shape, or if stride < d. dst must not overlap x.
func Columns(dst, x []float64, stride, n, d int) {
	if n == 0 || d == 0 {
		return
	}
	if stride < d {
		panic("kernel: Columns needs a stride of at least the number of columns")
	}
	dst, x = dst[:n*d], x[:(n-1)*stride+d]
	if columnsVector(dst, x, stride, n, d) {
		return
	}
	for j := range d {
		column := dst[j*n:][:n]
		for i := range column {
			column[i] = x[i*stride+j]
		}
	}
}
