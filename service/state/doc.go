// Package state is the state of the decision service: a fold of its log. State.Apply changes it by one event, for live
// traffic and for a replay alike, and a Batch checks proposals against it and turns them into the next events. The
// package uses no clock, socket or goroutine: time is an argument, in Unix nanoseconds, the log is an
// [eventlog.Reader], and the owner of a State runs its learners. From the bottom up:
//
//	state.go       the types: the state, a placement, a decision, a version, an experiment; errors.go errors of calls
//	worker.go      a placement's learners; experiment.go the variants' learners; alarm.go the guard's fallback
//	versions.go    states to roll back to; shoppers.go shoppers' visits; prepare.go a learner made for the writer
//	record.go      a decision; decisions.go its beginning and its end; placement.go the effects of a change
//	relearn.go     a second learner; items.go catalogues; put.go a configuration or another learner → a placement
//	batch.go       proposals → the next events: outcome.go, correct.go, measure.go, expire.go, change.go, import.go
//	apply.go       the one function that applies an event to the state; view.go a placement as decisions see it
//	lookup.go      the decision of a call; stats.go the counters of a placement; history.go its changes
//	codec.go       the bytes of a snapshot; snapshot.go state → bytes, restore.go bytes → state
//
// docs/adr/0041-decision-engine.md says why the state is a fold.
package state
