// Package api has one Go type for each JSON document of the decision service. The server decodes
// into it, the client returns it, and the OpenAPI document is made from it.
//
//	placement.go  a placement and its features
//	request.go    a request for a decision
//	values.go     values of features, by name
//	reader.go     a hand-written reader of requests
//	answer.go     decisions and their outcomes
//	catalogue.go  the items of a placement, which requests name by id
//	stats.go      the counters of a placement
//	insight.go    what a placement has sold, and what its policy has learned
//	explain.go    why a decision shows what it shows
//	experiment.go experiments and their reports
//	event.go      events of the stream
//	problem.go    errors (RFC 9457)
//	field.go      errors of a field, before they are problems
//
// The tags doc, default, enum, minimum, maximum, minItems, maxLength and format are for the OpenAPI
// document. The package imports no other package of this module.
package api
