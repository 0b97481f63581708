package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// dot sums products in four times eight lanes, then the rest.
func (m machine) dot() {
	m.text("dot", "(a, b *float64, n int) float64", "returns Σ a_i b_i.")
	a, b, n := arg("a"), arg("b"), arg("n")
	m.accumulate(n, a, b)
}

// sum sums numbers in four times eight lanes, then the rest.
func (m machine) sum() {
	m.text("sum", "(a *float64, n int) float64", "returns Σ a_i.")
	a, n := arg("a"), arg("n")
	m.accumulate(n, a, nil)
}

// accumulate writes the rest of dot, or of sum if b is nil.
func (m machine) accumulate(n, a GPVirtual, b Register) {
	acc := make([][]VecVirtual, 4)
	for v := range acc {
		acc[v] = m.zeros(m.parts())
	}
	step := func(acc, x VecVirtual, y Op) {
		if b == nil {
			VADDPD(x, acc, acc)
		} else {
			VFMADD231PD(y, x, acc)
		}
	}
	eight := func(acc []VecVirtual, index int) {
		for h := range acc {
			var y Op
			if b != nil {
				y = m.part(at(b, index), h)
			}
			step(acc[h], m.load(m.part(at(a, index), h)), y)
		}
	}
	advance := func(count int) {
		ADDQ(U32(uint32(8*count)), a)
		if b != nil {
			ADDQ(U32(uint32(8*count)), b)
		}
		SUBQ(U32(uint32(count)), n)
	}
	m.whileAtLeast(n, 32, func() {
		for v := range acc {
			eight(acc[v], 8*v)
		}
		advance(32)
	})
	m.whileAtLeast(n, 8, func() {
		eight(acc[0], 0)
		advance(8)
	})
	for h := range m.parts() {
		last := m.belowOf(h, n)
		var y Op
		if b != nil {
			y = last.load(m.part(at(b, 0), h))
		}
		step(acc[1][h], last.load(m.part(at(a, 0), h)), y)
	}
	for h := range m.parts() {
		VADDPD(acc[1][h], acc[0][h], acc[0][h])
		VADDPD(acc[3][h], acc[2][h], acc[2][h])
		VADDPD(acc[2][h], acc[0][h], acc[0][h])
	}
	Store(m.total(acc[0]), ReturnIndex(0))
	ret()
}

// whileAtLeast repeats body while n ≥ minimum.
func (m machine) whileAtLeast(n Register, minimum int, body func()) {
	while(func(done string) {
		CMPQ(n, U32(uint32(minimum)))
		JLT(LabelRef(done))
	}, body)
}

// along runs body with dst and x at each whole vector of their first n numbers.
func (m machine) along(n, dst, x Register, body func()) {
	m.whileAtLeast(n, m.lanes, func() {
		body()
		m.advance(1, n, dst, x)
	})
}

// advance moves pointers on by some vectors, whose lanes leave n.
func (m machine) advance(vectors int, n Register, pointers ...Register) {
	for _, p := range pointers {
		ADDQ(U32(uint32(vectors*m.bytes())), p)
	}
	SUBQ(U32(uint32(vectors*m.lanes)), n)
}

// axpy covers the n entries up to a multiple of the lanes.
func (m machine) axpy() {
	m.text("axpy", "(dst *float64, alpha float64, x *float64, n int)",
		"adds alpha x to dst. n is a multiple of the lanes.")
	dst, x, n := arg("dst"), arg("x"), arg("n")
	alpha := m.broadcast(memory("alpha"))
	m.along(n, dst, x, func() {
		v := m.mul2(alpha, at(x, 0))
		VADDPD(at(dst, 0), v, v)
		VMOVUPD(v, at(dst, 0))
	})
	ret()
}

// mul covers the n entries up to a multiple of the lanes.
func (m machine) mul() {
	m.text("mul", "(dst, x *float64, n int)", "multiplies dst by x. n is a multiple of the lanes.")
	dst, x, n := arg("dst"), arg("x"), arg("n")
	m.along(n, dst, x, func() {
		v := m.load(at(dst, 0))
		VMULPD(at(x, 0), v, v)
		VMOVUPD(v, at(dst, 0))
	})
	ret()
}

