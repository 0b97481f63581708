// Package state is the state of the decision service: a fold of its log. State.Apply changes it by one event, for live
// traffic and for a replay alike, and a Batch checks proposals against it and turns them into the next events. The
// package uses no clock, socket or goroutine: time is an argument, in Unix nanoseconds, the log is an
// [eventlog.Reader], and the owner of a State runs its learners. From the bottom up:
//
//	errors.go      errors of calls
//	worker.go      a learner of a placement
//	placement.go   a placement; shoppers.go what its shoppers did; history.go its changes; record.go a remembered or evicted decision; view.go a placement as decisions see it
//	items.go       catalogues; state.go all of the state; prepare.go a learner and memory that callers make for the writer
//	put.go         a configuration → a placement; versions.go states to roll back to; relearn.go a second learner; experiment.go variants' learners
//	alarm.go       the guard's fallback; decisions.go a decision and its end; correct.go late outcomes and corrections
//	batch.go       proposals → the next events: outcome.go, expire.go, change.go, import.go
//	apply.go       the one function that applies an event to the state
//	lookup.go      the decision of a call; stats.go the counters of a placement
//	codec.go       the bytes of a snapshot; snapshot.go state → bytes, restore.go bytes → state
//
// docs/adr/0041-decision-engine.md says why the state is a fold.
package state
