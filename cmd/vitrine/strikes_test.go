//go:build unix

package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine/internal/fatal"
	"vitrine/internal/long"
)

var strikesAsked = flag.Int("strikes", 6, "how often TestKillServices kills, freezes, stops, cuts off or slows down "+
	"services and servers")

// need is a requirement of a strike on the machine.
type need string

const (
	anyMachine need = ""
	aNetwork   need = "partitions" // places of their own
	aDisk      need = "slow disks"
)

// strike is one failure of services and servers.
type strike struct {
	name  string
	needs need
	do    deed
}

type deed func(ctx context.Context, c *cluster)

// leaderGoes kills or freezes the leader until another service leads, and something else happens meanwhile.
func leaderGoes(freeze bool, meanwhile deed) deed {
	return func(ctx context.Context, c *cluster) {
		leader, _ := c.leading()
		begin := time.Now()
		c.crash(leader, freeze)
		meanwhile(ctx, c)
		c.replaced(ctx, begin)
		c.ledger.Flows(ctx)
		c.comeBack(leader, freeze)
	}
}

// followerKilled kills a follower, and something else happens meanwhile.
func followerKilled(meanwhile deed) deed {
	return func(ctx context.Context, c *cluster) {
		f := c.follower()
		c.crash(f, false)
		meanwhile(ctx, c)
		c.ledger.Flows(ctx)
		c.comeBack(f, false)
	}
}

func quiet(context.Context, *cluster) {}

// servers kills or freezes n servers for a time of atLeast and up to more.
func servers(n int, freeze bool, atLeast, more time.Duration) deed {
	return func(_ context.Context, c *cluster) {
		chosen := c.some(n)
		for _, s := range chosen {
			s.strike(freeze)
		}
		time.Sleep(atLeast + within(c.rng, more))
		for _, s := range chosen {
			if freeze {
				s.thaw()
			} else {
				s.Start()
			}
		}
	}
}

// others returns the places of the servers other than s, and with services of all services, too.
func (c *cluster) others(s *natsProcess, services bool) (places []*place) {
	for _, other := range c.servers {
		if other != s {
			places = append(places, other.at)
		}
	}
	if services {
		for _, m := range c.members {
			places = append(places, m.at)
		}
	}
	return places
}

// serverCutOff cuts a server off for a while.
func serverCutOff(which direction, services bool) deed {
	return func(_ context.Context, c *cluster) {
		s := c.some(1)[0]
		s.at.cut(c.T, which, c.others(s, services)...)
		time.Sleep(2500*time.Millisecond + within(c.rng, 2500*time.Millisecond))
		s.at.heal(c.T)
	}
}

// disks strikes n servers' disks, and heals them after meanwhile.
func disks(n int, strike, heal func(*disk, *testing.T), meanwhile deed) deed {
	return func(ctx context.Context, c *cluster) {
		chosen := c.rng.Perm(len(c.disks))[:n]
		for _, i := range chosen {
			strike(c.disks[i], c.T)
		}
		meanwhile(ctx, c)
		for _, i := range chosen {
			heal(c.disks[i], c.T)
		}
	}
}

// slowDisks slows the disks of n servers until rounds are acknowledged.
func slowDisks(n int) deed {
	return disks(n, func(d *disk, t *testing.T) { fatal.If(t, d.limit(slowWrites, slowWrites*4096)) },
		func(d *disk, t *testing.T) { fatal.If(t, d.limit(0, 0)) },
		func(ctx context.Context, c *cluster) { c.ledger.Flows(ctx) })
}

// stopDisks stops the disks of n servers for a while.
func stopDisks(n int) deed {
	return disks(n, (*disk).stop, (*disk).goOn,
		func(_ context.Context, c *cluster) { time.Sleep(time.Second + within(c.rng, 3*time.Second)) })
}

