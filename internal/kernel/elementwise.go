package kernel

import (
	"math"

	"vitrine/internal/portable"
)

// The functions in this file rest on one reduction,
//
//	x = k ln 2 + r,  |r| ≤ (ln 2)/2,  tanh(r/2) = p/q,
//
// in which the exponential and its relatives are rational. Each costs one division, no table and, unless |x| is
// extreme, no branch:
//
//	exp(x)           = 2^k (q+p) / (q-p)
//	1/(1 + exp(-x))  = 2^k (q+p) / ((q-p) + 2^k (q+p))
//	tanh(x/2)        = ((2^k-1)q + (2^k+1)p) / ((2^k+1)q + (2^k-1)p)
//
// Each entry of a result depends only on its own argument, not on its position. The relative errors stated below hold
// if the result is a normal number; a subnormal result is within a unit in the last place.

// reach is the largest |x| for which every term above is a normal number.
const reach = 690

// reduce returns p, q and 2^k for |x| ≤ reach. It subtracts k ln 2 in two parts (Cody and Waite 1980). p/q interpolates
// tanh(r/2) at r = 0 and at Chebyshev points of r², with relative error below 6e-18; its coefficients are close to the
// Padé approximant's, 15120, 420, 30240, 3360 and 30. Conversions round the products: without them a compiler may fuse
// a product with the following addition, here or in the caller.
func reduce(x float64) (p, q, scale float64) {
	const (
		shift = 0x1.8p52 // adding it rounds to an integer, kept in the low bits
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
	)
	t := mulAdd(x, math.Log2E, shift)
	k := t - shift
	r := mulAdd(k, -ln2Lo, mulAdd(k, -ln2Hi, x))
	w := float64(r * r)
	p = float64(r * mulAdd(w+420.26645607719024, w, 15131.192501846297))
	q = mulAdd(mulAdd(30.013319066834576, w, 3362.3983291287195), w, 30262.385003692594)
	return p, q, math.Float64frombits((math.Float64bits(t) + 1023) << 52)
}

// scalars returns how many leading entries of x, where the vector code stopped, to compute one at a time before it may
// continue.
func scalars(x []float64) int {
	if active == generic {
		return len(x)
	}
	return min(len(x), 8)
}

// Exp stores exp(x_i) in dst_i, with relative error below 3e-16. dst may be x; it panics if dst is shorter.
func Exp(dst, x []float64) {
	dst = dst[:len(x)]
	for len(x) > 0 {
		n := expVector(dst, x)
		dst, x = dst[n:], x[n:]
		n = scalars(x)
		y := dst[:n]
		for i, v := range x[:n] {
			if !(math.Abs(v) <= reach) {
				y[i] = portable.Exp(v)
				continue
			}
			p, q, scale := reduce(v)
			y[i] = (q + p) / (q - p) * scale
		}
		dst, x = dst[n:], x[n:]
	}
}

// Sigmoid stores 1/(1 + exp(-x_i)) in dst_i, with relative error below 4e-16.
// dst may be x; it panics if dst is shorter.
func Sigmoid(dst, x []float64) {
	dst = dst[:len(x)]
	for len(x) > 0 {
		n := sigmoidVector(dst, x)
		dst, x = dst[n:], x[n:]
		n = scalars(x)
		y := dst[:n]
		for i, v := range x[:n] {
			if !(math.Abs(v) <= reach) {
				y[i] = portable.Exp(min(v, 0))
				continue
			}
			p, q, scale := reduce(v)
			e := float64((q + p) * scale)
			y[i] = e / (q - p + e)
		}
		dst, x = dst[n:], x[n:]
	}
}

// Tanh stores tanh(x_i) in dst_i, with relative error below 5e-16. dst may be x; it panics if dst is shorter.
func Tanh(dst, x []float64) {
	const one = 20 // tanh(20) rounds to 1
	dst = dst[:len(x)]
	for len(x) > 0 {
		n := tanhVector(dst, x)
		dst, x = dst[n:], x[n:]
		n = scalars(x)
		y := dst[:n]
		for i, v := range x[:n] {
			if !(math.Abs(v) <= one) {
				y[i] = max(-1, min(1, v))
				continue
			}
			p, q, scale := reduce(2 * v)
			y[i] = mulAdd(scale-1, q, float64((scale+1)*p)) / mulAdd(scale+1, q, float64((scale-1)*p))
		}
		dst, x = dst[n:], x[n:]
	}
}

// Sincos stores sin(x_i) in sin_i and cos(x_i) in cos_i, as computed by [portable.Sincos]. sin or cos may be x; it
// panics if one of them is shorter.
func Sincos(sin, cos, x []float64) {
	sin, cos = sin[:len(x)], cos[:len(x)]
	for len(x) > 0 {
		n := sincosVector(sin, cos, x)
		sin, cos, x = sin[n:], cos[n:], x[n:]
		n = scalars(x)
		s, c := sin[:n], cos[:n]
		for i, v := range x[:n] {
			s[i], c[i] = portable.Sincos(v)
		}
		sin, cos, x = sin[n:], cos[n:], x[n:]
	}
}

// Softplus stores log(1 + exp(x_i)) in dst_i, with relative error below 6e-16. dst may be x; it panics if dst is
// shorter.
//
// It is max(0, x) + log(1+e) with e = exp(-|x|), using log(1+e) = 2 atanh(z) and z = e/(2+e) ≤ 1/3. The polynomial
// interpolates atanh(z)/z at z = 0 and at Chebyshev points of z², with relative error below 6e-17.
func Softplus(dst, x []float64) {
	dst = dst[:len(x)]
	for len(x) > 0 {
		n := softplusVector(dst, x)
		dst, x = dst[n:], x[n:]
		n = scalars(x)
		y := dst[:n]
		for i, v := range x[:n] {
			a := math.Abs(v)
			if !(a <= reach) {
				y[i] = max(v, 0) + portable.Exp(-a)
				continue
			}
			p, q, scale := reduce(-a)
			e := float64((q + p) * scale)
			z := e / mulAdd(2, q-p, e)
			w := float64(z * z)
			w2 := float64(w * w)
			even := mulAdd(
				mulAdd(mulAdd(mulAdd(0.049553757507379496, w2, 0.07682238207026702), w2, 0.11111096669559448),
					w2, 0.19999999998069787), w2, 1,
			)
			odd := mulAdd(mulAdd(mulAdd(mulAdd(0.08861876944228127, w2, 0.06792340290615687), w2, 0.09091401228746601),
				w2, 0.14285714524504955), w2, 0.33333333333338694)
			y[i] = mulAdd(2*z, mulAdd(w, odd, even), float64(0.5*(v+a)))
		}
		dst, x = dst[n:], x[n:]
	}
}

// LogSumExp1 returns log(1 + Σ_i exp(x_i)), without overflow or underflow, with
// relative error below 1e-14 for up to 4000 entries:
//
//	m + log(exp(-m) + Σ_i exp(x_i - m)),  m = max(0, max_i x_i)
func LogSumExp1(x []float64) float64 {
	m := 0.0
	for _, v := range x {
		m = max(m, v)
	}
	if math.IsInf(m, 1) {
		return m
	}
	var block [64]float64
	sum := 0.0
	for len(x) > 0 {
		e := block[:min(len(x), len(block))]
		for i := range e {
			e[i] = x[i] - m
		}
		Exp(e, e)
		sum += Sum(e)
		x = x[len(e):]
	}
	if m == 0 {
		return portable.Log1p(sum)
	}
	return m + portable.Log(portable.Exp(-m)+sum)
}
