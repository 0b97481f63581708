//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine/service/eventlog/natslog"
)

// crew is three services with their log on three servers of NATS. One writes it, and the others follow. Shoppers ask them in
// turn.
type crew struct {
	*stage
	url      string // of the servers
	members  [3]*crewMember
	takeOver []time.Duration
}

// crewMember is one of the services.
type crewMember struct {
	*process
	file, data, url string
	away            bool // killed, or frozen
}

func newCrew(t *testing.T, ctx context.Context) *crew {
	c := &crew{stage: &stage{T: t, ledger: newLedger(t)}}
	c.rng = rand.New(rand.NewPCG(*killSeed, 3))
	c.ledger.client.Timeout = 3 * time.Second // a frozen service does not answer
	c.url = c.startServers()
	for i := range c.members {
		m := new(crewMember)
		m.file, m.data = serviceFile(t, fmt.Sprintf("[log]\nurl = %q\nreplicas = 3\n[snapshots]\nevery = \"1s\"\n", c.url))
		c.members[i] = m
		c.startMember(m)
	}
	c.ledger.open(ctx)
	return c
}

// startMember starts a service, and has shoppers ask it.
func (c *crew) startMember(m *crewMember) {
	c.Helper()
	m.process, m.away = serve(c.T, m.file), false
	m.url = m.listening(c.T)
	c.tell()
}

// tell tells the shoppers which services there are.
func (c *crew) tell() {
	var urls []string
	for _, m := range c.members {
		if m != nil && m.process != nil && !m.away {
			urls = append(urls, m.url)
		}
	}
	if urls != nil {
		c.ledger.urls.Store(&urls)
	}
}

// standing is what a service says of itself, empty if it does not answer.
type standing struct {
	Role       string
	Lag        float64 `json:"lag_seconds"`
	Entry      uint64
	Epoch      uint64
	LeaderName string `json:"leader"`
}

func (c *crew) standing(m *crewMember) (s standing) {
	client := &http.Client{Timeout: 200 * time.Millisecond}
	defer client.CloseIdleConnections()
	a, err := client.Get(m.url + "/readyz")
	if err != nil {
		return s
	}
	defer a.Body.Close()
	_ = json.NewDecoder(a.Body).Decode(&s) // of a problem it is empty
	return s
}

// leading waits for a leader among services that are not away, and returns it and the others.
func (c *crew) leading() (leader *crewMember, followers []*crewMember) {
	c.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		leader, followers = nil, nil
		epoch := uint64(0)
		for _, m := range c.members {
			if m.away {
				continue
			}
			if s := c.standing(m); s.Role == "leader" && s.Epoch > epoch { // one that was fenced may not know it yet
				leader, epoch = m, s.Epoch
			}
		}
		if leader != nil {
			for _, m := range c.members {
				if m != leader && !m.away {
					followers = append(followers, m)
				}
			}
			return leader, followers
		}
	}
	for _, m := range c.members {
		c.Logf("%s", m.said())
	}
	c.Fatal("no service writes the log")
	return nil, nil
}

// crash kills or freezes a service.
func (c *crew) crash(m *crewMember, freeze bool) {
	c.Helper()
	if m.away = true; freeze {
		m.freeze(c.T)
	} else {
		m.kill()
	}
}

// comeBack starts a killed service, or thaws a frozen one.
func (c *crew) comeBack(m *crewMember, frozen bool) {
	c.Helper()
	if !frozen {
		c.startMember(m)
		return
	}
	m.thaw(c.T)
	m.away = false
	c.tell()
}

// replaced waits until another service leads after one, and a round is acknowledged that began later.
func (c *crew) replaced(ctx context.Context, begin time.Time) {
	c.Helper()
	c.leading()
	for n := len(c.ledger.all()); len(c.ledger.all()) < n+1; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			c.Fatal("nothing is acknowledged any more")
		}
	}
	c.takeOver = append(c.takeOver, time.Since(begin))
}

// holds ends the services, and compares what they know with the log, and with what shoppers were told.
func (c *crew) holds(ctx context.Context) {
	c.Helper()
	c.ledger.holds(ctx, c.ledger.all())
	learned := map[string]learning{}
	for i, m := range c.members {
		c.ledger.urls.Store(&[]string{m.url})
		for _, name := range []string{"home", "brief"} {
			l := c.ledger.settled(ctx, name)
			if i == 0 {
				learned[name] = l
			}
			for deadline := time.Now().Add(patience); l.tally != learned[name].tally || l.Learned != learned[name].Learned; l = c.ledger.settled(ctx, name) {
				if time.Now().After(deadline) {
					c.Fatalf("%s: a service has %+v, another one %+v", name, l, learned[name])
				}
			}
		}
	}
	var snapshots []string
	for _, m := range c.members {
		m.stop(c.T)
		snapshots = append(snapshots, filepath.Join(m.data, "state.snapshot"))
	}
	sound(c.T, c.url, snapshots...)
	decisions, of := readLog(c.T, natslog.Options{URL: c.url})
	c.ledger.isIn(decisions)
	for name, l := range learned {
		l.once(c.T, name, of[name])
	}
}

