// Package load sends simulated shoppers to a decision service and measures its latency.
//
//	load.go      a run, from the placement to the result
//	schedule.go  the schedule of requests: an open loop
//	world.go     the shoppers: candidates and choices
//	result.go    the measurements
//	journal.go   a record of acknowledged requests
//
// The loop is open: shoppers arrive by a schedule and do not wait for each other. The latency of a
// request is measured from its scheduled time, not from the time when a connection was free. If the
// service stalls for a second, every request of that second counts as late; a closed loop would hide
// this (Tene's coordinated omission).
package load
