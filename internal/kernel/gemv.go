package kernel

// Gemv stores in dst, of length n, the affine map of w by the n×d row-major matrix g:
//
//	dst_i = a_i + Σ_j g_ij w_j
//
// It panics if a slice is shorter than its shape.
func Gemv(dst, a, g, w []float64, n, d int) {
	dst, a, g, w = dst[:n], a[:n], g[:n*d], w[:d]
	if active != generic && d > 0 {
		gemvVector(dst, a, g, w, n, d)
		return
	}
	for i := range dst {
		dst[i] = a[i] + rowLanes(g[i*d:i*d+d], w)
	}
}

// GemvTrans adds Gᵀc to dst, of length d, for the n×d row-major matrix g:
//
//	dst_j += Σ_i c_i g_ij
//
// It panics if a slice is shorter than its shape.
func GemvTrans(dst, g, c []float64, n, d int) {
	dst, g, c = dst[:d], g[:n*d], c[:n]
	if active != generic {
		gemvTransVector(dst, g, c, n, d)
		return
	}
	i := 0
	for ; i+4 <= n; i += 4 {
		g0 := g[i*d : i*d+d][:len(dst)]
		g1 := g[(i+1)*d : (i+1)*d+d][:len(dst)]
		g2 := g[(i+2)*d : (i+2)*d+d][:len(dst)]
		g3 := g[(i+3)*d : (i+3)*d+d][:len(dst)]
		c0, c1, c2, c3 := c[i], c[i+1], c[i+2], c[i+3]
		for j := range dst {
			dst[j] += (float64(c0*g0[j]) + float64(c1*g1[j])) + (float64(c2*g2[j]) + float64(c3*g3[j]))
		}
	}
	for ; i < n; i++ {
		gi := g[i*d : i*d+d][:len(dst)]
		ci := c[i]
		for j := range dst {
			dst[j] += float64(ci * gi[j])
		}
	}
}
