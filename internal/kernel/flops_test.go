package kernel_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"vitrine/internal/kernel"
)

// BenchmarkFlops measures the learners' arithmetic at realistic sizes: the hidden layers of a network for a block of
// items, the norms of an offer, and the updates of a round. It reports the floating-point operations of the definition,
// counting a multiplication and an addition separately, and the bytes read or written once. bench/peak.sh compares them
// with the peak rates of the core.
func BenchmarkFlops(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, d := range []int{16, 76, 121, 256} {
		const n = 192
		packed := kernel.PackedLen(d)
		p, g, v := normals(rng, packed), normals(rng, n*d), normals(rng, d)
		a, dst, sum, x := normals(rng, n), make([]float64, n), make([]float64, d), normals(rng, d*n)
		form, forms := normals(rng, 4*5*(d+1)), make([]float64, 4*n)
		for _, k := range []struct {
			name         string
			flops, words int
			call         func()
		}{
			{"Combine", 2 * n * d, n*d + n, func() { kernel.Combine(dst, 0, v, 1, x, d) }},
			{"Bilinear", 4 * 5 * n * (2*d + 2), n*d + 9*n, func() {
				kernel.Bilinear(forms, n, x[:5*n], 5, x, d, form, 5*d, 5*(d+1))
			}},
			{"Gemv", 2 * n * d, n*d + 2*n, func() { kernel.Gemv(dst, a, g, v, n, d) }},
			{"GemvTrans", 2 * n * d, n*d + n, func() { kernel.GemvTrans(sum, g, a, n, d) }},
			{"SymQuadForms", n * (d*d + 3*d), packed + n*d, func() { kernel.SymQuadForms(dst, p, g, n, d) }},
			{"SymRankK", n * (d*d + 2*d), 2*packed + n*d, func() { kernel.SymRankK(p, a, g, n, d) }},
			{"SymMulVec", 2 * d * d, packed + 2*d, func() { kernel.SymMulVec(sum, p, v) }},
			{"SymRankOne", d*d + 2*d, 2*packed + d, func() { kernel.SymRankOne(p, 1e-9, v) }},
		} {
			b.Run(fmt.Sprintf("%s,d=%d", k.name, d), func(b *testing.B) {
				minimum := math.Inf(1)
				for b.Loop() {
					const times = 16
					start := time.Now()
					for range times {
						k.call()
					}
					minimum = min(minimum, time.Since(start).Seconds()/times)
				}
				b.ReportMetric(float64(k.flops)/minimum/1e9, "Gflop/s")
				b.ReportMetric(8*float64(k.words)/minimum/1e9, "GB/s")
			})
		}
	}
}
