package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// symRankOne adds row after row. The last vector of a row overlaps the one before: it is computed first and stored
// last. That way no load overlaps a recent store, which would stall.
func (m machine) symRankOne() {
	m.textAlone("symRankOne", "(p *float64, c float64, v *float64, d int)",
		"is SymRankOne for the rows of p that fill a vector.")
	p, v, d := arg("p"), arg("v"), arg("d")
	c := Load(Param("c"), XMM())
	m.whileAtLeast(d, m.lanes, func() {
		scaled, cv := XMM(), m.vec()
		VMULSD(at(v, 0), c, scaled)
		VBROADCASTSD(scaled, cv)
		sum := func(p, v Mem) VecVirtual {
			r := m.mul2(cv, v)
			VADDPD(p, r, r)
			return r
		}
		ofLast := func(p GPVirtual) Mem { return Mem{Base: p, Index: d, Scale: 8, Disp: -m.bytes()} }
		last := sum(ofLast(p), ofLast(v))
		q, x, n, end := GP64(), GP64(), GP64(), GP64()
		MOVQ(p, q)
		MOVQ(v, x)
		LEAQ(ofLast(p), end)
		MOVQ(d, n)
		m.whileAtLeast(n, m.lanes+1, func() {
			VMOVUPD(sum(at(q, 0), at(x, 0)), at(q, 0))
			m.advance(1, n, q, x)
		})
		VMOVUPD(last, Mem{Base: end})
		LEAQ(Mem{Base: end, Disp: m.bytes()}, p)
		ADDQ(U8(8), v)
		DECQ(d)
	})
	ret()
}

// symMulVec processes the rows in blocks of eight. It reads each block, or as many rows of it as fit in a tile, once,
// eight columns at a time, both for the rows' products with g and for their multiples in dst.
func (m machine) symMulVec() {
	m.text("symMulVec", "(dst, p, rows *float64, d int)",
		"adds P g to dst, without the rows of p beyond a multiple of eight.")
	p, left, a := arg("p"), arg("d"), GP64() // first row of the block, in bytes
	XORQ(a, a)
	m.whileAtLeast(left, 8, func() {
		row := GP64() // where column 0 of the next row would be
		MOVQ(p, row)
		SUBQ(a, row)
		for first := 0; first < 8; first += m.rows {
			m.mulVecRows(first, row, left, a)
		}
		LEAQ(Mem{Base: row, Index: a, Scale: 1, Disp: 64}, p)
		ADDQ(U8(64), a)
		SUBQ(U8(8), left)
	})
	ret()
}

// mulVecRows processes one tile of a block's rows, starting at first, and moves row past them.
func (m machine) mulVecRows(first int, row, left, a GPVirtual) {
	g := arg("rows")
	acc, weight := make([][]VecVirtual, m.rows), make([]VecVirtual, m.rows)
	for s := range acc {
		acc[s] = m.zeros(m.parts())
		weight[s] = m.broadcast(indexed(g, a, first+s))
	}
	rows, length := make([]GPVirtual, m.rows), GP64()
	LEAQ(Mem{Base: left, Disp: -1 - first}, length)
	for s := range rows {
		rows[s] = GP64()
		if s == 0 {
			MOVQ(row, rows[0])
			continue
		}
		LEAQ(Mem{Base: rows[s-1], Index: length, Scale: 8}, rows[s])
		DECQ(length)
	}

	// On the diagonal, row s starts at lane s.
	j := GP64()
	MOVQ(a, j)
	x, y := arg("rows"), arg("dst")
	for h := range m.parts() {
		of := func(p Register) Mem { return m.part(indexed(p, j, 0), h) }
		product, sum := m.load(of(x)), m.load(of(y))
		for s, r := range rows {
			lane := first + s - h*m.lanes
			VFMADD231PD(m.fromLane(lane).load(of(r)), product, acc[s][h])
			VFMADD231PD(m.fromLane(lane+1).load(of(r)), weight[s], sum)
		}
		m.store(sum, of(y))
	}

	column := func(h int, load func(p Mem) VecVirtual, store func(v Register, p Mem)) {
		x, y := arg("rows"), arg("dst")
		of := func(p Register) Mem { return m.part(indexed(p, j, 0), h) }
		product, sum := load(of(x)), load(of(y))
		for s, p := range rows {
			r := load(of(p))
			VFMADD231PD(r, product, acc[s][h])
			VFMADD231PD(r, weight[s], sum)
		}
		store(sum, of(y))
	}
	n, full := GP64(), label("full")
	LEAQ(Mem{Base: left, Disp: -8}, n)
	ADDQ(U8(64), j)
	m.whileAtLeast(n, 8, func() {
		for h := range m.parts() {
			column(h, m.load, m.store)
		}
		ADDQ(U8(64), j)
		SUBQ(U8(8), n)
	})
	TESTQ(n, n)
	JZ(LabelRef(full))
	for h := range m.parts() {
		last := m.belowOf(h, n)
		column(h, last.load, last.store)
	}

	Label(full)
	y = arg("dst")
	for s := range acc {
		x := m.total(acc[s]).AsX()
		VADDSD(indexed(y, a, first+s), x, x)
		VMOVSD(x, indexed(y, a, first+s))
	}
	LEAQ(Mem{Base: rows[m.rows-1], Index: left, Scale: 8, Disp: -8 * (first + m.rows)}, row)
}

