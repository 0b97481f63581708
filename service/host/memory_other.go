//go:build !linux && !darwin

package host

import "math"

// machineMemory returns the bytes of memory of the machine; 0 if it is not known.
func machineMemory() int64 { return 0 }

// diskSpace returns the free bytes of a directory's disk, and all; 0 if they are not known.
func diskSpace(string) (free, all float64) { return 0, 0 }

// maxFiles returns how many files and connections the process may have open; math.MaxInt if that is not known.
func maxFiles() int { return math.MaxInt }
