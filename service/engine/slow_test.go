//go:build slow

package engine_test

import "testing"

// At every 10,000th entry of a long log a follower has the state of a replay.
func TestFollowerIsTheReplayAtLength(t *testing.T) { followerIsTheReplay(t, 60_000, 10_000) }
