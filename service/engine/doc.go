// Package engine is the core of the decision service. It decides, records and learns for many placements in one process. What has no
// clock and no goroutine is in packages below: page (what a request is shown), learner (a learner and its queue) and state (the fold
// of the log, and which events a proposal becomes). From the bottom up:
//
//	entry.go      the entry of a change, for its caller; errors.go, names.go
//	writer.go     proposals → commit groups → state
//	follow.go     the state of an engine whose log another process writes; propose.go what it asks of that process
//	open.go       a snapshot and a log → an engine; engine.go what it says of itself; events.go its log, snapshot.go its state as bytes
//	recall.go     offers that a call concerns, read before the writer
//	decide.go     a request → an offer of package page → the log
//	outcome.go    what became of an offer; reward.go the same as numbers, correct.go later, defer.go before it is shown, evict.go if it never comes
//	put.go        a configuration → a placement with its learner; preview.go what would change
//	items.go      changes of a catalogue, in chunks; rewind.go the catalogue of an earlier entry
//	versions.go   states to roll back to; relearn.go a second learner; alarm.go, experiment.go, model.go, clock.go
//	explain.go    why a set was shown; insight.go what a placement has learned
//	import.go     decisions of another program's log
//	audit.go      compares a log with the rules, without learning; compare.go two engines
//
// Time is an argument, in Unix nanoseconds, the log is an [eventlog.Store], and randomness is a stream at the address (seed of the
// placement, number of the decision, purpose). docs/adr/0041-decision-engine.md says why.
package engine
