// Command asm writes the vector code of package kernel with avo: each kernel once, for AVX-512 and for AVX2 with FMA.
// It is a separate module, so that the project does not depend on avo. Run it by go generate in the parent package.
package main

import . "github.com/mmcloughlin/avo/build"

func main() {
	for _, m := range []machine{avx512, avx2} {
		m.elementwise()
		m.sincos()
		m.dot()
		m.sum()
		m.axpy()
		m.mul()
		m.mulComplement()
		m.addSquares()
		m.combine()
		m.bilinear()
		m.mulPairs()
		m.columns()
		m.gemv()
		m.gemvTrans()
		m.symMulVec()
		m.symRankOne()
		m.symRankK()
		m.symQuadForms()
	}
	Generate()
	declare("../vector_amd64")
}