// tail returns the end of a log, without requests.
func tail(log string) string {
	lines := slices.DeleteFunc(strings.Split(log, "\n"), func(line string) bool {
		return strings.Contains(line, `"msg":"request"`) || strings.Contains(line, `"msg":"snapshot"`)
	})
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

var strikes = []strike{
	{"the leader killed", anyMachine, leaderGoes(false, quiet)},
	{"the leader frozen", anyMachine, leaderGoes(true, quiet)},
	{"the leader and a server killed", anyMachine, leaderGoes(false, servers(1, false, 0, time.Second))},
	{"a follower killed", anyMachine, followerKilled(quiet)},
	{"a follower killed, a server frozen", anyMachine, followerKilled(servers(1, true, 0, 2*time.Second))},
	{"all services killed", anyMachine, func(_ context.Context, c *cluster) {
		for _, m := range c.members {
			c.crash(m, false)
		}
		for _, m := range c.members {
			c.startMember(m)
		}
	}},
	{"a server killed", anyMachine, servers(1, false, 0, time.Second)},
	{"a server frozen", anyMachine, servers(1, true, 0, 3*time.Second)},
	{"two servers killed", anyMachine, servers(2, false, time.Second, 2*time.Second)},
	{"two servers frozen", anyMachine, servers(2, true, time.Second, 2*time.Second)},
	{"all servers killed", anyMachine, servers(3, false, 0, time.Second)},
	{"the leader stopped", anyMachine, func(ctx context.Context, c *cluster) {
		leader, _ := c.leading()
		leader.away = true
		c.tell()
		begin := time.Now()
		leader.Stop()
		c.replaced(ctx, begin)
		c.comeBack(leader, false)
	}},
	{"the log taken over while a server is away", anyMachine, func(_ context.Context, c *cluster) {
		server := c.some(1)[0]
		server.Kill()
		c.takesOver()
		server.Start()
	}},

	{"the leader cut off, a server killed", aNetwork, func(ctx context.Context, c *cluster) {
		leader, _ := c.leading()
		leader.at.cut(c.T, both, c.others(nil, false)...)
		servers(1, false, 0, time.Second)(ctx, c)
		c.leading(leader)
		c.ledger.Flows(ctx)
		leader.at.heal(c.T)
	}},
	{"the leader with one server cut off from the rest", aNetwork, func(ctx context.Context, c *cluster) {
		leader, followers := c.leading()
		s := c.some(1)[0]
		leader.at.cut(c.T, both, c.others(s, false)...)
		s.at.cut(c.T, both, append(c.others(s, false), followers[0].at, followers[1].at)...)
		c.leading(leader)
		c.ledger.Flows(ctx)
		leader.at.heal(c.T)
		s.at.heal(c.T)
	}},
	{"a server cut off", aNetwork, serverCutOff(both, true)},
	{"a server cut off from the others", aNetwork, serverCutOff(both, false)},
	{"a server cut off from the others until each service answers", aNetwork, func(ctx context.Context, c *cluster) {
		s := c.some(1)[0]
		s.at.cut(c.T, both, c.others(s, false)...)
		c.each(ctx)
		s.at.heal(c.T)
	}},
	{"a server that does not hear the others", aNetwork, serverCutOff(incoming, false)},
	{"a server that is not heard", aNetwork, serverCutOff(outgoing, true)},
	{"all servers cut off from each other", aNetwork, func(_ context.Context, c *cluster) {
		for _, s := range c.servers[:2] {
			s.at.cut(c.T, both, c.others(s, false)...)
		}
		time.Sleep(time.Second + within(c.rng, 3*time.Second))
		for _, s := range c.servers[:2] {
			s.at.heal(c.T)
		}
	}},

	{"a slow disk", aDisk, slowDisks(1)},
	{"two slow disks", aDisk, slowDisks(2)},
	{"a disk stopped", aDisk, stopDisks(1)},
	{"two disks stopped", aDisk, stopDisks(2)},
	{"the leader killed, slow disks", aDisk, leaderGoes(false, slowDisks(3))},
}

// TestKillServices kills, freezes, stops, cuts off from each other and slows down services and servers under load, and sends
// shoppers to every service. Acknowledged entries must be in the log once, and be learned once, and no two services may
// write the log in one epoch.
//
// It is not parallel: a service that it starves loses its lease, and other tests would see that.
func TestKillServices(t *testing.T) {
	long.Test(t)
	ctx, cancel := context.WithTimeout(t.Context(), patienceFor(*strikesAsked))
	defer cancel()
	c := newCluster(t, ctx, *killSeed, true)
	left := ""
	for what, why := range c.without {
		t.Logf("without %s, which this machine does not permit: %v", what, why)
		left += fmt.Sprintf(", without %s", what)
	}
	possible := slices.DeleteFunc(slices.Clone(strikes), func(s strike) bool { return c.without[s.needs] != nil })
	c.ledger.Shop(ctx, 8, *killSeed<<20)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go c.watch(watching)
	count := map[string]int{}
	var order []int
	for n := range *strikesAsked {
		if len(order) == 0 {
			order = c.rng.Perm(len(possible))
		}
		s := possible[order[0]]
		order = order[1:]
		count[s.name]++
		time.Sleep(within(c.rng, 300*time.Millisecond))
		begin := time.Now()
		s.do(ctx, c)
		c.ledger.Flows(ctx)
		t.Logf("%d: %s, %v", n+1, s.name, time.Since(begin).Round(time.Millisecond))
		c.intact()
		c.unharmed(n)
	}
	stop()
	c.accounts(ctx)
	text := ""
	for _, s := range strikes {
		if count[s.name] > 0 {
			text += fmt.Sprintf(" %d × %s,", count[s.name], s.name)
		}
	}
	held(t, fmt.Sprintf("seed %d: %d strikes (%s)%s: %v by three services, %d retries, the longest wait %d ms: "+
		"none lost, changed, doubled or learned twice, each epoch written by one service",
		*killSeed, *strikesAsked, strings.Trim(text, " ,"), left, c.ledger, c.ledger.retries.Load(), c.ledger.slowest.Load()))
}
