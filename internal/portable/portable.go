// Package portable provides elementary functions with the same bits on every machine, for values that become part of a
// learner's state. The functions of package math differ in the last digit between architectures, and between amd64
// machines with and without fused multiply-add, and compilers may fuse their operations. The functions here round after
// every operation, and fuse only where the code says so.
//
// They return the same values as package math on amd64 with fused multiply-add, except for logarithms of subnormal
// numbers and exponentials above 2^1023 √2, which package math gets wrong.
package portable

import "math"

// Exp returns exp(x). Like exp_amd64.s of package math, it subtracts a multiple of ln 2 from x, sums the Taylor series
// at a sixteenth of the remainder, and squares 1 plus the result four times (Shibata 2010).
func Exp(x float64) float64 {
	const (
		ln2Hi    = 0.69314718055966295651160180568695068359375
		ln2Lo    = 0.28235290563031577122588448175013436025525412068e-12
		overflow = 7.09782712893384e+02
	)
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x > overflow:
		return math.Inf(1)
	case x < -746:
		return 0
	}
	k := math.RoundToEven(math.Log2E * x)
	r := math.FMA(-ln2Hi, k, x)
	r = math.FMA(-ln2Lo, k, r) * 0.0625
	s := math.FMA(2.4801587301587301587e-5, r, 1.9841269841269841270e-4)
	s = math.FMA(s, r, 1.3888888888888888889e-3)
	s = math.FMA(s, r, 8.3333333333333333333e-3)
	s = math.FMA(s, r, 4.1666666666666666667e-2)
	s = math.FMA(s, r, 1.6666666666666666667e-1)
	s = math.FMA(s, r, 0.5)
	s = math.FMA(s, r, 1)
	r = float64(r * s)
	r = float64(r * (r + 2))
	r = float64(r * (r + 2))
	r = float64(r * (r + 2))
	r = math.FMA(r, r+2, 1)
	switch e := int(k) + 1023; {
	case e >= 2047:
		return r * 2 * math.Float64frombits(uint64(e-1)<<52)
	case e > 0:
		return r * math.Float64frombits(uint64(e)<<52)
	case e < -52:
		return 0
	default: // in two steps; the first is exact
		return r * math.Float64frombits(uint64(e+1022)<<52) * math.Float64frombits(1<<52)
	}
}

const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
)

// Log returns the natural logarithm of x, with the algorithm of FreeBSD's e_log.c and package math.
func Log(x float64) float64 {
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	f, exponent := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f *= 2
		exponent--
	}
	f--
	k := float64(exponent)
	s := f / (2 + f)
	hfsq := float64(float64(0.5*f) * f)
	sum := float64(s*(hfsq+atanh(s))) + float64(k*ln2Lo)
	return float64(k*ln2Hi) - ((hfsq - sum) - f)
}

// atanh returns the series of 2 atanh(s)/s − 2 for |s| ≤ 0.18, which both logarithms share, in the order of Log.
func atanh(s float64) float64 {
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	odd := mulAdd(s4, mulAdd(s4, mulAdd(s4, l7, l5), l3), l1)
	even := mulAdd(s4, mulAdd(s4, l6, l4), l2)
	return float64(s2*odd) + float64(s4*even)
}

const (
	l1 = 6.666666666666735130e-01
	l2 = 3.999999999940941908e-01
	l3 = 2.857142874366239149e-01
	l4 = 2.222219843214978396e-01
	l5 = 1.818357216161805012e-01
	l6 = 1.531383769920937332e-01
	l7 = 1.479819860511658591e-01
)

// mulAdd returns a b + c, rounded twice: the conversion prevents fusing.
func mulAdd(a, b, c float64) float64 { return float64(a*b) + c }

