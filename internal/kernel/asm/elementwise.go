package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// elementwise writes the functions of elementwise.go: the same operations in the same order, none of them fused, so
// that the bits are the same.
func (m machine) elementwise() {
	m.function("exp", 690, func(x Register) VecVirtual {
		r := m.reduction()(x)
		y := m.div(m.add(r.q, r.p), m.sub(r.q, r.p))
		return m.mul2(y, r.scale)
	})
	m.function("sigmoid", 690, func(x Register) VecVirtual {
		r := m.reduction()(x)
		e := m.mul2(m.add(r.q, r.p), r.scale)
		return m.div(e, m.add(m.sub(r.q, r.p), e))
	})
	m.function("tanh", 20, func(x Register) VecVirtual {
		r := m.reduction()(m.add(x, x))
		one := m.real("one", 1)
		less, more := m.sub(r.scale, one), m.add(r.scale, one)
		above := m.add(m.mul2(less, r.q), m.mul2(more, r.p))
		below := m.add(m.mul2(more, r.q), m.mul2(less, r.p))
		return m.div(above, below)
	})
	m.function("softplus", 690, func(x Register) VecVirtual {
		a := m.and(x, m.constant("positive", math.MaxInt64))
		minus := m.vec()
		VORPD(m.constant("negative", 1<<63), a, minus)
		r := m.reduction()(minus)
		e := m.mul2(m.add(r.q, r.p), r.scale)
		below := m.sub(r.q, r.p)
		z := m.div(e, m.add(m.add(below, below), e))
		w := m.mul2(z, z)
		w2 := m.mul2(w, w)
		even := m.horner(w2, "even", 0.049553757507379496,
			0.07682238207026702, 0.11111096669559448, 0.19999999998069787, 1)
		odd := m.horner(w2, "odd", 0.08861876944228127, 0.06792340290615687,
			0.09091401228746601, 0.14285714524504955, 0.33333333333338694)
		sum := m.add(even, m.mul2(w, odd))
		half := m.mul2(m.add(x, a), m.real("half", 0.5))
		return m.add(half, m.mul2(m.add(z, z), sum))
	})
}

// function writes a loop that applies body to the vectors of x, up to the first with a lane outside ±reach.
func (m machine) function(name string, reach float64, body func(x Register) VecVirtual) {
	m.text(name, "(dst, x *float64, n int) int",
		"computes a prefix of the n entries, up to the first vector with an\n"+
			"entry out of reach, and returns its length.")
	dst, x, n := arg("dst"), arg("x"), arg("n")
	m.vectors(name, reach, x, n, func(v VecVirtual, i Register) {
		VMOVUPD(body(v), Mem{Base: dst, Index: i, Scale: 8})
	})
}

// vectors writes a loop that applies body to the vectors of x and their index i, up to the first with a lane outside
// ±reach. It returns the index of that vector.
func (m machine) vectors(name string, reach float64, x, n GPVirtual, body func(v VecVirtual, i Register)) {
	i := GP64()
	XORQ(i, i)
	positive := m.constant("positive", math.MaxInt64)
	limit := m.real(name+"Reach", reach)
	SUBQ(U32(uint32(m.lanes)), n)
	while(func(done string) {
		CMPQ(i, n)
		JGT(LabelRef(done))
	}, func() {
		v := m.load(Mem{Base: x, Index: i, Scale: 8})
		abs := m.and(v, positive)
		const lessEqual = 18
		reached := GP32()
		if m.wide() {
			k := K()
			VCMPPD(U8(lessEqual), limit, abs, k)
			KMOVB(k, reached)
		} else {
			VCMPPD(U8(lessEqual), limit, abs, abs)
			VMOVMSKPD(abs, reached)
		}
		CMPL(reached, U32(1<<m.lanes-1))
		JNE(LabelRef(name + "Out"))
		body(v, i)
		ADDQ(U32(uint32(m.lanes)), i)
	})
	Label(name + "Out")
	Store(i, ReturnIndex(0))
	ret()
}

// reduced holds the results of reduce.
type reduced struct{ p, q, scale VecVirtual }

// reduction writes reduce.
func (m machine) reduction() func(x Register) reduced {
	return func(x Register) reduced {
		shift := m.real("shift", 0x1.8p52)
		t := m.add(m.mul2(x, m.real("log2e", math.Log2E)), shift)
		k := m.sub(t, shift)
		r := m.sub(x, m.mul2(k, m.real("ln2Hi", 6.93147180369123816490e-01)))
		r = m.sub(r, m.mul2(k, m.real("ln2Lo", 1.90821492927058770002e-10)))
		w := m.mul2(r, r)
		p := m.add(w, m.real("p1", 420.26645607719024))
		p = m.add(m.mul2(p, w), m.real("p0", 15131.192501846297))
		p = m.mul2(p, r)
		q := m.add(m.mul2(w, m.real("q2", 30.013319066834576)), m.real("q1", 3362.3983291287195))
		q = m.add(m.mul2(q, w), m.real("q0", 30262.385003692594))
		scale := m.vec()
		VPADDQ(m.constant("bias", 1023), t, scale)
		VPSLLQ(U8(52), scale, scale)
		return reduced{p, q, scale}
	}
}

// horner evaluates a polynomial with the given coefficients, highest first.
func (m machine) horner(x VecVirtual, name string, c ...float64) VecVirtual {
	sum := m.mul2(x, m.real(name+"0", c[0]))
	for i, v := range c[1:] {
		if i > 0 {
			sum = m.mul2(sum, x)
		}
		sum = m.add(sum, m.real(name+string(rune('1'+i)), v))
	}
	return sum
}

func (m machine) add(a Register, b Op) VecVirtual {
	v := m.vec()
	VADDPD(b, a, v)
	return v
}

// sub returns a − b.
func (m machine) sub(a Register, b Op) VecVirtual {
	v := m.vec()
	VSUBPD(b, a, v)
	return v
}

func (m machine) mul2(a Register, b Op) VecVirtual {
	v := m.vec()
	VMULPD(b, a, v)
	return v
}

// div returns a / b.
func (m machine) div(a Register, b Op) VecVirtual {
	v := m.vec()
	VDIVPD(b, a, v)
	return v
}

func (m machine) and(a Register, b Op) VecVirtual {
	v := m.vec()
	VANDPD(b, a, v)
	return v
}

func (m machine) xor(a Register, b Op) VecVirtual {
	v := m.vec()
	VXORPD(b, a, v)
	return v
}
