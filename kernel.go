package vitrine

import "vitrine/internal/kernel"

// KernelPath returns the name of the vector code that this process uses: "generic",
// "avx2" or "avx512". The environment variable VITRINE_KERNEL selects one by name. If
// that name is unknown, or the machine lacks it, the process uses the best one that the
// machine has, and the error says so.
func KernelPath() (name string, err error) { return kernel.Path() }
