package kernel

import "math"

// Sums along a row use eight lanes on every path. Starting from 0, lane l adds the products of the entries l, l + 8,
// l + 16, … by fused multiply-add, rounding once per term. Lanes beyond the end of a row add a product of zeros, which
// turns −0 into 0. The lanes are totalled in a fixed order. This file holds the Go versions.

// lanes holds eight sums.
type lanes [8]float64

// total returns the sum of the lanes.
func (s *lanes) total() float64 {
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

// add adds the products of the first eight entries of a and b, then moves on by stride, while a holds eight more. b
// must be at least as long as a.
func (s *lanes) add(a, b []float64, stride int) {
	s0, s1, s2, s3, s4, s5, s6, s7 := s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
	for i := 0; i+8 <= len(a); i += stride {
		a, b := a[i:][:8], b[i:][:8]
		s0 = math.FMA(a[0], b[0], s0)
		s1 = math.FMA(a[1], b[1], s1)
		s2 = math.FMA(a[2], b[2], s2)
		s3 = math.FMA(a[3], b[3], s3)
		s4 = math.FMA(a[4], b[4], s4)
		s5 = math.FMA(a[5], b[5], s5)
		s6 = math.FMA(a[6], b[6], s6)
		s7 = math.FMA(a[7], b[7], s7)
	}
	s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7] = s0, s1, s2, s3, s4, s5, s6, s7
}

// addLast adds the products of fewer than eight entries.
func (s *lanes) addLast(a, b []float64) {
	for l := range s {
		if l < len(a) {
			s[l] = math.FMA(a[l], b[l], s[l])
		} else {
			s[l] += 0
		}
	}
}

// dotLanes is Dot for at least worth entries. It uses four times eight lanes for each 32 entries, the first eight for
// the rest, and the next eight for the last incomplete group.
func dotLanes(a, b []float64) float64 {
	var s [4]lanes
	n := len(a) &^ 31
	if n > 0 {
		for v := range s {
			s[v].add(a[8*v:n], b[8*v:n], 32)
		}
	}
	a, b = a[n:], b[n:]
	s[0].add(a, b, 8)
	n = len(a) &^ 7
	s[1].addLast(a[n:], b[n:])
	return fold(&s)
}

// sumLanes is Sum for at least worth entries, in the order of dotLanes.
func sumLanes(a []float64) float64 {
	var s [4]lanes
	for ; len(a) >= 32; a = a[32:] {
		for v := range s {
			for l, x := range a[8*v:][:8] {
				s[v][l] += x
			}
		}
	}
	for ; len(a) >= 8; a = a[8:] {
		for l, x := range a[:8] {
			s[0][l] += x
		}
	}
	for l := range s[1] {
		x := 0.0
		if l < len(a) {
			x = a[l]
		}
		s[1][l] += x
	}
	return fold(&s)
}

// fold returns the sum of four times eight lanes.
func fold(s *[4]lanes) float64 {
	for l := range s[0] {
		s[0][l] = (s[0][l] + s[1][l]) + (s[2][l] + s[3][l])
	}
	return s[0].total()
}

// rowLanes returns Σ_j g_j w_j, summed as in Gemv.
func rowLanes(g, w []float64) float64 {
	var s lanes
	s.add(g, w, 8)
	n := len(g) &^ 7
	s.addLast(g[n:], w[n:])
	return s.total()
}

