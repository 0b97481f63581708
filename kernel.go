package vitrine

import "vitrine/internal/kernel"

// KernelPath returns the name of the vector code in use: "generic", "avx2" or "avx512". You can choose one with the
// environment variable VITRINE_KERNEL. If that name is unknown or the machine does not support it, the process uses the
// best code the machine supports, and KernelPath also returns an error that says so.
func KernelPath() (name string, err error) { return kernel.Path() }
