// Package engine is the core of the decision service. It decides, records and learns for many placements
// in one process. From the bottom up:
//
//	record.go     a decision that is remembered; due.go the open ones by time
//	placement.go  a placement in the state; alarm.go its guard's fallback, experiment.go its learners in an experiment
//	fold.go       the state, and the one function that applies an entry of the log to it
//	versions.go   the states of a learner to roll back to; relearn.go a second learner
//	restore.go    bytes → state
//	writer.go     proposals → commit groups → state
//	recall.go     offers that a call concerns, read before the writer
//	follow.go     the state of an engine whose log another process writes; propose.go what it asks of that process
//	open.go       a snapshot and a log → an engine
//	put.go        a configuration → a placement with its learner; preview.go what would change
//	decide.go     a request → an offer of package page → the log
//	outcome.go    what became of an offer; reward.go the same as numbers, defer.go before it is shown, evict.go if it never comes
//	explain.go    why a set was shown, insight.go what a placement has learned; rewind.go the catalogue of an earlier entry
//	snapshot.go   state → bytes
//	audit.go      compares a log with the rules, without learning
//
// What needs nothing of this is in packages below: setup (configurations), page (what a request is shown), learner (a learner on its goroutine), offer and earnings.
//
// The engine has no clock, socket or file: time is an argument, in Unix nanoseconds, the log is an [eventlog.Store], and
// randomness is a stream at the address (seed of the placement, number of the decision, purpose). The state is a fold of
// the log. docs/adr/0041-decision-engine.md says why.
package engine
