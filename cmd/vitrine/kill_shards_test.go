//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"vitrine/internal/long"
	"vitrine/service/api"
	"vitrine/service/eventlog/natslog"
)

// Three services have two shards: one follows both, and each of the others one. They are killed and frozen under load, and so are
// servers of NATS. Every service answers for both shards, and what is acknowledged is in its shard once.
func TestKillShards(t *testing.T) {
	long.Test(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(*strikesAsked)*time.Minute)
	defer cancel()
	c := &cluster{T: t, ledger: newLedger(t), rng: rand.New(rand.NewPCG(*killSeed, 4)), without: map[need]error{}, leaders: map[uint64]*process{}}
	c.ledger.client.Timeout = 3 * time.Second // a frozen service does not answer
	c.startServers(make([]*place, len(c.servers)))
	for i, follow := range []string{"[]", "[1]", "[2]"} {
		m := new(clusterMember)
		m.file, m.data = serviceFile(t, fmt.Sprintf("[limits]\nanswer = \"2s\"\n[log]\nurl = %q\nreplicas = 3\nshards = 2\nfollow = %s\n[snapshots]\nevery = \"1s\"\n", c.url, follow))
		c.members[i] = m
		c.startMember(m)
	}
	for _, m := range c.members { // a shard that a service does not have yet gets no placement from it
		for !ready(ctx, m.url) {
			if ctx.Err() != nil {
				t.Fatalf("a service is not ready:\n%s", m.said())
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	c.ledger.open(ctx)
	wait := c.ledger.shop(ctx, 8, *killSeed<<20)
	count := map[string]int{}
	for n := range *strikesAsked {
		time.Sleep(within(c.rng, 300*time.Millisecond))
		m := c.members[c.rng.IntN(len(c.members))]
		name := []string{"a service killed", "a service frozen", "a server killed"}[n%3]
		switch count[name]++; n % 3 {
		case 2:
			c.killServers(1, within(c.rng, time.Second))
		default:
			c.crash(m, n%3 == 1)
			c.tell()
			c.ledger.flows(ctx)
			c.comeBack(m, n%3 == 1)
		}
		c.ledger.flows(ctx)
		c.intact()
		if t.Failed() {
			t.Fatalf("at strike %d, %s, -kill-seed %d", n+1, name, *killSeed)
		}
	}
	c.ledger.leaving.Store(true)
	wait()
	c.ledger.holds(ctx, c.ledger.all())
	learned := map[string]learning{}
	for name := range killedPlacements {
		learned[name] = c.ledger.settled(ctx, name)
	}
	for _, m := range c.members {
		m.stop(t)
	}
	decisions, of := map[string]*inLog{}, map[string]tally{}
	for shard := 1; shard <= 2; shard++ {
		there, tallies := readLog(t, natslog.Options{URL: c.url, Stream: natslog.ShardStream("", shard)})
		if len(there) == 0 {
			t.Errorf("shard %d has no decision", shard)
		}
		maps.Copy(decisions, there)
		for name, n := range tallies {
			if of[name] != (tally{}) {
				t.Errorf("placement %q has entries in two shards", name)
			}
			of[name] = n
		}
	}
	c.ledger.isIn(decisions)
	for name, l := range learned {
		l.once(t, name, of[name])
	}
	if !t.Failed() {
		t.Logf("verdict: -kill-seed %d: %d strikes on two shards (%d × a service killed, %d × frozen, %d × a server killed): %d decisions and %d outcomes acknowledged, %d retries, the longest wait %d ms: none lost, changed, doubled or learned twice",
			*killSeed, *strikesAsked, count["a service killed"], count["a service frozen"], count["a server killed"], len(c.ledger.rounds), c.ledger.reported, c.ledger.retries.Load(), c.ledger.slowest.Load())
	}
}

// ready reports whether a service has all shards that it follows.
func ready(ctx context.Context, url string) bool {
	q, err := http.NewRequestWithContext(ctx, "GET", url+"/readyz", nil)
	if err != nil {
		return false
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return false
	}
	defer a.Body.Close()
	var p api.Process
	return json.NewDecoder(a.Body).Decode(&p) == nil && a.StatusCode == http.StatusOK &&
		!slices.ContainsFunc(p.Shards, func(s api.Process) bool { return s.Problem != "" })
}