// symMulVecLanes adds to dst the contribution to P g of the first rows of p, a multiple of eight, in blocks of eight.
// Row i of a block adds g_i P_ij to dst_j for each j > i, and Σ_{j≥i} P_ij g_j to dst_i once the block is done. The
// lanes start at the first row of the block.
func symMulVecLanes(dst, p, g []float64, first int) {
	d := len(g)
	for a := 0; a < first; a += 8 {
		var sums [8]float64
		for s := range sums {
			var acc lanes
			row, weight := p[:d-a-s], g[a+s]
			p = p[d-a-s:]
			x, y := g[a:][:8], dst[a:][:8]
			for l := range acc { // on the diagonal
				var r, right float64
				if l >= s {
					r = row[l-s]
				}
				if l > s {
					right = r
				}
				acc[l] = math.FMA(r, x[l], 0)
				y[l] = math.FMA(right, weight, y[l])
			}
			row = row[8-s:]
			acc.add(row, g[a+8:], 8)
			addMultiple(dst[a+8:], row, weight)
			if n := len(row) &^ 7; n < len(row) {
				acc.addLast(row[n:], g[a+8+n:])
			}
			sums[s] = acc.total()
		}
		for s, sum := range sums {
			dst[a+s] += sum
		}
	}
}

// addMultiple adds c x to dst by fused multiply-add.
func addMultiple(dst, x []float64, c float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = math.FMA(v, c, dst[i])
	}
}

// symRankKLanes is symRankK for the first rows of p. Each entry is a single sum of (w_i g_ic) g_ir by fused
// multiply-add, added to p at the end.
func symRankKLanes(p, w, g []float64, n, d, first int) {
	var block [64]float64
	for r := range first {
		row := p[:d-r]
		p = p[d-r:]
		for c := r; c < d; c += len(block) {
			sums := block[:min(len(block), d-c)]
			clear(sums)
			for i, wi := range w[:n] {
				gi := g[i*d : i*d+d]
				v := gi[r]
				for j, x := range gi[c:][:len(sums)] {
					sums[j] = math.FMA(float64(wi*x), v, sums[j])
				}
			}
			for j, sum := range sums {
				row[c-r+j] += sum
			}
		}
	}
}

// symQuadForm returns gᵀPg from U, the strict upper triangle of P plus half its diagonal:
//
//	gᵀPg = 2 Σ_c g_c Σ_{r≤c} U_rc g_r
//
// The columns c are processed in groups of eight, starting with the ones that do not fill eight lanes. An inner sum
// runs in the order of r through the whole square on the diagonal, multiplying the entries left of the diagonal by 0.
func symQuadForm(p, g []float64) float64 {
	var sum lanes
	d := len(g)
	c := d & 7
	if c > 0 {
		var first lanes
		copy(first[:], g[:c])
		formLanes(&sum, &first, p, g, 0, c)
	}
	for ; c < d; c += 8 {
		formLanes(&sum, (*lanes)(g[c:]), p, g, c, 8)
	}
	x := sum.total()
	return x + x
}

// halves holds the multipliers of a row on the diagonal. For lane t on the diagonal, they start t entries before the
// half.
var halves = [16]float64{8: 0.5, 9: 1, 10: 1, 11: 1, 12: 1, 13: 1, 14: 1, 15: 1}

// formLanes adds to the sum, in lane l < width, the products of column[l] = g_{c+l} and the inner sum of column c+l.
func formLanes(sum, column *lanes, p, g []float64, c, width int) {
	var s0, s1, s2, s3, s4, s5, s6, s7 float64
	d, k := len(g), c // p[k+l] is P_r,c+l
	for r, v := range g[:c] {
		u := p[k:][:8]
		s0 = math.FMA(u[0], v, s0)
		s1 = math.FMA(u[1], v, s1)
		s2 = math.FMA(u[2], v, s2)
		s3 = math.FMA(u[3], v, s3)
		s4 = math.FMA(u[4], v, s4)
		s5 = math.FMA(u[5], v, s5)
		s6 = math.FMA(u[6], v, s6)
		s7 = math.FMA(u[7], v, s7)
		k += d - 1 - r
	}
	inner := lanes{s0, s1, s2, s3, s4, s5, s6, s7}
	for t, v := range g[c:][:width] {
		u := p[k:][:width]
		for l := range inner {
			x := 0.0
			if l < width {
				x = float64(u[l] * halves[8-t+l])
			}
			inner[l] = math.FMA(x, v, inner[l])
		}
		k += d - 1 - c - t
	}
	for l, v := range column {
		sum[l] = math.FMA(v, inner[l], sum[l])
	}
}
