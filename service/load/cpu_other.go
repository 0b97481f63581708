//go:build !unix

package load

import "time"

// ownCPU returns 0, because the processor time is not known on this system.
func ownCPU() time.Duration { return 0 }
