// Package api defines one Go type for each JSON document of the decision service. The server decodes into it, the
// client returns it, and the OpenAPI document is made from it.
//
//	placement.go   a placement, its features, the effects of a change, and the available policies
//	decision.go    a request, its decision and the outcome; explain.go why a decision shows its items
//	values.go      feature values, by name; reader.go a hand-written reader of requests
//	catalogue.go   the items of a placement, which requests name by id
//	stats.go       the counters of a placement, and its versions; series.go over time; insight.go its sales and beliefs
//	experiment.go  experiments and their reports
//	event.go       events of the stream; entries.go places in the logs
//	session.go     keys, the sessions of the desk, and a process and its logs
//	problem.go     errors (RFC 9457); field.go errors of a field; json.go errors of JSON
//
// For example, the body of a PUT of /v1/placements/{name} is a [Placement]; a POST to its decisions sends a [Request]
// and gets an [Answer].
//
// The tags doc, default, enum, minimum, maximum, minItems, maxLength and format are for the OpenAPI document. The
// package imports no other package of this module.
package api
