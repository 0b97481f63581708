package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"vitrine/internal/hint"
)

// Assumptions of the plan.
const (
	reported   = 0.9    // outcomes per decision
	perProcess = 8      // cores per process
	busy       = 0.7    // maximum load on a core or a network interface
	network    = 1.25e9 // bytes per second on a server's interface, 10 Gbit/s
	hottest    = 0.2    // share of a service's decisions in its busiest placement
)

// sized is a set of services large enough for a rate.
type sized struct {
	services  int
	processes int     // over all services
	following float64 // share of a process's cores
	out       float64 // bytes per second sent by the log's servers
	learner   float64 // load on the core that runs the busiest placement's learner
}

// maxRate returns the rate of decisions at which a leader reaches its maximum load.
func (c *costs) maxRate() float64 { return busy / (c.Lead * 1e-6) }

// follow returns a follower's processor time per decision, in seconds.
func (c *costs) follow() float64 { return (c.Follow + reported*c.Learn) * 1e-6 }

// size finds the numbers of services and processes for a rate R, which the services share equally. A service with n
// processes of p cores each can answer its part r of the rate if
//
//	n p busy ≥ r (serve + lead) + n r (follow + learn)
//
// A single service runs at least three processes, and several services at least two each, because machines die.
func (c *costs) size(rate float64) (z sized) {
	z.services = int(math.Ceil(rate/c.maxRate() - 1e-9))
	part := rate / float64(z.services)
	z.following = part * c.follow() / perProcess
	z.learner = hottest * part * reported * c.Learn * 1e-6
	each := max(int(math.Ceil(part*(c.Serve+c.Lead)*1e-6/(perProcess*(busy-z.following)))), 2)
	z.processes = max(each*z.services, 3)
	z.out = rate * c.Bytes * (2 + float64(z.processes)/float64(z.services)) // two more replicas
	return z
}

// plan prints the tables.
func plan(w io.Writer, c *costs) {
	a, b := c.append()
	fmt.Fprintf(w,
		"An append of n entries takes %.2f ms + n · %.2f µs. A leader is %.0f%% busy at %.0f decisions a second.\n\n",
		a*1e3, b*1e6, 100*busy, c.maxRate())
	fmt.Fprintf(w, "| decisions a second | services | processes of %d cores | share of their time to follow | "+
		"log's servers send, GB/s | busiest learner |\n|---|---|---|---|---|---|\n", perProcess)
	for _, rate := range []float64{1e4, 1e5, 1e6} {
		z := c.size(rate)
		fmt.Fprintf(w, "| %s | %d | %d | %.0f%% | %.2f | %.0f%% |\n", grouped(rate), z.services, z.processes,
			100*z.following, z.out/1e9, 100*z.learner)
	}
	fmt.Fprintf(w, "\n| what is %.0f%% busy | at decisions a second |\n|---|---|\n", 100*busy)
	for _, l := range c.limits() {
		unit := math.Pow(10, math.Floor(math.Log10(l.rate))-1) // two digits
		fmt.Fprintf(w, "| %s | %s |\n", l.what, grouped(math.Round(l.rate/unit)*unit))
	}
}

// grouped writes a whole number with commas between thousands.
func grouped(v float64) string { return hint.Grouped(fmt.Sprintf("%.0f", v)) }

// limit is the rate at which a component reaches its maximum load.
type limit struct {
	what string
	rate float64
}

// limits lists a service's components in the order in which they reach their limits.
func (c *costs) limits() []limit {
	_, b := c.append()
	list := []limit{
		{"the leader, as if one core did all of its work", c.maxRate()},
		{"one placement's learner, which one core runs", busy / (reported * c.Learn * 1e-6)},
		{"a follower applying the entries, which one core does", busy / (c.Follow * 1e-6)},
		{"the appends, if the leader took no time", busy / ((1 + reported) * b)},
		{fmt.Sprintf("all %d cores of a follower, which then decides nothing",
			perProcess), perProcess * busy / c.follow()},
		{"the network of a follower", busy * network / c.Bytes},
	}
	slices.SortStableFunc(list, func(x, y limit) int { return cmp.Compare(x.rate, y.rate) })
	return list
}
