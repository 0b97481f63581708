// Package load sends simulated shoppers to a decision service, and measures how long they wait.
//
//	load.go      a run, from the placement to the result
//	schedule.go  what is due when: an open loop
//	world.go     the shoppers: what they are offered and what they take
//	lane.go      one connection
//	result.go    what was measured
//	journal.go   what was acknowledged
//
// Shoppers come when they come, and do not wait for each other: the loop is open. A request's latency is counted
// from the time it was due and not from when a connection was free, so that a service that stands still
// for a second is told to have kept waiting all who came in that second (Tene's coordinated
// omission).
package load
