//go:build !linux && !darwin

package host

// machineMemory returns the bytes of memory of the machine; 0 if it is not known.
func machineMemory() int64 { return 0 }

// diskSpace returns the free bytes of a directory's disk, and all; 0 if they are not known.
func diskSpace(string) (free, all float64) { return 0, 0 }
