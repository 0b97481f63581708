//go:build slow

package engine_test

import "testing"

// At every 10,000th entry of a long log a follower's state equals a replay's.
func TestFollowerIsTheReplayAtLength(t *testing.T) { followerIsTheReplay(t, 60_000, 10_000) }
