package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// machine is a vector instruction set, and expresses the operations that the kernels use on both sets.
type machine struct {
	name  string
	lanes int // float64s in a vector
	rows  int // rows of a register tile, of 3 vectors each
}

var (
	avx512 = machine{name: "AVX512", lanes: 8, rows: 8}
	avx2   = machine{name: "AVX2", lanes: 4, rows: 4}
)

func (m machine) wide() bool { return m.lanes == 8 }

// bytes returns the size of a vector.
func (m machine) bytes() int { return 8 * m.lanes }

// text begins a kernel for both machines.
func (m machine) text(name, signature, doc string) {
	if m.wide() {
		stubs = append(stubs, stub{name + "AVX", signature, doc, name})
	}
	TEXT(name+m.name+"<>", NOSPLIT, "func"+signature)
}

// textAlone begins a kernel that is called for this machine.
func (m machine) textAlone(name, signature, doc string) {
	stubs = append(stubs, stub{name + m.name, signature, doc, ""})
	TEXT(name+m.name, NOSPLIT, "func"+signature)
}

// ret ends a function.
func ret() {
	VZEROUPPER()
	RET()
}

// vec returns a new vector register.
func (m machine) vec() VecVirtual {
	if m.wide() {
		return ZMM()
	}
	return YMM()
}

// vecs returns n new vector registers.
func (m machine) vecs(n int) []VecVirtual {
	v := make([]VecVirtual, n)
	for i := range v {
		v[i] = m.vec()
	}
	return v
}

// zeros returns n vectors of zeros.
func (m machine) zeros(n int) []VecVirtual {
	v := m.vecs(n)
	for _, r := range v {
		VXORPD(r, r, r)
	}
	return v
}

// broadcast returns a vector filled with the number at p.
func (m machine) broadcast(p Op) VecVirtual {
	v := m.vec()
	VBROADCASTSD(p, v)
	return v
}

// load returns the vector at p.
func (m machine) load(p Mem) VecVirtual {
	v := m.vec()
	VMOVUPD(p, v)
	return v
}

// store stores v at p.
func (m machine) store(v Register, p Mem) { VMOVUPD(v, p) }

// tables holds the constants in memory, by name.
var tables = map[string]Mem{}

// table returns read-only memory that holds the given words.
func table(name string, words ...uint64) Mem {
	if t, ok := tables[name]; ok {
		return t
	}
	t := GLOBL(name, RODATA|NOPTR)
	for i, w := range words {
		DATA(8*i, U64(w))
	}
	tables[name] = t
	return t
}

// constant returns a vector of equal words, in a register on the machine with plenty of them and in memory on the
// other.
func (m machine) constant(name string, word uint64) Op {
	if m.wide() {
		return m.broadcast(table(name, word, word, word, word))
	}
	return table(name, word, word, word, word)
}

// real is constant for a float.
func (m machine) real(name string, x float64) Op {
	return m.constant(name, math.Float64bits(x))
}

// ones returns a vector of ones in memory.
func (m machine) ones() Mem {
	one := math.Float64bits(1)
	return table("ones", one, one, one, one, one, one, one, one)
}

// mask selects lanes of a vector.
type mask struct {
	m machine
	r Register // an opmask, or a vector of ones and zeros
}

// window returns a table of 8 zeros, 8 words of ones and 8 zeros. Every mask of AVX2 is a vector in it.
func window() Mem {
	words := make([]uint64, 24)
	for i := 8; i < 16; i++ {
		words[i] = ^uint64(0)
	}
	return table("window", words...)
}

// below selects the lanes below n, a register from 0 to lanes.
func (m machine) below(n Register) mask { return m.belowOf(0, n) }

// from selects the lanes from n on, a register from 0 to lanes.
func (m machine) from(n GPVirtual) mask {
	return m.lanesBy(n, 8, func(bits GPVirtual) { SHLXQ(n, bits, bits) })
}

