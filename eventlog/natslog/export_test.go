package natslog

import "time"

// SetAttempt changes how long an answer of the server is waited for, and
// returns what undoes it.
func SetAttempt(d time.Duration) (undo func()) {
	before := attempt
	attempt = d
	return func() { attempt = before }
}

// SetSync changes whether servers that start sync what they write.
func SetSync(always bool) { syncAlways = always }