// mulComplement covers the n entries up to a multiple of the lanes.
func (m machine) mulComplement() {
	m.text("mulComplement", "(dst, y *float64, n int)", "stores y (1 - y). n is a multiple of the lanes.")
	dst, y, n := arg("dst"), arg("y"), arg("n")
	one := m.load(m.ones())
	m.along(n, dst, y, func() {
		v := m.load(at(y, 0))
		m.store(m.mul2(m.sub(one, v), v), at(dst, 0))
	})
	ret()
}

// addSquares keeps a strip of dst in registers.
func (m machine) addSquares() {
	m.text("addSquares", "(dst, x *float64, d, n int)", "is AddSquares for d ≥ 1 rows of n.")
	dst, x, stride, columns := arg("dst"), arg("x"), arg("n"), arg("n")
	SHLQ(U8(3), stride)
	m.strips(columns, m.widest(), func(count int, load func(p Mem) VecVirtual, store func(v Register, p Mem)) {
		acc := make([]VecVirtual, count)
		for v := range acc {
			acc[v] = load(at(dst, v*m.lanes))
		}
		row, k := GP64(), arg("d")
		MOVQ(x, row)
		repeat(k, func() {
			for v := range acc {
				entry := load(at(row, v*m.lanes))
				VADDPD(m.mul2(entry, entry), acc[v], acc[v])
			}
			ADDQ(stride, row)
		})
		for v, r := range acc {
			store(r, at(dst, v*m.lanes))
		}
		m.advance(count, columns, dst, x)
	})
	ret()
}

// combine keeps a strip of four vectors of dst in registers, then of one, and processes the rows of x four at a time.
func (m machine) combine() {
	m.text("combine", "(dst *float64, c float64, w *float64, stride int, x *float64, d, n int)",
		"is Combine for rows of n.")
	dst, w, stride, x, n, columns := arg("dst"), arg("w"), arg("stride"), arg("x"), arg("n"), arg("n")
	SHLQ(U8(3), stride)
	SHLQ(U8(3), n)
	constant := memory("c")
	strip := func(count int, load func(p Mem) VecVirtual, store func(v Register, p Mem)) {
		acc := m.vecs(count)
		for _, v := range acc {
			VBROADCASTSD(constant, v)
		}
		wk, xk, k := GP64(), GP64(), GP64()
		MOVQ(w, wk)
		MOVQ(x, xk)
		Load(Param("d"), k)
		products := func(rows int) [][]VecVirtual {
			x := make([][]VecVirtual, rows)
			for r := range rows {
				weight := m.broadcast(at(wk, 0))
				for v := range count {
					x[r] = append(x[r], m.mul2(weight, load(at(xk, v*m.lanes))))
				}
				ADDQ(stride, wk)
				ADDQ(n, xk)
			}
			return x
		}
		one, two, three, fours, done := label("one"), label("two"), label("three"), label("fours"), label("done")
		rest := GP64()
		MOVQ(k, rest)
		ANDQ(U8(3), rest)
		SHRQ(U8(2), k)
		CMPQ(rest, U8(1))
		JLT(LabelRef(fours))
		JEQ(LabelRef(one))
		CMPQ(rest, U8(2))
		JEQ(LabelRef(two))
		JMP(LabelRef(three))

		Label(one)
		p := products(1)
		for v := range acc {
			VADDPD(p[0][v], acc[v], acc[v])
		}
		JMP(LabelRef(fours))

		Label(two)
		p = products(2)
		for v := range acc {
			VADDPD(p[0][v], acc[v], acc[v])
			VADDPD(p[1][v], acc[v], acc[v])
		}
		JMP(LabelRef(fours))

		Label(three)
		p = products(3)
		for v := range acc {
			VADDPD(p[0][v], acc[v], acc[v])
			VADDPD(p[2][v], p[1][v], p[1][v])
			VADDPD(p[1][v], acc[v], acc[v])
		}

		Label(fours)
		TESTQ(k, k)
		JZ(LabelRef(done))
		repeat(k, func() {
			p := products(2)
			for v := range acc {
				VADDPD(p[1][v], p[0][v], p[0][v])
			}
			q := products(2)
			for v := range acc {
				VADDPD(q[1][v], q[0][v], q[0][v])
				VADDPD(q[0][v], p[0][v], p[0][v])
				VADDPD(p[0][v], acc[v], acc[v])
			}
		})
		Label(done)
		for v, r := range acc {
			store(r, at(dst, v*m.lanes))
		}
		m.advance(count, columns, dst, x)
	}
	m.strips(columns, m.widest(), strip)
	ret()
}

