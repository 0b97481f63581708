// Package engine is the core of the decision service. It decides, records and learns for many placements in one
// process. The parts without a clock or goroutine are in packages below: page (a request → its page), learner (a
// learner and its queue) and state (the fold of the log, and the events that proposals become). From the bottom up:
//
//	names.go      the errors, and the names of package state
//	writer.go     proposals → commit groups → state
//	follow.go     the state of an engine whose log another process writes; propose.go its calls to that process
//	open.go       a snapshot and a log → an engine; engine.go its description and alarms; events.go its log, snapshot.go its state as bytes
//	recall.go     offers that a call concerns, read before the writer
//	decide.go     a request → an offer of package page → the log
//	outcome.go    outcomes of offers: a choice, rewards, a correction, or none
//	put.go        a configuration → a placement with its learner, or a preview of it
//	items.go      changes of a catalogue, in chunks, and the catalogue of an earlier entry
//	versions.go   states to roll back to; relearn.go a second learner; clock.go attribution windows after a gap in time
//	explain.go    why a set was shown; insight.go what a placement has learned
//	import.go     decisions of another program's log
//	audit.go      compares a log with the rules, without learning
//
// Time is an argument, in Unix nanoseconds. The log is an [eventlog.Log]. Randomness is a stream at the address
// (placement's seed, number of the decision, purpose). docs/adr/0041-decision-engine.md gives the reasons.
package engine
