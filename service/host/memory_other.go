//go:build !linux && !darwin

package host

// machineMemory returns the bytes of memory of the machine; 0 if it is not known.
func machineMemory() int64 { return 0 }
