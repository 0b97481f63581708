// Package decision is the engine of the decision service. It decides, records and learns for many placements
// in one process. From the bottom up:
//
//	config.go     the configuration of a placement
//	request.go    a validated request
//	rules.go      the sets that may be shown
//	answer.go     the answer, and its part in the log
//	record.go     a decision that is remembered
//	placement.go  a placement in the state
//	offer.go      an offer, read back from the log
//	queue.go      the rounds that wait for a learner
//	learn.go      a learner on its own goroutine
//	fold.go       the state, and the one function that applies an entry of the log to it
//	restore.go    bytes → state
//	writer.go     proposals → commit groups → state
//	recall.go     offers that a call concerns, read before the writer
//	open.go       a snapshot and a log → an engine
//	put.go        a configuration → a placement with its learner
//	decide.go     a request → an offer; place.go puts its values in their places
//	outcome.go    what became of an offer; reward.go the same as numbers, defer.go before it is shown, evict.go if it never comes
//	snapshot.go   state → bytes
//	audit.go      compares a log with the rules, without learning
//
// The engine has no clock, socket or file: time is an argument, in Unix nanoseconds, the log is an [eventlog.Store], and
// randomness is a stream at the address (seed of the placement, number of the decision, purpose). The state is a fold of
// the log. docs/adr/0041-decision-engine.md says why.
package decision
