//go:build !unix

package cpu

import "time"

// Time returns 0, because this system does not report processor time.
func Time() time.Duration { return 0 }