// lanesBy selects lanes by a register. With opmasks, cut clears the other bits; otherwise the mask starts n words
// before the given word of the window.
func (m machine) lanesBy(n Register, word int, cut func(bits GPVirtual)) mask {
	if m.wide() {
		bits, k := GP64(), K()
		MOVQ(U32(0xff), bits)
		cut(bits)
		KMOVB(bits.As32(), k)
		return mask{m, k}
	}
	at, v := GP64(), m.vec()
	LEAQ(window().Offset(8*word), at)
	NEGQ(n)
	VMOVUPD(Mem{Base: at, Index: n, Scale: 8}, v)
	NEGQ(n)
	return mask{m, v}
}

// fromLane is from for a constant.
func (m machine) fromLane(n int) mask {
	if m.wide() {
		bits, k := GP32(), K()
		MOVL(U32(0xff<<n&0xff), bits)
		KMOVB(bits, k)
		return mask{m, k}
	}
	return mask{m, m.load(window().Offset(8 * (8 - n)))} // n ≥ −4 too
}

// and selects the lanes in both masks.
func (a mask) and(b mask) mask {
	if a.m.wide() {
		k := K()
		KANDB(a.r, b.r, k)
		return mask{a.m, k}
	}
	v := a.m.vec()
	VPAND(a.r, b.r, v)
	return mask{a.m, v}
}

// load returns the selected lanes at p, and 0 elsewhere. It does not touch other memory.
func (a mask) load(p Mem) VecVirtual {
	v := a.m.vec()
	if a.m.wide() {
		VMOVUPD_Z(p, a.r, v)
	} else {
		VMASKMOVPD(p, a.r, v)
	}
	return v
}

// store stores the selected lanes of v at p.
func (a mask) store(v Register, p Mem) {
	if a.m.wide() {
		VMOVUPD(v, a.r, p)
	} else {
		VMASKMOVPD(v, a.r, p)
	}
}

// Sums along a row use eight lanes on both machines, so that the bits are the same: one register of AVX-512, or two of
// AVX2, called parts.

// parts returns the number of registers that hold eight numbers.
func (m machine) parts() int { return 8 / m.lanes }

// part returns the address of one part of the eight numbers at p.
func (m machine) part(p Mem, part int) Mem { return p.Offset(part * m.bytes()) }

// belowOf selects the lanes of a part below n, a register from 0 to 7.
func (m machine) belowOf(part int, n Register) mask {
	return m.lanesBy(n, 16+part*m.lanes, func(bits GPVirtual) { BZHIQ(n, bits, bits) })
}

// total adds eight lanes in the same fixed order as total in Go, and returns the sum in lane 0 of an X register. It
// overwrites v.
func (m machine) total(v []VecVirtual) VecVirtual {
	y := YMM()
	if m.wide() {
		high := YMM()
		VEXTRACTF64X4(U8(1), v[0], high)
		VADDPD(high, v[0].AsY(), y)
	} else {
		VADDPD(v[1], v[0], y)
	}
	high, x := XMM(), XMM()
	VEXTRACTF128(U8(1), y.AsY(), high)
	VADDPD(high, y.AsX(), x)
	VUNPCKHPD(x, x, high)
	VADDSD(high, x, x)
	return x
}

// at returns the number at the given index after a pointer.
func at(p Register, index int) Mem { return Mem{Base: p, Disp: 8 * index} }

// indexed returns the number at a pointer plus a register of bytes plus an index.
func indexed(p, offset Register, index int) Mem {
	return Mem{Base: p, Index: offset, Scale: 1, Disp: 8 * index}
}

var labels int

// label returns a new label.
func label(name string) string {
	labels++
	return fmt.Sprintf("%s%d", name, labels)
}

// arg loads a parameter.
func arg(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }

// memory returns where a parameter is.
func memory(name string) Mem {
	p, err := Param(name).Resolve()
	must(err)
	return p.Addr
}

// while runs body until the jump written by leave, to the label it is given, is taken.
func while(leave func(done string), body func()) {
	top, done := label("loop"), label("done")
	Label(top)
	leave(done)
	body()
	JMP(LabelRef(top))
	Label(done)
}

// repeat runs body n times. n is a register ≥ 1, and 0 afterwards.
func repeat(n Register, body func()) {
	top := label("loop")
	Label(top)
	body()
	DECQ(n)
	JNZ(LabelRef(top))
}
