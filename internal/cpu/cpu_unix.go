//go:build unix

// Package cpu measures processor time.
package cpu

import (
	"syscall"
	"time"
)

// Time returns the processor time of this process and of the child processes that it has waited for, 0 if it is not known.
func Time() time.Duration {
	var own, children syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &own) != nil || syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children) != nil {
		return 0
	}
	return time.Duration(own.Utime.Nano() + own.Stime.Nano() + children.Utime.Nano() + children.Stime.Nano())
}
