// Package kernel holds the inner loops of the module: plain functions on float64 slices and row-major matrices,
// independent of choice models. They neither allocate nor retain memory.
//
// A kernel comes in up to three implementations: in Go, with AVX2 and FMA, and with AVX-512. At startup a process
// selects one path for all kernels, the best that the machine supports. VITRINE_KERNEL=generic, avx2 or avx512 asks for
// one by name. If the machine does not support it or the name is unknown, the process still uses the best path, and
// Path returns an error: a package should not end its host program. The vector code is generated: each kernel is
// written once, in the module in directory asm.
//
// A result depends only on the arguments, not on their position in memory, the path or the machine. So runs are
// repeatable bit for bit, and a log of decisions leads to the same state everywhere. A NaN is a NaN everywhere, but its
// bits are unspecified.
//
//   - Kernels that treat entries separately perform the same operations in the same order, and fuse none of them: Exp,
//     Sigmoid, Tanh, Sincos, Softplus, Axpy, Mul, MulComplement, AddSquares, Combine, MulPairs, Columns, GemvTrans,
//     SymRankOne.
//   - Sums along a row use eight lanes and fused multiply-add, and total the lanes in a fixed order (see lanes.go):
//     Dot, Sum, LogSumExp1, Gemv, SymMulVec, SymQuadForms. Bilinear and SymRankK fuse too, in the order of their index.
//
// On machines without a fused multiply-add it is emulated in software, slowly.
//
// No kernel accesses memory outside its arguments. Where a kernel is documented to panic for a short slice, the slice's
// capacity counts: within its capacity, a short slice is extended, as by slicing.
package kernel

//go:generate go run -C asm . -out ../vector_amd64.s -pkg kernel

// mulAdd returns a b + c, rounded twice on every machine: the conversion prevents fusing.
func mulAdd(a, b, c float64) float64 { return float64(a*b) + c }