// widest returns the maximum number of vectors in a strip, which shares the registers with the products of four rows.
func (m machine) widest() int {
	if m.wide() {
		return 4
	}
	return 3
}

// strips writes a loop over columns: in strips of wide vectors, then of one vector, then the rest.
func (m machine) strips(
	columns GPVirtual, wide int, strip func(count int, load func(p Mem) VecVirtual, store func(v Register, p Mem)),
) {
	m.whileAtLeast(columns, wide*m.lanes, func() { strip(wide, m.load, m.store) })
	m.whileAtLeast(columns, m.lanes, func() { strip(1, m.load, m.store) })
	none := label("none")
	TESTQ(columns, columns)
	JZ(LabelRef(none))
	last := m.below(columns)
	strip(1, last.load, last.store)
	Label(none)
}

// bilinear keeps the sums of a strip of two vectors and of several forms in registers.
func (m machine) bilinear() {
	m.text("bilinear",
		"(dst *float64, n int, y *float64, h int, x *float64, d int, w *float64, bias, stride, count int)",
		"is Bilinear for the first forms, at most count ≥ 1 of them, where h and d\n"+
			"are at least 1 and c begins bias entries after w.")
	dst, y, x, columns, row := arg("dst"), arg("y"), arg("x"), arg("n"), arg("n")
	SHLQ(U8(3), row)
	forms := 4
	if !m.wide() {
		forms = 2
	}
	m.strips(columns, 2, func(vectors int, load func(p Mem) VecVirtual, store func(v Register, p Mem)) {
		stride := arg("stride")
		SHLQ(U8(3), stride)
		w := rowPointers(forms, arg("w"), stride, arg("count"))
		bias := arg("bias") // from the weights of a row of W_k to its c_k
		SHLQ(U8(3), bias)
		sums := make([][]VecVirtual, forms)
		for k := range sums {
			sums[k] = m.zeros(vectors)
		}
		yj, j := GP64(), arg("h")
		MOVQ(y, yj)
		repeat(j, func() {
			inner := make([][]VecVirtual, forms)
			for k := range inner {
				inner[k] = m.vecs(vectors)
				for v := range inner[k] {
					VBROADCASTSD(Mem{Base: w[k], Index: bias, Scale: 1}, inner[k][v])
				}
			}
			xl, l := GP64(), arg("d")
			MOVQ(x, xl)
			repeat(l, func() {
				var entries []VecVirtual
				for v := range vectors {
					entries = append(entries, load(at(xl, v*m.lanes)))
				}
				for k := range forms {
					weight := m.broadcast(at(w[k], 0))
					for v := range vectors {
						VFMADD231PD(entries[v], weight, inner[k][v])
					}
					ADDQ(U8(8), w[k])
				}
				ADDQ(row, xl)
			})
			for v := range vectors {
				entry := load(at(yj, v*m.lanes))
				for k := range forms {
					VFMADD231PD(entry, inner[k][v], sums[k][v])
				}
			}
			ADDQ(row, yj)
			width := arg("d")
			SHLQ(U8(3), width)
			SUBQ(width, bias)
			ADDQ(U8(8), bias)
		})
		// Forms beyond the last repeat the last: all read before any writes.
		to := rowPointers(forms, dst, row, arg("count"))
		for k := range forms {
			for v, sum := range sums[k] {
				VADDPD(load(at(to[k], v*m.lanes)), sum, sum)
			}
		}
		for k := range forms {
			for v, sum := range sums[k] {
				store(sum, at(to[k], v*m.lanes))
			}
		}
		m.advance(vectors, columns, dst, x, y)
	})
	ret()
}

