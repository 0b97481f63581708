//go:build unix

package load

import (
	"syscall"
	"time"
)

// ownCPU returns the processor time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
