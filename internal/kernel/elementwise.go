package kernel

import "math"

// The functions of this file rest on one reduction,
//
//	x = k ln 2 + r,  |r| ≤ (ln 2)/2,  tanh(r/2) = p/q,
//
// in which the exponential and its relatives are rational, so that each costs
// one division, no table and, unless |x| is extreme, no branch:
//
//	exp(x)           = 2^k (q+p) / (q-p)
//	1/(1 + exp(-x))  = 2^k (q+p) / ((q-p) + 2^k (q+p))
//	tanh(x/2)        = ((2^k-1)q + (2^k+1)p) / ((2^k+1)q + (2^k-1)p)
//
// An entry of a result depends on its own argument only, not on its position.
// The relative errors stated below hold where the result is a normal number; a
// subnormal one is within a unit in the last place.

// reach is the |x| up to which every term above is a normal number.
const reach = 690

// reduce returns p, q and 2^k for |x| ≤ reach. It subtracts k ln 2 in two
// parts (Cody and Waite 1980). p/q interpolates tanh(r/2) at r = 0 and at
// Chebyshev points of r², with relative error below 6e-18; its coefficients
// are close to those of the Padé approximant, 15120, 420, 30240, 3360 and 30.
func reduce(x float64) (p, q, scale float64) {
	const (
		shift = 0x1.8p52 // adding it rounds to an integer, kept in the low bits
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
	)
	t := x*math.Log2E + shift
	k := t - shift
	r := (x - k*ln2Hi) - k*ln2Lo
	w := r * r
	p = r * ((w+420.26645607719024)*w + 15131.192501846297)
	q = (30.013319066834576*w+3362.3983291287195)*w + 30262.385003692594
	return p, q, math.Float64frombits((math.Float64bits(t) + 1023) << 52)
}

// Exp stores exp(x_i) in dst_i, with relative error below 3e-16. dst may be x;
// it panics where dst is shorter.
func Exp(dst, x []float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		if !(math.Abs(v) <= reach) {
			dst[i] = math.Exp(v)
			continue
		}
		p, q, scale := reduce(v)
		dst[i] = (q + p) / (q - p) * scale
	}
}

// Sigmoid stores 1/(1 + exp(-x_i)) in dst_i, with relative error below 4e-16.
// dst may be x; it panics where dst is shorter.
func Sigmoid(dst, x []float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		if !(math.Abs(v) <= reach) {
			dst[i] = math.Exp(min(v, 0))
			continue
		}
		p, q, scale := reduce(v)
		e := (q + p) * scale
		dst[i] = e / (q - p + e)
	}
}

// Tanh stores tanh(x_i) in dst_i, with relative error below 5e-16. dst may be
// x; it panics where dst is shorter.
func Tanh(dst, x []float64) {
	const one = 20 // tanh(20) rounds to 1
	dst = dst[:len(x)]
	for i, v := range x {
		if !(math.Abs(v) <= one) {
			dst[i] = max(-1, min(1, v))
			continue
		}
		p, q, scale := reduce(2 * v)
		dst[i] = ((scale-1)*q + (scale+1)*p) / ((scale+1)*q + (scale-1)*p)
	}
}

// Softplus stores log(1 + exp(x_i)) in dst_i, with relative error below 6e-16.
// dst may be x; it panics where dst is shorter.
//
// It is max(0, x) + log(1+e) with e = exp(-|x|), by log(1+e) = 2 atanh(z) and
// z = e/(2+e) ≤ 1/3. The polynomial interpolates atanh(z)/z at z = 0 and at
// Chebyshev points of z², with relative error below 6e-17.
func Softplus(dst, x []float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		a := math.Abs(v)
		if !(a <= reach) {
			dst[i] = max(v, 0) + math.Exp(-a)
			continue
		}
		p, q, scale := reduce(-a)
		e := (q + p) * scale
		z := e / (2*(q-p) + e)
		w := z * z
		w2 := w * w
		even := (((0.049553757507379496*w2+0.07682238207026702)*w2+0.11111096669559448)*w2+0.19999999998069787)*w2 + 1
		odd := (((0.08861876944228127*w2+0.06792340290615687)*w2+0.09091401228746601)*w2+0.14285714524504955)*w2 + 0.33333333333338694
		dst[i] = 0.5*(v+a) + 2*z*(even+w*odd)
	}
}
