package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// mulPairs multiplies squares, as many pairs as entries, and transposes them in registers. The last squares overlap the
// ones before.
func (m machine) mulPairs() {
	m.text("mulPairs", "(dst *float64, stride int, x *float64, n int, pairs *int32, count int)",
		"is MulPairs for n and count that fill a vector.")
	dst, stride, x, width := arg("dst"), arg("stride"), arg("x"), arg("n")
	SHLQ(U8(3), stride)
	SHLQ(U8(3), width)
	m.overlapping("n", func(i GPVirtual) {
		table := arg("pairs")
		column := GP64()
		MOVQ(i, column)
		IMULQ(stride, column)
		ADDQ(dst, column)
		m.overlapping("count", func(j GPVirtual) {
			square := make([]VecVirtual, m.lanes)
			for s := range square {
				a, b := GP64(), GP64()
				MOVLQSX(Mem{Base: table, Index: j, Scale: 8, Disp: 8 * s}, a)
				MOVLQSX(Mem{Base: table, Index: j, Scale: 8, Disp: 8*s + 4}, b)
				IMULQ(width, a)
				IMULQ(width, b)
				ADDQ(x, a)
				ADDQ(x, b)
				square[s] = m.mul2(m.load(Mem{Base: a, Index: i, Scale: 8}), Mem{Base: b, Index: i, Scale: 8})
			}
			row := GP64()
			LEAQ(Mem{Base: column, Index: j, Scale: 8}, row)
			for _, v := range m.transpose(square) {
				m.store(v, Mem{Base: row})
				ADDQ(stride, row)
			}
		})
	})
	ret()
}

// columns transposes squares in registers. The last squares overlap the ones before.
func (m machine) columns() {
	m.textAlone("columns", "(dst, x *float64, stride, n, d int)",
		"is Columns for n and d that fill a vector. It asks for the n rows after\n"+
			"those of x, which callers often want next.")
	dst, x, stride, height, after := arg("dst"), arg("x"), arg("stride"), arg("n"), arg("n")
	SHLQ(U8(3), stride)
	SHLQ(U8(3), height)
	IMULQ(stride, after)
	m.overlapping("n", func(i GPVirtual) {
		m.overlapping("d", func(j GPVirtual) {
			from := GP64()
			MOVQ(i, from)
			IMULQ(stride, from)
			ADDQ(x, from)
			square := make([]VecVirtual, m.lanes)
			for s := range square {
				square[s] = m.load(Mem{Base: from, Index: j, Scale: 8})
				ahead := GP64()
				LEAQ(Mem{Base: from, Index: after, Scale: 1}, ahead)
				PREFETCHT0(Mem{Base: ahead, Index: j, Scale: 8, Disp: m.bytes() - 8})
				ADDQ(stride, from)
			}
			to := GP64()
			MOVQ(j, to)
			IMULQ(height, to)
			ADDQ(dst, to)
			for _, v := range m.transpose(square) {
				m.store(v, Mem{Base: to, Index: i, Scale: 8})
				ADDQ(height, to)
			}
		})
	})
	ret()
}

// overlapping runs body at the first index of each vector of n numbers, where n is at least one vector. The last vector
// overlaps the one before it, so that all are whole.
func (m machine) overlapping(n string, body func(i GPVirtual)) {
	i := GP64()
	XORQ(i, i)
	top, done := label("loop"), label("done")
	Label(top)
	body(i)
	last := arg(n)
	SUBQ(U32(uint32(m.lanes)), last)
	CMPQ(i, last)
	JGE(LabelRef(done))
	ADDQ(U32(uint32(m.lanes)), i)
	CMPQ(i, last)
	CMOVQGT(last, i)
	JMP(LabelRef(top))
	Label(done)
}

// transpose returns the columns of a square.
func (m machine) transpose(rows []VecVirtual) []VecVirtual {
	low, high := make([]VecVirtual, m.lanes/2), make([]VecVirtual, m.lanes/2)
	for k := range low {
		low[k], high[k] = m.vec(), m.vec()
		VUNPCKLPD(rows[2*k+1], rows[2*k], low[k])
		VUNPCKHPD(rows[2*k+1], rows[2*k], high[k])
	}
	// low holds columns 0, 2, … in pairs of rows, and high the other columns.
	columns := make([]VecVirtual, m.lanes)
	for odd, half := range [][]VecVirtual{low, high} {
		if !m.wide() {
			columns[odd], columns[2+odd] = m.vec(), m.vec()
			VPERM2F128(U8(0x20), half[1], half[0], columns[odd])
			VPERM2F128(U8(0x31), half[1], half[0], columns[2+odd])
			continue
		}
		for upper, quarters := range []uint8{0x44, 0xee} {
			a, b := m.vec(), m.vec()
			VSHUFF64X2(U8(quarters), half[1], half[0], a)
			VSHUFF64X2(U8(quarters), half[3], half[2], b)
			for second, quarters := range []uint8{0x88, 0xdd} {
				v := m.vec()
				VSHUFF64X2(U8(quarters), b, a, v)
				columns[4*upper+2*second+odd] = v
			}
		}
	}
	return columns
}
