package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// symRankOne adds row after row. The last vector of a row overlaps the one
// before: it is computed first and stored last. So no vector is loaded that
// shares its place with one just stored, which would wait for the memory.
func (m machine) symRankOne() {
	m.text("symRankOne", "(p *float64, c float64, v *float64, d int)",
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
			ADDQ(U32(uint32(m.bytes())), q)
			ADDQ(U32(uint32(m.bytes())), x)
			SUBQ(U32(uint32(m.lanes)), n)
		})
		VMOVUPD(last, Mem{Base: end})
		LEAQ(Mem{Base: end, Disp: m.bytes()}, p)
		ADDQ(U8(8), v)
		DECQ(d)
	})
	ret()
}

// symMulVec goes through the rows in blocks of as many as a tile has, and reads
// a block once, by vectors of columns: for the products of its rows with g and
// for their multiples in dst.
func (m machine) symMulVec() {
	m.text("symMulVec", "(dst, p, rows *float64, d int)",
		"adds P g to dst, without the rows of p beyond a multiple of the\nlanes.")
	p, left, a := arg("p"), arg("d"), GP64() // the first row of the block, in bytes
	XORQ(a, a)
	m.whileAtLeast(left, m.rows, func() {
		g := arg("rows")
		acc, weight := m.zeros(m.rows), make([]VecVirtual, m.rows)
		for s := range weight {
			weight[s] = m.broadcast(indexed(g, a, s))
		}
		// The rows' pointers are to where their column 0 would be.
		rows, length := make([]GPVirtual, m.rows), GP64()
		LEAQ(Mem{Base: left, Disp: -1}, length)
		for s := range rows {
			rows[s] = GP64()
			if s == 0 {
				MOVQ(p, rows[0])
				SUBQ(a, rows[0])
				continue
			}
			LEAQ(Mem{Base: rows[s-1], Index: length, Scale: 8}, rows[s])
			DECQ(length)
		}

		// Vectors on the diagonal begin with lane s in row s.
		j := GP64()
		MOVQ(a, j)
		x, y := arg("rows"), arg("dst")
		product, sum := m.load(indexed(x, j, 0)), m.load(indexed(y, j, 0))
		for s := range rows {
			VFMADD231PD(m.fromLane(s).load(indexed(rows[s], j, 0)), product, acc[s])
			VFMADD231PD(m.fromLane(s+1).load(indexed(rows[s], j, 0)), weight[s], sum)
		}
		VMOVUPD(sum, indexed(y, j, 0))

		column := func(load func(p Mem) VecVirtual, store func(v Register, p Mem)) {
			x, y := arg("rows"), arg("dst")
			product, sum := load(indexed(x, j, 0)), load(indexed(y, j, 0))
			for s := range rows {
				r := load(indexed(rows[s], j, 0))
				VFMADD231PD(r, product, acc[s])
				VFMADD231PD(r, weight[s], sum)
			}
			store(sum, indexed(y, j, 0))
		}
		n, full := GP64(), label("full")
		LEAQ(Mem{Base: left, Disp: -m.lanes}, n)
		ADDQ(U32(uint32(m.bytes())), j)
		m.whileAtLeast(n, m.lanes, func() {
			column(m.load, m.store)
			ADDQ(U32(uint32(m.bytes())), j)
			SUBQ(U32(uint32(m.lanes)), n)
		})
		TESTQ(n, n)
		JZ(LabelRef(full))
		last := m.below(n)
		column(last.load, last.store)

		Label(full)
		y = arg("dst")
		for s := range acc {
			x := m.total(acc[s]).AsX()
			VADDSD(indexed(y, a, s), x, x)
			VMOVSD(x, indexed(y, a, s))
		}
		LEAQ(Mem{Base: rows[m.rows-1], Index: left, Scale: 8}, p)
		ADDQ(a, p)
		ADDQ(U32(uint32(8*m.rows)), a)
		SUBQ(U32(uint32(m.rows)), left)
	})
	ret()
}

// symRankK keeps a tile of p in registers, of as many rows as the machine has
// and up to three vectors, while it goes through the rows of g.
func (m machine) symRankK() {
	m.text("symRankK", "(p, w, rows *float64, n, d int)",
		"is SymRankK for n ≥ 1 and the rows of p up to a multiple of those of\na tile.")
	pa, ga, left := arg("p"), arg("rows"), arg("d")
	// left is d − a for the rows a of the tiles, pa where row a begins in p,
	// ga the place of column a in g.
	m.whileAtLeast(left, m.rows, func() {
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

// rankTile adds to the tile that begins c bytes after column a, of count
// vectors of which the last holds what is left of the columns.
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
				if !m.wide() { // no register to keep it in
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
	// Row s of the tile begins at lane s where the tile is on the diagonal.
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
