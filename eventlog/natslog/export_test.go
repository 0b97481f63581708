package natslog

import "time"

// SetAttempt changes how long an answer of the server is waited for, and
// returns what undoes it.
func SetAttempt(d time.Duration) (undo func()) {
	before := attempt
	attempt = d
	return func() { attempt = before }
}

// SetLease changes how often a lease is renewed, and how long one that is not holds.
func SetLease(every, hold time.Duration) (undo func()) {
	before, held := renewal, silence
	renewal, silence = every, hold
	return func() { renewal, silence = before, held }
}

// Abandon leaves the log as a killed process does: nothing is given back.
func Abandon(s *Store) { s.conn.Close() }

// SetSync changes whether servers that start sync what they write.
func SetSync(always bool) { syncAlways = always }
