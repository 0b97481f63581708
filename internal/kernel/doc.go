// Package kernel holds the inner loops of the module: plain functions on
// float64 slices and row-major matrices, which know nothing of choice models.
// They allocate nothing and keep nothing.
//
// A kernel has up to three implementations: in Go, with AVX2 and FMA, and with
// AVX-512. A process takes one path for all kernels when it starts, the best
// that the machine has; VITRINE_KERNEL=generic, avx2 or avx512 asks for one by
// name. If the machine lacks it or the name is unknown, the process takes the best
// path and Path returns an error: a package does not end its host program. The
// vector code is generated: each kernel is written once, in the module of the
// directory asm.
//
// A result depends on the arguments only: not on their place in memory, nor on the
// path, nor on the machine, so that runs are repeatable bit for bit, and a log of
// decisions has one state everywhere. A NaN is one everywhere; its bits are not
// specified.
//
//   - Kernels that treat entries apart do the same operations in the same
//     order, none of them fused: Exp, Sigmoid, Tanh, Sincos, Softplus, Axpy,
//     Mul, MulComplement, AddSquares, Combine, MulPairs, Columns, GemvTrans, SymRankOne.
//   - Sums along a row go in eight lanes by fused multiply-add, and the lanes are
//     totalled in one order, see lanes.go: Dot, Sum, LogSumExp1, Gemv, SymMulVec,
//     SymQuadForms. Bilinear and SymRankK fuse too, in the order of their index.
//
// On machines without a fused multiply-add it is computed in software, slowly.
//
// No kernel leaves the memory of its arguments. A slice that a kernel is said
// to panic for is one whose capacity is too short; within it, a short slice is
// extended, as by slicing.
package kernel

//go:generate go run -C asm . -out ../vector_amd64.s -stubs ../vector_amd64.go -pkg kernel

// mulAdd returns a b + c, rounded twice on every machine: the conversion
// forbids to fuse the two.
func mulAdd(a, b, c float64) float64 { return float64(a*b) + c }
