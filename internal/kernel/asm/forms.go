package main

import (
	"math"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// symQuadForms computes the forms of as many rows g_i as a tile has. With the
// strict upper triangle of P and half its diagonal, P/2 = U + Uᵀ and
//
//	g_iᵀ P g_i = 2 Σ_r g_ir Σ_{j≤r} U_jr g_ij
//
// The columns r go in strips of up to three vectors, each a tile of inner
// sums: for one j the strip's part of row j is contiguous in p. The strip of
// the columns that do not fill a vector comes first, where rows are short.
func (m machine) symQuadForms() {
	m.text("symQuadForms", "(q, p, rows *float64, n, d int)",
		"stores the forms of the first rows of g, at most n ≥ 1 of them, in\nq, which has room for the rows of a tile.")
	sums := AllocLocal(m.rows * m.bytes())
	sum := func(s int) Mem { return sums.Offset(s * m.bytes()) }
	zero := m.zeros(1)[0]
	for s := range m.rows {
		VMOVUPD(zero, sum(s))
	}

	g, n, stride := arg("rows"), arg("n"), arg("d")
	SHLQ(U8(3), stride)
	rows := rowPointers(m.rows, g, stride, n)
	r := GP64() // the strip's first column, in bytes
	XORQ(r, r)

	vectors := label("vectors")
	rest := arg("d")
	ANDQ(U32(uint32(m.lanes-1)), rest)
	JZ(LabelRef(vectors))
	part := m.below(rest)
	m.formStrip(1, &part, rest, rows, r, sum)
	rest = arg("d")
	ANDQ(U32(uint32(m.lanes-1)), rest)
	LEAQ(Mem{Base: r, Index: rest, Scale: 8}, r)

	Label(vectors)
	top, one, three, next, done := label("strip"), label("one"), label("three"), label("next"), label("done")
	// Strips of three vectors, after those of the remainder of the vectors.
	Label(top)
	left := arg("d")
	SHLQ(U8(3), left)
	SUBQ(r, left)
	JZ(LabelRef(done))
	SHRQ(U8(bits.TrailingZeros(uint(m.bytes()))), left)
	thirds, quotient := GP64(), GP64()
	MOVQ(U32(0x55555556), thirds)
	MOVQ(left, quotient)
	IMULQ(thirds, quotient)
	SHRQ(U8(32), quotient)
	LEAQ(Mem{Base: quotient, Index: quotient, Scale: 2}, quotient)
	SUBQ(quotient, left)
	JZ(LabelRef(three))
	CMPQ(left, U8(1))
	JEQ(LabelRef(one))
	m.formStrip(2, nil, nil, rows, r, sum)
	ADDQ(U32(uint32(2*m.bytes())), r)
	JMP(LabelRef(next))
	Label(one)
	m.formStrip(1, nil, nil, rows, r, sum)
	ADDQ(U32(uint32(m.bytes())), r)
	JMP(LabelRef(next))
	Label(three)
	m.formStrip(3, nil, nil, rows, r, sum)
	ADDQ(U32(uint32(3*m.bytes())), r)
	Label(next)
	JMP(LabelRef(top))
	Label(done)

	q := arg("q")
	for s := range m.rows {
		x := m.total(m.load(sum(s))).AsX()
		VADDSD(x, x, x)
		VMOVSD(x, at(q, s))
	}
	ret()
}

// half returns the place in a table of the zeros, the half and the ones by
// which the vector on the diagonal is multiplied: for the lane t on the
// diagonal it begins t lanes before.
func (m machine) half() Mem {
	words := make([]uint64, 2*m.lanes)
	words[m.lanes] = math.Float64bits(0.5)
	for i := m.lanes + 1; i < len(words); i++ {
		words[i] = math.Float64bits(1)
	}
	return table("half"+m.name, words...).Offset(m.bytes())
}

// formStrip adds to the sums the strip of columns that begins at r, of count
// vectors; or of the lanes of part, of which there are width, with r = 0.
func (m machine) formStrip(count int, part *mask, width Register, rows []GPVirtual, r GPVirtual, sum func(s int) Mem) {
	load := m.load
	if part != nil {
		load = part.load
	}
	acc := make([][]VecVirtual, m.rows)
	for s := range acc {
		acc[s] = m.zeros(count)
	}
	p, step, j := arg("p"), arg("d"), GP64()
	ADDQ(r, p)
	LEAQ(Mem{Base: step, Disp: -1}, step)
	SHLQ(U8(3), step)
	XORQ(j, j)
	multiply := func(u []VecVirtual, first int) {
		for s := range acc {
			b := m.broadcast(indexed(rows[s], j, 0))
			for v := first; v < count; v++ {
				VFMADD231PD(u[v], b, acc[s][v])
			}
		}
		ADDQ(step, p)
		SUBQ(U8(8), step)
		ADDQ(U8(8), j)
	}

	if part == nil {
		while(func(done string) {
			CMPQ(j, r)
			JGE(LabelRef(done))
		}, func() {
			u := make([]VecVirtual, count)
			for v := range u {
				u[v] = m.load(at(p, v*m.lanes))
			}
			multiply(u, 0)
		})
	}
	// The rows that cross the diagonal in vector first of the strip.
	for first := range count {
		half, end := GP64(), GP64()
		LEAQ(m.half(), half)
		if part != nil {
			LEAQ(Mem{Base: j, Index: width, Scale: 8}, end)
		} else {
			LEAQ(Mem{Base: j, Disp: m.bytes()}, end)
		}
		top := label("diagonal")
		Label(top)
		u := make([]VecVirtual, count)
		u[first] = load(at(p, first*m.lanes))
		VMULPD(Mem{Base: half}, u[first], u[first])
		for v := first + 1; v < count; v++ {
			u[v] = m.load(at(p, v*m.lanes))
		}
		multiply(u, first)
		SUBQ(U8(8), half)
		CMPQ(j, end)
		JLT(LabelRef(top))
	}
	for s := range acc {
		total := m.load(sum(s))
		for v := range acc[s] {
			VFMADD231PD(load(indexed(rows[s], r, v*m.lanes)), acc[s][v], total)
		}
		VMOVUPD(total, sum(s))
	}
}
