package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// symQuadForms computes the forms of as many rows g_i as fit in a tile. With U the strict upper triangle of P plus half
// its diagonal, P/2 = U + Uᵀ and
//
//	g_iᵀ P g_i = 2 Σ_r g_ir Σ_{j≤r} U_jr g_ij
//
// The columns r are processed in groups of eight, with AVX-512 in strips of up to three groups. A strip is a tile of
// inner sums: for each j, its part of row j is contiguous in p. The columns that do not fill eight lanes come first,
// where rows are short.
func (m machine) symQuadForms() {
	m.text("symQuadForms", "(q, p, rows *float64, n, d int)",
		"stores the forms of the first rows of g, at most n ≥ 1 of them, in\nq, which has room for the rows of a tile.")
	sums := AllocLocal(m.rows * 64)
	sum := func(s, h int) Mem { return m.part(sums.Offset(64*s), h) }
	zero := m.zeros(1)[0]
	for s := range m.rows {
		for h := range m.parts() {
			VMOVUPD(zero, sum(s, h))
		}
	}

	g, n, stride := arg("rows"), arg("n"), arg("d")
	SHLQ(U8(3), stride)
	rows := rowPointers(m.rows, g, stride, n)
	r := GP64() // the strip's first column, in bytes
	XORQ(r, r)

	eights := label("eights")
	width := rest()
	TESTQ(width, width)
	JZ(LabelRef(eights))
	m.formStrip(1, width, rows, r, sum)
	width = rest()
	LEAQ(Mem{Base: r, Index: width, Scale: 8}, r)

	Label(eights)
	top, next, done := label("strip"), label("next"), label("done")
	Label(top)
	left := arg("d")
	SHLQ(U8(3), left)
	SUBQ(r, left)
	JZ(LabelRef(done))
	if m.wide() {
		// Strips of three groups, after the remainder.
		one, three := label("one"), label("three")
		SHRQ(U8(6), left)
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
		m.formStrip(2, nil, rows, r, sum)
		ADDQ(U32(2*64), r)
		JMP(LabelRef(next))
		Label(three)
		m.formStrip(3, nil, rows, r, sum)
		ADDQ(U32(3*64), r)
		JMP(LabelRef(next))
		Label(one)
	}
	m.formStrip(1, nil, rows, r, sum)
	ADDQ(U32(64), r)
	Label(next)
	JMP(LabelRef(top))
	Label(done)

	q := arg("q")
	for s := range m.rows {
		total := make([]VecVirtual, m.parts())
		for h := range total {
			total[h] = m.load(sum(s, h))
		}
		x := m.total(total).AsX()
		VADDSD(x, x, x)
		VMOVSD(x, at(q, s))
	}
	ret()
}

// halves returns the middle of a table of zeros, the half and ones, the multipliers of the eight numbers on the
// diagonal. For lane t on the diagonal, the multipliers start t lanes before.
func halves() Mem {
	words := make([]uint64, 16)
	words[8] = math.Float64bits(0.5)
	for i := 9; i < len(words); i++ {
		words[i] = math.Float64bits(1)
	}
	return table("halves", words...).Offset(64)
}

// formStrip adds to the sums the strip of columns starting at r: count times eight columns, or, with r = 0, width
// columns, at most 7.
func (m machine) formStrip(count int, width Register, rows []GPVirtual, r GPVirtual, sum func(s, h int) Mem) {
	count *= m.parts()
	load := func(p Mem, v int) VecVirtual { return m.load(m.part(p, v)) }
	if width != nil {
		part := make([]mask, count)
		for h := range part {
			part[h] = m.belowOf(h, width)
		}
		load = func(p Mem, v int) VecVirtual { return part[v].load(m.part(p, v)) }
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

	if width == nil {
		while(func(done string) {
			CMPQ(j, r)
			JGE(LabelRef(done))
		}, func() {
			u := make([]VecVirtual, count)
			for v := range u {
				u[v] = load(at(p, 0), v)
			}
			multiply(u, 0)
		})
	}
	// The rows that cross the diagonal in the eight lanes from first on.
	for first := 0; first < count; first += m.parts() {
		half, end := GP64(), GP64()
		LEAQ(halves(), half)
		if width != nil {
			LEAQ(Mem{Base: j, Index: width, Scale: 8}, end)
		} else {
			LEAQ(Mem{Base: j, Disp: 64}, end)
		}
		top := label("diagonal")
		Label(top)
		u := make([]VecVirtual, count)
		for v := first; v < count; v++ {
			u[v] = load(at(p, 0), v)
			if v < first+m.parts() {
				VMULPD(m.part(Mem{Base: half}, v-first), u[v], u[v])
			}
		}
		multiply(u, first)
		SUBQ(U8(8), half)
		CMPQ(j, end)
		JLT(LabelRef(top))
	}
	for s := range acc {
		for h := range m.parts() {
			total := m.load(sum(s, h))
			for v := h; v < count; v += m.parts() {
				VFMADD231PD(load(indexed(rows[s], r, 0), v), acc[s][v], total)
			}
			VMOVUPD(total, sum(s, h))
		}
	}
}
