package natslog_test

import "golang.org/x/sys/unix"

// A server that runs wild on damaged files ends the test, not the machine.
func init() {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err != nil {
		panic(err)
	}
	limit.Cur = min(limit.Cur, 6<<30)
	if err := unix.Setrlimit(unix.RLIMIT_AS, &limit); err != nil {
		panic(err)
	}
}
