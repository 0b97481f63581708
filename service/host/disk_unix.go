//go:build linux || darwin

package host

import (
	"math"

	"golang.org/x/sys/unix"
)

// diskSpace returns the free bytes of a directory's disk, and all; 0 if they are not known.
func diskSpace(dir string) (free, all float64) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, 0
	}
	return float64(s.Bavail) * float64(s.Bsize), float64(s.Blocks) * float64(s.Bsize)
}

// maxFiles returns how many files and connections the process may have open; math.MaxInt if that is not known.
func maxFiles() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return math.MaxInt
	}
	return int(min(l.Cur, math.MaxInt32))
}
