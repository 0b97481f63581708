//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine/internal/long"
)

// need is what a strike needs of the machine.
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
	do    func(ctx context.Context, c *cluster)
}

// leaderGoes has the leader go and come back, and something else happen meanwhile.
func leaderGoes(freeze bool, meanwhile func(c *cluster)) func(context.Context, *cluster) {
	return func(ctx context.Context, c *cluster) {
		leader, _ := c.leading()
		begin := time.Now()
		c.crash(leader, freeze)
		if meanwhile != nil {
			meanwhile(c)
		}
		c.replaced(ctx, begin)
		c.ledger.flows(ctx)
		c.comeBack(leader, freeze)
	}
}

// followerGoes is the same of a follower.
func followerGoes(freeze bool, meanwhile func(c *cluster)) func(context.Context, *cluster) {
	return func(ctx context.Context, c *cluster) {
		f := c.follower()
		c.crash(f, freeze)
		if meanwhile != nil {
			meanwhile(c)
		}
		c.ledger.flows(ctx)
		c.comeBack(f, freeze)
	}
}

// leaderCutOff cuts the leader off from the servers until another service leads. Shoppers go on to ask it.
func leaderCutOff(which direction, also func(c *cluster)) func(context.Context, *cluster) {
	return func(ctx context.Context, c *cluster) {
		leader, _ := c.leading()
		leader.at.cut(c.T, which, placesOf(c.servers[:])...)
		if also != nil {
			also(c)
		}
		c.leading(leader)
		c.ledger.flows(ctx)
		leader.at.heal(c.T)
	}
}

func placesOf(servers []*external) (places []*place) {
	for _, s := range servers {
		places = append(places, s.at)
	}
	return places
}