// Sincos returns sin(x) and cos(x), with the arithmetic of package math (Moshier's Cephes), but without branches on the
// octant of x, which processors cannot predict. From 2^29 on it calls package math, which does not return the same bits
// everywhere.
func Sincos(x float64) (sin, cos float64) {
	const (
		first  = 0x3fe921fb40000000 // the three parts of π/4
		second = 0x3e64442d00000000
		third  = 0x3ce8469898cc5170
	)
	if !(math.Abs(x) < 1<<29) {
		return math.Sincos(x)
	}
	octant := int64(math.Abs(x) * (4 / math.Pi))
	octant += octant & 1 // zeros belong to the origin
	y := float64(octant)
	z := math.Abs(x) - float64(y*math.Float64frombits(first))
	z -= float64(y * math.Float64frombits(second))
	z -= float64(y * math.Float64frombits(third))
	square := z * z
	c := mulAdd(-1.13585365213876817300e-11, square, 2.08757008419747316778e-9)
	c = mulAdd(c, square, -2.75573141792967388112e-7)
	c = mulAdd(c, square, 2.48015872888517045348e-5)
	c = mulAdd(c, square, -1.38888888888730564116e-3)
	c = mulAdd(c, square, 4.16666666666665929218e-2)
	cos = 1 - float64(0.5*square) + float64(float64(square*square)*c)
	s := mulAdd(1.58962301576546568060e-10, square, -2.50507477628578072866e-8)
	s = mulAdd(s, square, 2.75573136213857245213e-6)
	s = mulAdd(s, square, -1.98412698295895385996e-4)
	s = mulAdd(s, square, 8.33333333332211858878e-3)
	s = mulAdd(s, square, -1.66666666666666307295e-1)
	sin = z + float64(float64(z*square)*s)

	// In odd quadrants sine and cosine swap, and in the last three quadrants one of them or both change signs.
	quadrant := uint64(octant) >> 1
	odd, upper := quadrant&1, quadrant>>1&1
	a, b := math.Float64bits(sin), math.Float64bits(cos)
	other := (a ^ b) & -odd
	a ^= other ^ (upper<<63 ^ math.Float64bits(x)&(1<<63))
	b ^= other ^ (upper^odd)<<63
	return math.Float64frombits(a), math.Float64frombits(b)
}

// Log1p returns log(1 + x) without loss for small x, with the algorithm of FreeBSD's s_log1p.c and package math.
func Log1p(x float64) float64 {
	switch {
	case x < -1 || x != x:
		return math.NaN()
	case x == -1:
		return math.Inf(-1)
	case x > math.MaxFloat64:
		return x
	}
	const minimum, maximum = math.Sqrt2/2 - 1, math.Sqrt2 - 1
	switch a := math.Abs(x); {
	case a < 0x1p-54:
		return x
	case a < 0x1p-29:
		return x - float64(float64(x*x)*0.5)
	}
	k, f, c := 0.0, x, 0.0 // 1 + x is about 2^k (1 + f) + c
	tiny := false          // |f| < 2⁻²⁰
	if !(minimum < x && x < maximum) {
		u := x
		if x < 1<<53 {
			u = 1 + x
		}
		bits := math.Float64bits(u)
		exponent := int(bits>>52) - 1023
		switch {
		case x >= 1<<53:
		case exponent > 0:
			c = (1 - (u - x)) / u
		default:
			c = (x - (u - 1)) / u
		}
		if bits &= 1<<52 - 1; bits < 0x6a09e667f3bcd { // the mantissa of √2
			u = math.Float64frombits(bits | 0x3ff<<52)
			tiny = bits == 0
		} else {
			exponent++
			u = math.Float64frombits(bits | 0x3fe<<52)
			tiny = (1<<52-bits)>>2 == 0
		}
		k, f = float64(exponent), u-1
	}
	hfsq := float64(float64(0.5*f) * f)
	if tiny {
		if f == 0 {
			if k == 0 {
				return 0
			}
			return float64(k*ln2Hi) + (c + float64(k*ln2Lo))
		}
		r := float64(hfsq * (1 - float64(0.66666666666666666*f)))
		if k == 0 {
			return f - r
		}
		return float64(k*ln2Hi) - ((r - (float64(k*ln2Lo) + c)) - f)
	}
	s := f / (2 + f)
	z := float64(s * s)
	r := mulAdd(z, l7, l6)
	for _, l := range [...]float64{l5, l4, l3, l2, l1} {
		r = mulAdd(z, r, l)
	}
	r = float64(z * r)
	if k == 0 {
		return f - (hfsq - float64(s*(hfsq+r)))
	}
	return float64(k*ln2Hi) - ((hfsq - (float64(s*(hfsq+r)) + (float64(k*ln2Lo) + c))) - f)
}
