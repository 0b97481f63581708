//go:build unix

package main

import (
	"context"
	"flag"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vitrine/internal/long"
)

var leaderItemKills = flag.Int("item-leader-kills", 1, "how often TestKillLeaderItems kills the service that writes the log during a push")

// A push to several services survives SIGKILL of the one that writes the log: the next one has all of a part or nothing, what was
// acknowledged stays, the pusher goes on where it was, and every service has the same catalogue.
func TestKillLeaderItems(t *testing.T) {
	long.Test(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(*leaderItemKills)*2*time.Minute)
	defer cancel()
	c := newCluster(t, ctx, false)
	p := newPusher(*killedItems)
	// to tells the pusher which services there are. It begins at another one each time.
	to := func(members ...*clusterMember) {
		var urls []string
		for _, m := range members {
			urls = append(urls, m.url)
		}
		c.rng.Shuffle(len(urls), func(i, j int) { urls[i], urls[j] = urls[j], urls[i] })
		all := strings.Join(urls, ",")
		p.url.Store(&all)
	}
	to(c.members[:]...)
	for _, name := range []string{"home", "brief"} {
		if status, answer, _ := c.ledger.ask(ctx, "DELETE", "/v1/placements/"+name, ""); status != 204 {
			t.Fatal(status, answer)
		}
	}
	p.placement(ctx, t)
	pushing, stop := context.WithCancel(ctx)
	defer stop()
	var wait sync.WaitGroup
	wait.Go(func() { p.push(pushing) })
	n := 0
	for kill := range *leaderItemKills {
		p.reaches(ctx, kill, *leaderItemKills)
		time.Sleep(within(c.rng, 300*time.Millisecond))
		leader, followers := c.leading()
		c.crash(leader, false)
		c.leading()
		for before := p.parts.Load(); p.parts.Load() < before+3 && ctx.Err() == nil; { // it goes on without the dead one
			time.Sleep(time.Millisecond)
		}
		p.pausing.Lock()
		c.level(ctx, followers)
		for _, m := range followers {
			asked := &pusher{items: p.items, acknowledged: p.acknowledged}
			asked.url.Store(&m.url)
			n = asked.holds(ctx, t)
		}
		p.pausing.Unlock()
		c.comeBack(leader, false)
		to(c.members[:]...)
		if t.Failed() {
			t.Fatalf("at kill %d, -kill-seed %d", kill+1, *killSeed)
		}
	}
	stop()
	wait.Wait()
	if n != *killedItems {
		t.Errorf("%d items after the last kill, want %d", n, *killedItems)
	}
	c.level(ctx, c.members[:])
	var snapshots []string
	for _, m := range c.members {
		m.stop(t)
		snapshots = append(snapshots, m.data+"/state.snapshot")
	}
	sound(t, c.url, snapshots...)
	if !t.Failed() {
		t.Logf("verdict: -kill-seed %d: %d kills of the leader, %d parts acknowledged by three services, none lost or in part, %d items after the last kill", *killSeed, *leaderItemKills, p.parts.Load(), n)
	}
}

// level waits until services have the same entries and get no more.
func (c *cluster) level(ctx context.Context, members []*clusterMember) {
	c.Helper()
	for before := uint64(0); ; {
		var entries []uint64
		for _, m := range members {
			entries = append(entries, c.standing(m).Entry)
		}
		if slices.Min(entries) == slices.Max(entries) && entries[0] == before && before > 0 {
			return
		}
		if before = entries[0]; ctx.Err() != nil {
			c.Fatalf("the services are at the entries %v", entries)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