// others returns the places of the other servers, and with services those of all services.
func (c *cluster) others(s *external, services bool) (places []*place) {
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
func serverCutOff(which direction, services bool, away time.Duration) func(context.Context, *cluster) {
	return func(_ context.Context, c *cluster) {
		s := c.some(1)[0]
		s.at.cut(c.T, which, c.others(s, services)...)
		time.Sleep(away/2 + within(c.rng, away/2))
		s.at.heal(c.T)
	}
}

// slowDisks slows the disks of n servers down until rounds have been acknowledged.
func slowDisks(n int) func(context.Context, *cluster) {
	return func(ctx context.Context, c *cluster) {
		chosen := c.rng.Perm(len(c.disks))[:n]
		for _, i := range chosen {
			if err := c.disks[i].limit(slowWrites, slowWrites*4096); err != nil {
				c.Fatal(err)
			}
		}
		c.ledger.flows(ctx)
		for _, i := range chosen {
			if err := c.disks[i].limit(0, 0); err != nil {
				c.Fatal(err)
			}
		}
	}
}

// stopDisks stops the disks of n servers for a while.
func stopDisks(n int) func(context.Context, *cluster) {
	return func(_ context.Context, c *cluster) {
		chosen := c.rng.Perm(len(c.disks))[:n]
		for _, i := range chosen {
			c.disks[i].stop(c.T)
		}
		time.Sleep(time.Second + within(c.rng, 3*time.Second))
		for _, i := range chosen {
			c.disks[i].goOn(c.T)
		}
	}
}

// tail returns the end of a log, without requests.
func tail(log string) string {
	lines := slices.DeleteFunc(strings.Split(log, "\n"), func(line string) bool {
		return strings.Contains(line, `"msg":"request"`) || strings.Contains(line, `"msg":"snapshot"`)
	})
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

var strikes = []strike{
	{"the leader killed", anyMachine, leaderGoes(false, nil)},
	{"the leader frozen", anyMachine, leaderGoes(true, nil)},
	{"the leader and a server killed", anyMachine, leaderGoes(false, func(c *cluster) { c.killServers(1, within(c.rng, time.Second)) })},
	{"the leader frozen, a server killed", anyMachine, leaderGoes(true, func(c *cluster) { c.killServers(1, within(c.rng, time.Second)) })},
	{"a follower killed", anyMachine, followerGoes(false, nil)},
	{"a follower frozen", anyMachine, followerGoes(true, func(c *cluster) { time.Sleep(within(c.rng, time.Second)) })},
	{"a follower killed, a server frozen", anyMachine, followerGoes(false, func(c *cluster) { c.freezeServers(1, within(c.rng, 2*time.Second)) })},
	{"all services killed", anyMachine, func(_ context.Context, c *cluster) {
		for _, m := range c.members {
			c.crash(m, false)
		}
		for _, m := range c.members {
			c.startMember(m)
		}
	}},
	{"a server killed", anyMachine, func(_ context.Context, c *cluster) { c.killServers(1, within(c.rng, time.Second)) }},
	{"a server frozen", anyMachine, func(_ context.Context, c *cluster) { c.freezeServers(1, within(c.rng, 3*time.Second)) }},
	{"two servers killed", anyMachine, func(_ context.Context, c *cluster) { c.killServers(2, time.Second+within(c.rng, 2*time.Second)) }},
	{"two servers frozen", anyMachine, func(_ context.Context, c *cluster) { c.freezeServers(2, time.Second+within(c.rng, 2*time.Second)) }},
	{"all servers killed", anyMachine, func(_ context.Context, c *cluster) { c.killServers(3, within(c.rng, time.Second)) }},
	{"the leader stopped", anyMachine, func(ctx context.Context, c *cluster) {
		leader, _ := c.leading()
		leader.away = true
		c.tell()
		begin := time.Now()
		leader.stop(c.T)
		c.replaced(ctx, begin)
		c.comeBack(leader, false)
	}},
	{"the log taken over on request", anyMachine, func(_ context.Context, c *cluster) { c.takesOver() }},
	{"the log taken over while a server is away", anyMachine, func(_ context.Context, c *cluster) {
		server := c.some(1)[0]
		server.kill()
		c.takesOver()
		server.start()
	}},

	{"the leader cut off", aNetwork, leaderCutOff(both, nil)},
	{"the leader cut off, which hears nothing", aNetwork, leaderCutOff(incoming, nil)},
	{"the leader cut off, which is not heard", aNetwork, leaderCutOff(outgoing, nil)},
	{"the leader cut off, a server killed", aNetwork, leaderCutOff(both, func(c *cluster) { c.killServers(1, within(c.rng, time.Second)) })},
	{"the leader with one server cut off from the rest", aNetwork, func(ctx context.Context, c *cluster) {
		leader, followers := c.leading()
		s := c.some(1)[0]
		leader.at.cut(c.T, both, c.others(s, false)...)
		s.at.cut(c.T, both, append(c.others(s, false), followers[0].at, followers[1].at)...)
		c.leading(leader)
		c.ledger.flows(ctx)
		leader.at.heal(c.T)
		s.at.heal(c.T)
	}},
	{"a follower cut off", aNetwork, func(ctx context.Context, c *cluster) {
		f := c.follower()
		f.at.cut(c.T, both, placesOf(c.servers[:])...)
		time.Sleep(within(c.rng, 3*time.Second))
		c.ledger.flows(ctx)
		f.at.heal(c.T)
	}},
	{"a server cut off", aNetwork, serverCutOff(both, true, 5*time.Second)},
	{"a server cut off from the others", aNetwork, serverCutOff(both, false, 5*time.Second)},
	{"a server cut off from the others until each service answers", aNetwork, func(ctx context.Context, c *cluster) {
		s := c.some(1)[0]
		s.at.cut(c.T, both, c.others(s, false)...)
		c.each(ctx)
		s.at.heal(c.T)
	}},
	{"a server that does not hear the others", aNetwork, serverCutOff(incoming, false, 5*time.Second)},
	{"a server that is not heard", aNetwork, serverCutOff(outgoing, true, 5*time.Second)},
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
	{"the leader killed, slow disks", aDisk, func(ctx context.Context, c *cluster) {
		leader, _ := c.leading()
		begin := time.Now()
		c.crash(leader, false)
		slowDisks(3)(ctx, c)
		c.replaced(ctx, begin)
		c.comeBack(leader, false)
	}},
}

// Services and servers are killed, frozen, stopped, cut off from each other and slowed down under load, and every service is
// asked: acknowledged entries are in the log once, and were learned once, and no two services wrote the log in one epoch.
func TestKillServices(t *testing.T) {
	long.Test(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(*strikesAsked)*time.Minute)
	defer cancel()
	c := newCluster(t, ctx, true)
	for what, why := range c.without {
		t.Logf("without %s, which this machine does not permit: %v", what, why)
	}
	possible := slices.DeleteFunc(slices.Clone(strikes), func(s strike) bool { return c.without[s.needs] != nil })
	wait := c.ledger.shop(ctx, 8, *killSeed<<20)
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
		c.ledger.flows(ctx)
		t.Logf("%d: %s, %v", n+1, s.name, time.Since(begin).Round(time.Millisecond))
		c.intact()
		if t.Failed() {
			for _, m := range c.members {
				t.Logf("%s:\n%s", m.url, tail(m.said()))
			}
			t.Fatalf("at strike %d, -kill-seed %d", n+1, *killSeed)
		}
	}
	stop()
	c.ledger.leaving.Store(true)
	wait()
	c.holds(ctx)
	if t.Failed() {
		return
	}
	text := ""
	for _, s := range strikes {
		if count[s.name] > 0 {
			text += fmt.Sprintf(" %d × %s,", count[s.name], s.name)
		}
	}
	left := ""
	for what := range c.without {
		left += fmt.Sprintf(", without %s", what)
	}
	t.Logf("verdict: -kill-seed %d: %d strikes (%s)%s: %d decisions and %d outcomes acknowledged by three services, %d retries, the longest wait %d ms: none lost, changed, doubled or learned twice, each epoch written by one service",
		*killSeed, *strikesAsked, strings.Trim(text, " ,"), left, len(c.ledger.rounds), c.ledger.reported, c.ledger.retries.Load(), c.ledger.slowest.Load())
}
