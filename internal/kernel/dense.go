package kernel

// Dot returns Σ_i a_i b_i. It panics where b is shorter than a.
func Dot(a, b []float64) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	b = b[:len(a)]
	for i, v := range a {
		s0 += v * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// Sum returns Σ_i a_i.
func Sum(a []float64) float64 {
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

// Axpy adds alpha x to dst. It panics where dst is shorter than x.
func Axpy(dst []float64, alpha float64, x []float64) {
	dst = dst[:len(x)]
	for len(dst) >= 4 && len(x) >= 4 {
		dst[0] += alpha * x[0]
		dst[1] += alpha * x[1]
		dst[2] += alpha * x[2]
		dst[3] += alpha * x[3]
		dst, x = dst[4:], x[4:]
	}
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] += alpha * v
	}
}

// Combine stores in dst, of length n, a constant plus a linear combination of
// the rows x_k of the d×n row-major matrix x:
//
//	dst = c + Σ_{k<d} w[k·stride] x_k
//
// Where w is a row of a matrix W and the stride 1, it is a row of W X + c;
// where w begins a column of W and the stride is the width of W, it is a row
// of WᵀX. The entries of dst do not depend on each other, nor on n. It panics
// where a slice is shorter than its shape. dst may not overlap x.
func Combine(dst []float64, c float64, w []float64, stride int, x []float64, d int) {
	n := len(dst)
	k := d % 4
	switch k {
	case 0:
		for i := range dst {
			dst[i] = c
		}
	case 1:
		w0, x0 := w[0], x[:n]
		for i := range dst {
			dst[i] = c + w0*x0[i]
		}
	case 2:
		w0, w1 := w[0], w[stride]
		x0, x1 := x[:n], x[n:][:n]
		for i := range dst {
			dst[i] = c + w0*x0[i] + w1*x1[i]
		}
	case 3:
		w0, w1, w2 := w[0], w[stride], w[2*stride]
		x0, x1, x2 := x[:n], x[n:][:n], x[2*n:][:n]
		for i := range dst {
			dst[i] = (c + w0*x0[i]) + (w1*x1[i] + w2*x2[i])
		}
	}
	for ; k < d; k += 4 {
		w0, w1, w2, w3 := w[k*stride], w[(k+1)*stride], w[(k+2)*stride], w[(k+3)*stride]
		x0, x1, x2, x3 := x[k*n:][:n], x[(k+1)*n:][:n], x[(k+2)*n:][:n], x[(k+3)*n:][:n]
		for i := range dst {
			dst[i] += (w0*x0[i] + w1*x1[i]) + (w2*x2[i] + w3*x3[i])
		}
	}
}

// Mul multiplies dst by x, entry by entry. It panics where dst is shorter
// than x.
func Mul(dst, x []float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] *= v
	}
}