// The service that writes the log is killed under load: another one takes its place, and nothing acknowledged is lost.
func TestKillLeader(t *testing.T) {
	if *leaderKills == 0 {
		t.Skip("-leader-kills is 0")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(*leaderKills)*time.Minute)
	defer cancel()
	c := newCrew(t, ctx)
	wait := c.ledger.shop(ctx, 8, *killSeed<<20)
	for n := range *leaderKills {
		c.ledger.flows(ctx)
		leader, _ := c.leading()
		begin := time.Now()
		c.crash(leader, false)
		c.replaced(ctx, begin)
		c.comeBack(leader, false)
		if t.Failed() {
			t.Fatalf("at kill %d, -kill-seed %d", n+1, *killSeed)
		}
	}
	c.ledger.leaving.Store(true)
	wait()
	c.holds(ctx)
	if t.Failed() {
		return
	}
	slices.Sort(c.takeOver)
	longest := c.takeOver[len(c.takeOver)-1]
	t.Logf("verdict: -kill-seed %d: %d kills of the leader: %v in the middle, %v at most, until another one leads and a decision is acknowledged; %d decisions and %d outcomes acknowledged by three services, none lost, changed, doubled or learned twice",
		*killSeed, *leaderKills, c.takeOver[len(c.takeOver)/2].Round(time.Millisecond), longest.Round(time.Millisecond), len(c.ledger.rounds), c.ledger.reported)
	if *leaderLimit > 0 && longest > *leaderLimit {
		t.Errorf("a take-over took %v, more than %v: %v", longest, *leaderLimit, c.takeOver)
	}
}

// mishap is one failure of services and servers.
type mishap struct {
	name string
	do   func(ctx context.Context, c *crew)
}

// leaderGoes has the leader go and come back, and something else happen meanwhile.
func leaderGoes(freeze bool, meanwhile func(c *crew)) func(context.Context, *crew) {
	return func(ctx context.Context, c *crew) {
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
func followerGoes(freeze bool, meanwhile func(c *crew)) func(context.Context, *crew) {
	return func(ctx context.Context, c *crew) {
		_, followers := c.leading()
		f := followers[c.rng.IntN(len(followers))]
		c.crash(f, freeze)
		if meanwhile != nil {
			meanwhile(c)
		}
		c.ledger.flows(ctx)
		c.comeBack(f, freeze)
	}
}

var mishaps = []mishap{
	{"the leader killed", leaderGoes(false, nil)},
	{"the leader frozen", leaderGoes(true, nil)},
	{"the leader and a server killed", leaderGoes(false, func(c *crew) { c.killServers(1, within(c.rng, time.Second)) })},
	{"the leader frozen, a server killed", leaderGoes(true, func(c *crew) { c.killServers(1, within(c.rng, time.Second)) })},
	{"a follower killed", followerGoes(false, nil)},
	{"a follower frozen", followerGoes(true, func(c *crew) { time.Sleep(within(c.rng, time.Second)) })},
	{"a follower killed, a server frozen", followerGoes(false, func(c *crew) { c.freezeServers(1, within(c.rng, 2*time.Second)) })},
	{"a server killed", func(_ context.Context, c *crew) { c.killServers(1, within(c.rng, time.Second)) }},
	{"a server frozen", func(_ context.Context, c *crew) { c.freezeServers(1, within(c.rng, 3*time.Second)) }},
	{"two servers killed", func(_ context.Context, c *crew) { c.killServers(2, time.Second+within(c.rng, 2*time.Second)) }},
	{"the leader stopped", func(ctx context.Context, c *crew) {
		leader, _ := c.leading()
		leader.away = true
		c.tell()
		begin := time.Now()
		leader.stop(c.T)
		c.replaced(ctx, begin)
		c.comeBack(leader, false)
	}},
	{"the log taken over on request", func(_ context.Context, c *crew) {
		_, followers := c.leading()
		f := followers[0]
		f.away = true
		c.tell()
		f.stop(c.T)
		f.process, f.away = serve(c.T, f.file, "--take-over"), false
		f.url = f.listening(c.T)
		c.tell()
	}},
}

// Services and servers are killed, frozen and stopped under load, and every service is asked: acknowledged entries are in the
// log once, and were learned once.
func TestKillServices(t *testing.T) {
	if *serviceStrikes == 0 {
		t.Skip("-service-strikes is 0")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(*serviceStrikes)*time.Minute)
	defer cancel()
	c := newCrew(t, ctx)
	wait := c.ledger.shop(ctx, 8, *killSeed<<20)
	count := map[string]int{}
	var order []int
	for n := range *serviceStrikes {
		if len(order) == 0 {
			order = c.rng.Perm(len(mishaps))
		}
		m := mishaps[order[0]]
		order = order[1:]
		count[m.name]++
		time.Sleep(within(c.rng, 300*time.Millisecond))
		begin := time.Now()
		m.do(ctx, c)
		c.ledger.flows(ctx)
		t.Logf("%d: %s, %v", n+1, m.name, time.Since(begin).Round(time.Millisecond))
		for _, m := range c.members {
			select {
			case <-m.ended:
				t.Errorf("a service ended by itself, %v:\n%s", m.ProcessState, m.said())
			default:
			}
		}
		if t.Failed() {
			t.Fatalf("at strike %d, -kill-seed %d", n+1, *killSeed)
		}
	}
	c.ledger.leaving.Store(true)
	wait()
	c.holds(ctx)
	if t.Failed() {
		return
	}
	text := ""
	for _, m := range mishaps {
		if count[m.name] > 0 {
			text += fmt.Sprintf(" %d × %s,", count[m.name], m.name)
		}
	}
	t.Logf("verdict: -kill-seed %d: %d strikes (%s): %d decisions and %d outcomes acknowledged by three services, %d retries, the longest wait %d ms: none lost, changed, doubled or learned twice",
		*killSeed, *serviceStrikes, strings.Trim(text, " ,"), len(c.ledger.rounds), c.ledger.reported, c.ledger.retries.Load(), c.ledger.slowest.Load())
}
