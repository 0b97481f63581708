//go:build !unix

package cpu

import "time"

// Time returns 0, because the processor time is not known on this system.
func Time() time.Duration { return 0 }
