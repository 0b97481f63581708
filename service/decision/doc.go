// Package decision is the engine of the decision service: it decides, records
// and learns, for many placements in one process.
//
//	placement.go  what a placement is: its configuration
//	schema.go     features → a row of fixed width
//	object.go     any JSON → columns
//	request.go    what a caller asks, with its values in their places
//	decide.go     a request → an offer
//	slots.go      a set that fills places
//	outcome.go    what became of an offer
//	reward.go     the same, told by rewards
//	defer.go      decisions that wait to be shown
//	apply.go      the one function that applies an entry of the log
//	answer.go     what a caller is told, and what the log has of it
//	record.go     decisions that are remembered
//	offer.go      their offers, read back from the log
//	index.go      where they are found
//	learn.go      a learner on its own goroutine
//	queue.go      the rounds that wait for it
//	engine.go     one writer: proposals → commit groups → state
//	snapshot.go   the whole state as bytes
//	stats.go      what it says of itself
//	audit.go      a log held to the rules, without learning
//	named.go      a row → values by the features' names
//
// It asks no clock what time it is, and has no socket and no file: time is an argument, in Unix
// nanoseconds, the log is an [eventlog.Store], and all randomness is a stream at
// the address (placement's seed, number of the decision, purpose). State is a
// fold of the log. docs/adr/0041-decision-engine.md says why it is built this way.
package decision
