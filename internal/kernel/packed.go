package kernel

// A packed symmetric d×d matrix p stores its upper triangle row after row: row i holds the entries (i, i), (i, i+1), …,
// (i, d-1).

// PackedLen returns the length d(d+1)/2 of a packed symmetric d×d matrix.
func PackedLen(d int) int { return d * (d + 1) / 2 }

// trailing returns the packed matrix of the rows and columns of p from first on.
func trailing(p []float64, d, first int) []float64 { return p[PackedLen(d)-PackedLen(d-first):] }

// SymMulVec stores P g in dst for the packed symmetric matrix p. dst and g are of length d and must not overlap.
func SymMulVec(dst, p, g []float64) {
	d := len(g)
	dst, p = dst[:d], p[:PackedLen(d)]
	clear(dst)
	first := d &^ 7
	if active == generic {
		symMulVecLanes(dst, p, g, first)
	} else {
		symMulVecVector(dst, p, g)
	}
	dst, p, g = dst[first:], trailing(p, d, first), g[first:]
	for i := range g {
		row := p[:len(g)-i]
		p = p[len(g)-i:]
		gi := g[i]
		gs := g[i:][:len(row)]
		ds := dst[i:][:len(row)]
		s := float64(row[0] * gi)
		for j := 1; j < len(row); j++ {
			s += float64(row[j] * gs[j])
			ds[j] += float64(row[j] * gi)
		}
		ds[0] += s
	}
}

// SymRankOne adds c v vᵀ to the packed symmetric matrix p.
func SymRankOne(p []float64, c float64, v []float64) {
	d := len(v)
	p = p[:PackedLen(d)]
	first := symRankOneVector(p, c, v)
	p, v = trailing(p, d, first), v[first:]
	for i := range v {
		row := p[:len(v)-i]
		p = p[len(v)-i:]
		vs := v[i:][:len(row)]
		cv := c * v[i]
		for j := range row {
			row[j] += float64(cv * vs[j])
		}
	}
}

// SymRankK adds GᵀWG to the packed symmetric matrix p, for the n×d row-major matrix g and the diagonal W of the n
// entries of w:
//
//	P += Σ_i w_i g_i g_iᵀ
func SymRankK(p, w, g []float64, n, d int) {
	// Every tile of p reads a whole block of rows, so the block should stay in the cache.
	const block = 192
	p, w, g = p[:PackedLen(d)], w[:n], g[:n*d]
	for ; n > block; n -= block {
		symRankK(p, w[:block], g[:block*d], block, d)
		w, g = w[block:], g[block*d:]
	}
	symRankK(p, w, g, n, d)
}

// symRankK is SymRankK for a block of rows.
func symRankK(p, w, g []float64, n, d int) {
	if n == 0 {
		return
	}
	first := d &^ 7
	if active == generic {
		symRankKLanes(p, w, g, n, d, first)
	} else {
		symRankKVector(p, w, g, n, d)
	}
	p = trailing(p, d, first)
	m := d - first
	i := 0
	for ; i+4 <= n; i += 4 {
		g0, g1 := g[i*d+first:][:m], g[(i+1)*d+first:][:m]
		g2, g3 := g[(i+2)*d+first:][:m], g[(i+3)*d+first:][:m]
		q := p
		for r := range m {
			row := q[:m-r]
			q = q[m-r:]
			a0, a1, a2, a3 := w[i]*g0[r], w[i+1]*g1[r], w[i+2]*g2[r], w[i+3]*g3[r]
			b0, b1, b2, b3 := g0[r:][:len(row)], g1[r:][:len(row)], g2[r:][:len(row)], g3[r:][:len(row)]
			for j := range row {
				row[j] += (float64(a0*b0[j]) + float64(a1*b1[j])) + (float64(a2*b2[j]) + float64(a3*b3[j]))
			}
		}
	}
	for ; i < n; i++ {
		SymRankOne(p, w[i], g[i*d+first:][:m])
	}
}

// SymQuadForms stores g_iᵀ P g_i in dst[i] for the n rows g_i of the n×d
// row-major matrix g and the packed symmetric matrix p.
func SymQuadForms(dst, p, g []float64, n, d int) {
	dst, p, g = dst[:n], p[:PackedLen(d)], g[:n*d]
	if active != generic && d > 0 {
		symQuadFormsVector(dst, p, g, n, d)
		return
	}
	for i := range dst {
		dst[i] = symQuadForm(p, g[i*d:i*d+d])
	}
}
