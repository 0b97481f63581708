//go:build unix

package main

import (
	"flag"
	"testing"
	"time"

	"vitrine/internal/long"
	"vitrine/service/host/hosttest"
)

var (
	kills        = flag.Int("kills", 20, "how often TestKill kills the service")
	natsKills    = flag.Int("nats-kills", 6, "how often TestKillNATS kills the server that holds the log")
	leaderKills  = flag.Int("leader-kills", 2, "how often TestKillLeader kills the service that writes the log")
	leaderLimit  = flag.Duration("leader-limit", 0, "how long a take-over after that may take; 0 is no limit")
	strikesAsked = flag.Int("strikes", 6, "how often TestKillServices kills, freezes, stops, cuts off or slows "+
		"down services and servers")
	itemKills   = flag.Int("item-kills", 3, "how often TestKillItems kills the service during a push")
	killedItems = flag.Int("killed-items", 20_000, "how many items it pushes")
)

func TestKill(t *testing.T) {
	long.Test(t)
	t.Parallel()
	held(t, hosttest.Kill(t, *program, often(*kills)))
}

func TestKillNATS(t *testing.T) {
	long.Test(t)
	t.Parallel()
	held(t, hosttest.KillNATS(t, *program, often(*natsKills)))
}

func TestKillLeader(t *testing.T) {
	long.Test(t)
	t.Parallel()
	longest, said := hosttest.KillLeader(t, *program, often(*leaderKills))
	held(t, said)
	if *leaderLimit > 0 && longest > *leaderLimit {
		t.Errorf("a take-over took %v, more than %v", longest.Round(time.Millisecond), *leaderLimit)
	}
}

// TestKillServices is not parallel: a service that it starves loses its lease, and other tests would see that.
func TestKillServices(t *testing.T) {
	long.Test(t)
	held(t, hosttest.Strikes(t, *program, often(*strikesAsked)))
}

func TestKillItems(t *testing.T) {
	long.Test(t)
	t.Parallel()
	held(t, hosttest.KillItems(t, *program, *killedItems, often(*itemKills)))
}

func TestDamagedTail(t *testing.T) {
	long.Test(t)
	t.Parallel()
	hosttest.DamagedTail(t, *program)
}
