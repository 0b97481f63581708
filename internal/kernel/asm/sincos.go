package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// sincos writes portable.Sincos: the same operations in the same order, none of them fused, so that the bits are the
// same.
func (m machine) sincos() {
	m.text("sincos", "(sin, cos, x *float64, n int) int",
		"computes a prefix of the n entries, up to the first vector with an\n"+
			"entry out of reach, and returns its length.")
	sin, cos, x, n := arg("sin"), arg("cos"), arg("x"), arg("n")
	m.vectors("sincos", 1<<29-1, x, n, func(v VecVirtual, i Register) {
		s, c := m.sincosOf(v)
		VMOVUPD(s, Mem{Base: sin, Index: i, Scale: 8})
		VMOVUPD(c, Mem{Base: cos, Index: i, Scale: 8})
	})
}

// sincosOf returns the sine and the cosine of x.
func (m machine) sincosOf(x VecVirtual) (sin, cos VecVirtual) {
	abs := m.and(x, m.constant("positive", math.MaxInt64))
	// The low bits of an integer plus the shift contain the integer.
	shift := m.real("shift", 0x1.8p52)
	octant := m.add(m.truncate(m.mul2(abs, m.real("fourByPi", 4/math.Pi))), shift)
	one := m.constant("bit", 1)
	VPADDQ(m.and(octant, one), octant, octant) // zeros belong to the origin
	y := m.sub(octant, shift)
	z := m.sub(abs, m.mul2(y, m.constant("quarter1", 0x3fe921fb40000000)))
	z = m.sub(z, m.mul2(y, m.constant("quarter2", 0x3e64442d00000000)))
	z = m.sub(z, m.mul2(y, m.constant("quarter3", 0x3ce8469898cc5170)))
	square := m.mul2(z, z)

	c := m.horner(square, "cos", -1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7,
		2.48015872888517045348e-5, -1.38888888888730564116e-3, 4.16666666666665929218e-2)
	less := m.vec()
	VMOVUPD(m.ones(), less)
	less = m.sub(less, m.mul2(square, m.real("half", 0.5)))
	cos = m.add(less, m.mul2(m.mul2(square, square), c))
	s := m.horner(square, "sin", 1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6,
		-1.98412698295895385996e-4, 8.33333333332211858878e-3, -1.66666666666666307295e-1)
	sin = m.add(z, m.mul2(m.mul2(z, square), s))

	// In odd quadrants sine and cosine swap, and in the last three quadrants one of them or both change signs.
	odd, upper, signs := m.vec(), m.vec(), m.constant("negative", 1<<63)
	VPSRLQ(U8(1), octant, odd)
	odd = m.and(odd, one)
	all := m.zeros(1)[0]
	VPSUBQ(odd, all, all)
	other := m.and(m.xor(sin, cos), all)
	VPSLLQ(U8(61), octant, upper) // the bit of the upper quadrants becomes the sign
	VPSLLQ(U8(63), odd, odd)
	sin = m.xor(m.xor(sin, other), m.and(m.xor(upper, x), signs))
	cos = m.xor(m.xor(cos, other), m.and(m.xor(upper, odd), signs))
	return sin, cos
}

// truncate rounds towards 0.
func (m machine) truncate(x VecVirtual) VecVirtual {
	const towardsZero = 3
	v := m.vec()
	if m.wide() {
		VRNDSCALEPD(U8(towardsZero), x, v)
	} else {
		VROUNDPD(U8(towardsZero), x, v)
	}
	return v
}
