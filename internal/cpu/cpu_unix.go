//go:build unix

// Package cpu measures processor time.
package cpu

import (
	"syscall"
	"time"
)

// Time returns the processor time used by this process and by the child processes it waited for, or 0 if unknown.
func Time() time.Duration {
	var own, children syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &own) != nil ||
		syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children) != nil {
		return 0
	}
	return time.Duration(own.Utime.Nano() + own.Stime.Nano() + children.Utime.Nano() + children.Stime.Nano())
}
