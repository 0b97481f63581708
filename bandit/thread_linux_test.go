package bandit

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns the processor time of this thread, 0 if it is not known.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