// rowPointers returns pointers to the first n rows of a row-major matrix with count rows, count being a register.
// Pointers beyond the last row repeat it.
func rowPointers(n int, first, stride, count Register) []GPVirtual {
	rows := make([]GPVirtual, n)
	for s := range rows {
		rows[s] = GP64()
		if s == 0 {
			MOVQ(first, rows[s])
			continue
		}
		LEAQ(Mem{Base: rows[s-1], Index: stride, Scale: 1}, rows[s])
		CMPQ(count, U32(uint32(s)))
		CMOVQLE(rows[s-1], rows[s])
	}
	return rows
}

// gemv multiplies a group of rows.
func (m machine) gemv() {
	m.text("gemv", "(q, rows, w *float64, n, d int)",
		"stores the products of the first rows of g with w, at most n ≥ 1 of\n"+
			"them, in q, which has room for the rows of a tile.")
	g, n, stride := arg("rows"), arg("n"), arg("d")
	SHLQ(U8(3), stride)
	rows := rowPointers(m.rows, g, stride, n)
	w, d := arg("w"), arg("d")
	acc := make([][]VecVirtual, m.rows)
	for s := range acc {
		acc[s] = m.zeros(m.parts())
	}
	j := GP64()
	XORQ(j, j)
	m.whileAtLeast(d, 8, func() {
		for h := range m.parts() {
			v := m.load(m.part(indexed(w, j, 0), h))
			for s, r := range rows {
				VFMADD231PD(m.part(indexed(r, j, 0), h), v, acc[s][h])
			}
		}
		ADDQ(U8(64), j)
		SUBQ(U8(8), d)
	})
	for h := range m.parts() {
		last := m.belowOf(h, d)
		v := last.load(m.part(indexed(w, j, 0), h))
		for s, r := range rows {
			VFMADD231PD(last.load(m.part(indexed(r, j, 0), h)), v, acc[s][h])
		}
	}
	q := arg("q")
	for s := range rows {
		VMOVSD(m.total(acc[s]).AsX(), at(q, s))
	}
	ret()
}

// gemvTrans keeps a strip of dst in registers and processes the rows four at a time, then one at a time.
func (m machine) gemvTrans() {
	m.text("gemvTrans", "(dst, rows, c *float64, n, d int)", "is GemvTrans.")
	dst, g, stride, columns := arg("dst"), arg("rows"), arg("d"), arg("d")
	SHLQ(U8(3), stride)

	strip := func(count int, load func(p Mem) VecVirtual, store func(v Register, p Mem)) {
		acc := make([]VecVirtual, count)
		for v := range acc {
			acc[v] = load(at(dst, v*m.lanes))
		}
		gi, c, n, fours := GP64(), GP64(), GP64(), GP64()
		MOVQ(g, gi)
		Load(Param("c"), c)
		Load(Param("n"), n)
		MOVQ(n, fours)
		SHRQ(U8(2), fours)
		ANDQ(U8(3), n)
		product := func() []VecVirtual {
			p := make([]VecVirtual, count)
			ci := m.broadcast(at(c, 0))
			for v := range p {
				p[v] = m.mul2(ci, load(at(gi, v*m.lanes)))
			}
			ADDQ(U8(8), c)
			ADDQ(stride, gi)
			return p
		}
		ones, done := label("ones"), label("done")
		TESTQ(fours, fours)
		JZ(LabelRef(ones))
		repeat(fours, func() {
			p0, p1 := product(), product()
			for v := range acc {
				VADDPD(p1[v], p0[v], p0[v])
			}
			p2, p3 := product(), product()
			for v := range acc {
				VADDPD(p3[v], p2[v], p2[v])
				VADDPD(p2[v], p0[v], p0[v])
				VADDPD(p0[v], acc[v], acc[v])
			}
		})
		Label(ones)
		TESTQ(n, n)
		JZ(LabelRef(done))
		repeat(n, func() {
			p := product()
			for v := range acc {
				VADDPD(p[v], acc[v], acc[v])
			}
		})
		Label(done)
		for v, r := range acc {
			store(r, at(dst, v*m.lanes))
		}
		m.advance(count, columns, dst, g)
	}
	m.strips(columns, m.widest(), strip)
	ret()
}