// symRankK keeps a tile of p in registers while it goes through the rows of g. The tile's height is the machine's
// number of rows, and it is up to three vectors wide.
func (m machine) symRankK() {
	m.text("symRankK", "(p, w, rows *float64, n, d int)",
		"is SymRankK for n ≥ 1 and the rows of p up to a multiple of eight.")
	pa, ga, left := arg("p"), arg("rows"), arg("d")
	// left is d − a for the rows a of the tiles, pa the start of row a in p, and ga the position of column a in g.
	while(func(done string) {
		CMPQ(left, rest())
		JE(LabelRef(done))
	}, func() {
		c, columns := GP64(), GP64()
		XORQ(c, c) // bytes from column a
		MOVQ(left, columns)
		top, next := label("columns"), label("next")
		Label(top)
		two, three := label("two"), label("three")
		CMPQ(columns, U32(uint32(2*m.lanes)))
		JGT(LabelRef(three))
		CMPQ(columns, U32(uint32(m.lanes)))
		JGT(LabelRef(two))
		m.rankTile(1, pa, ga, left, c, columns)
		JMP(LabelRef(next))
		Label(two)
		m.rankTile(2, pa, ga, left, c, columns)
		JMP(LabelRef(next))
		Label(three)
		m.rankTile(3, pa, ga, left, c, columns)
		ADDQ(U32(uint32(3*m.bytes())), c)
		SUBQ(U32(uint32(3*m.lanes)), columns)
		JG(LabelRef(top))
		Label(next)

		ADDQ(U32(uint32(8*m.rows)), ga)
		for range m.rows {
			LEAQ(Mem{Base: pa, Index: left, Scale: 8}, pa)
			DECQ(left)
		}
	})
	ret()
}

// rest returns d modulo eight.
func rest() GPVirtual {
	r := arg("d")
	ANDQ(U8(7), r)
	return r
}

// rankTile adds to the tile that starts c bytes after column a. It is count vectors wide, and the last holds the
// remaining columns.
func (m machine) rankTile(count int, pa, ga, left, c, columns GPVirtual) {
	lanes := GP64()
	MOVQ(columns, lanes)
	SUBQ(U32(uint32((count-1)*m.lanes)), lanes)
	clip := label("whole")
	CMPQ(lanes, U32(uint32(m.lanes)))
	JLE(LabelRef(clip))
	MOVQ(U32(uint32(m.lanes)), lanes)
	Label(clip)
	var last mask
	if m.wide() {
		last = m.below(lanes)
	}

	acc := make([][]VecVirtual, m.rows)
	for s := range acc {
		acc[s] = m.zeros(count)
	}
	gi, w, n, stride := GP64(), arg("w"), arg("n"), arg("d")
	MOVQ(ga, gi)
	SHLQ(U8(3), stride)
	repeat(n, func() {
		weight := m.broadcast(at(w, 0))
		row := make([]VecVirtual, count)
		for v := range row {
			p := indexed(gi, c, v*m.lanes)
			if v == count-1 {
				if !m.wide() { // no register to spare
					last = m.below(lanes)
				}
				row[v] = last.load(p)
				VMULPD(weight, row[v], row[v])
			} else {
				row[v] = m.mul2(weight, p)
			}
		}
		for s := range acc {
			b := m.broadcast(at(gi, s))
			for v := range row {
				VFMADD231PD(row[v], b, acc[s][v])
			}
		}
		ADDQ(U8(8), w)
		ADDQ(stride, gi)
	})

	if !m.wide() {
		last = m.below(lanes)
	}
	// If the tile is on the diagonal, its row s starts at lane s.
	p, length, skip, step := GP64(), GP64(), GP64(), GP64()
	LEAQ(Mem{Base: pa, Index: c, Scale: 1}, p)
	LEAQ(at(left, 0).Offset(-1), length)
	XORQ(skip, skip)
	XORQ(step, step)
	TESTQ(c, c)
	SETEQ(step.As8())
	for s := range acc {
		for v := range acc[s] {
			q := at(p, v*m.lanes)
			var which mask
			switch {
			case v == 0 && v == count-1:
				which = m.from(skip).and(last)
			case v == 0:
				which = m.from(skip)
			case v == count-1:
				which = last
			default:
				VADDPD(q, acc[s][v], acc[s][v])
				VMOVUPD(acc[s][v], q)
				continue
			}
			VADDPD(which.load(q), acc[s][v], acc[s][v])
			which.store(acc[s][v], q)
		}
		ADDQ(step, skip)
		LEAQ(Mem{Base: p, Index: length, Scale: 8}, p)
		DECQ(length)
	}
}
