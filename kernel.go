package vitrine

import "vitrine/internal/kernel"

// KernelPath returns the name of the vector code that this process computes
// with: "generic", "avx2" or "avx512". The environment variable VITRINE_KERNEL
// asks for one by name. If it asks for an unknown one, or one that the machine
// lacks, the process takes the best, and the error says so.
func KernelPath() (name string, err error) { return kernel.Path() }
