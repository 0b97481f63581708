// Package api has one Go type for each JSON document of the decision service. The server decodes
// into it, the client returns it, and the OpenAPI document is made from it.
//
//	placement.go   a placement and its features
//	preview.go     what a change of a placement would do
//	policies.go    the policies that a placement may have
//	request.go     a request for a decision
//	values.go      values of features, by name
//	reader.go      a hand-written reader of requests
//	answer.go      decisions and their outcomes
//	explain.go     why a decision shows what it shows
//	catalogue.go   the items of a placement, which requests name by id
//	stats.go       the counters of a placement, and its versions
//	series.go      what placements did over time
//	insight.go     what a placement has sold, and what its policy has learned
//	model.go       the saved state of a learner
//	experiment.go  experiments and their reports
//	event.go       events of the stream
//	entries.go     places in the logs of a service
//	process.go     what a process does with its logs
//	session.go     keys, and the sessions of the desk
//	problem.go     errors (RFC 9457)
//	field.go       errors of a field, before they are problems
//	json.go        errors of JSON, as errors of a field
//
// For example, the body of a PUT of /v1/placements/{name} is a [Placement], and a POST to its decisions has a [Request] and
// is answered with an [Answer].
//
// The tags doc, default, enum, minimum, maximum, minItems, maxLength and format are for the OpenAPI
// document. The package imports no other package of this module.
package api
