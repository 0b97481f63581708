package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
)

// Assumptions of the plan.
const (
	reported   = 0.9     // outcomes a decision
	perProcess = 8       // cores of a process
	busy       = 0.7     // share of a core or of a network interface that may be in use
	network    = 1.25e9  // bytes a second of a server's interface, 10 Gbit/s
	hottest    = 0.2     // share of all decisions that the busiest placement has
	planned    = 10.0    // seconds that are simulated
	maxGroup   = 1 << 20 // bytes of an append
)

// shape is a way to build the service for a rate.
type shape struct {
	name    string
	all     bool    // whether every process follows all shards; otherwise those of its group
	sampled float64 // share of the rounds that learners observe
}

// sized is a service that is large enough for a rate.
type sized struct {
	shards, processes int     // 0 processes: no number is enough
	following         float64 // share of a process's cores
	out               float64 // bytes a second that the log's servers send
	learner           float64 // busy share of the core that the busiest placement's learner has
}

// maxRate is the rate of decisions at which a shard's leader is as busy as it may be.
func (c *costs) maxRate() float64 { return busy / (c.Lead * 1e-6) }

// follow is the processor time of a decision in a follower, in seconds.
func (c *costs) follow(sampled float64) float64 {
	return (c.Follow + sampled*reported*c.Learn) * 1e-6
}

// size finds the numbers of shards and processes. With a share f of the shards that a process follows, n processes of
// p cores take a rate R if
//
//	n p busy ≥ R (serve + lead) + n f R (follow + learn)
func (c *costs) size(rate float64, s shape) (z sized) {
	z.shards = int(math.Ceil(rate/c.maxRate() - 1e-9))
	work := rate * (c.Serve + c.Lead) * 1e-6
	share := 1.0
	if !s.all {
		share = 1 / float64(z.shards)
	}
	z.following = share * rate * c.follow(s.sampled) / perProcess
	z.learner = hottest * rate * reported * s.sampled * c.Learn * 1e-6
	if left := perProcess * (busy - z.following); left > 0 {
		z.processes = max(int(math.Ceil(work/left)), 3) // one may be away
		if !s.all {
			z.processes = max(z.processes, 2*z.shards)
		}
		z.out = rate * c.Bytes * (2 + share*float64(z.processes)) // two more replicas
	}
	return z
}

// shardResult is what the simulation of a shard measures, in seconds.
type shardResult struct {
	answers, lags []float64
	appends       int
	entries       int
}

// shard simulates a shard for some seconds: decisions and outcomes come by chance and go to one of the processes by
// chance; its cores work on the decisions, as long as on their outcomes too, then the leader, then they wait for an append. Followers get the entries and learn.
func (c *costs) shard(rng *rand.Rand, rate float64, processes int, following, sampled, seconds float64) (r shardResult) {
	a, b := c.append()
	available := 1 - following // of a core that also follows
	var handed []float64       // to the leader
	var came []float64         // of each, when its caller asked; −1 for outcomes
	for range processes {
		decisions := poisson(rng, rate/float64(processes), seconds)
		leave := cores(decisions, perProcess, c.Serve*1e-6/available)
		handed, came = append(handed, leave...), append(came, decisions...)
	}
	for _, t := range poisson(rng, reported*rate, seconds) {
		handed, came = append(handed, t), append(came, -1)
	}
	sorted, place := inOrder(handed)
	led := cores(sorted, 1, c.Lead*1e-6/(1+reported))
	durable, appends := groups(led, int(maxGroup*(1+reported)/c.Bytes), a, b)
	applied := cores(durable, 1, c.Follow*1e-6/(1+reported))
	var rounds, since []float64
	for k, i := range place {
		if came[i] >= 0 {
			r.answers = append(r.answers, durable[k]-came[i])
		} else if rng.Float64() < sampled {
			rounds, since = append(rounds, applied[k]), append(since, durable[k])
		}
	}
	for k, t := range cores(rounds, 1, c.Learn*1e-6) {
		r.lags = append(r.lags, t-since[k]+c.Lag*1e-3)
	}
	r.appends, r.entries = appends, len(durable)
	return r
}

// shapes are the ways that the plan compares.
var shapes = []shape{
	{"every process follows all", true, 1},
	{"all, learners see 1 of 10 rounds", true, 0.1},
	{"a process follows one shard", false, 1},
}

// plan prints the tables.
func plan(w io.Writer, c *costs, seconds float64) {
	a, b := c.append()
	fmt.Fprintf(w, "An append of n entries takes %.2f ms + n · %.2f µs. A leader is %.0f %% busy at %.0f decisions a second.\n\n", a*1e3, b*1e6, 100*busy, c.maxRate())
	fmt.Fprintf(w, "| decisions a second | who follows what | shards | processes of %d cores | share of their time to follow | log's servers send, GB/s | busiest learner | answer p50, p99 ms | lag p99 ms |\n|---|---|---|---|---|---|---|---|---|\n", perProcess)
	for _, rate := range []float64{1e4, 1e5, 1e6} {
		for _, s := range shapes {
			z := c.size(rate, s)
			if z.processes == 0 {
				fmt.Fprintf(w, "| %.0f | %s | %d | none is enough | %.0f %% | | %.0f %% | | |\n", rate, s.name, z.shards, 100*z.following, 100*z.learner)
				continue
			}
			r := c.shard(rand.New(rand.NewPCG(1, 1)), rate/float64(z.shards), max(z.processes/z.shards, 1), z.following, s.sampled, seconds)
			fmt.Fprintf(w, "| %.0f | %s | %d | %d | %.0f %% | %.2f | %.0f %% | %.1f, %.1f | %.1f |\n",
				rate, s.name, z.shards, z.processes, 100*z.following, z.out/1e9, 100*z.learner, 1e3*quantile(r.answers, 0.5), 1e3*quantile(r.answers, 0.99), 1e3*quantile(r.lags, 0.99))
		}
	}
	fmt.Fprintf(w, "\n| what is %.0f %% busy | at decisions a second |\n|---|---|\n", 100*busy)
	for _, l := range c.limits() {
		unit := math.Pow(10, math.Floor(math.Log10(l.rate))-1) // two digits
		fmt.Fprintf(w, "| %s | %.0f |\n", l.what, math.Round(l.rate/unit)*unit)
	}
}

// limit is the rate at which a part is as busy as it may be.
type limit struct {
	what string
	rate float64
}

// limits lists the parts in the order in which they are met.
func (c *costs) limits() []limit {
	_, b := c.append()
	list := []limit{
		{"a shard's leader, as if one core did all of its work", c.maxRate()},
		{fmt.Sprintf("the learner of a placement with %.0f %% of all decisions", 100*hottest), busy / (hottest * reported * c.Learn * 1e-6)},
		{"one placement's learner, which one core runs", busy / (reported * c.Learn * 1e-6)},
		{"one follower's applying of one shard, which one core does", busy / (c.Follow * 1e-6)},
		{"a shard's appends, if the leader took no time", busy / ((1 + reported) * b)},
		{fmt.Sprintf("all %d cores of a follower of all shards, which then decides nothing", perProcess), perProcess * busy / c.follow(1)},
		{"the network of a follower of all shards", busy * network / c.Bytes},
	}
	slices.SortStableFunc(list, func(x, y limit) int { return cmp.Compare(x.rate, y.rate) })
	return list
}
