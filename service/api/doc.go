// Package api has one type for each thing that goes over the wire of the decision service: the server decodes into
// it, the client returns it, and the OpenAPI document is made from it.
//
//	placement.go  a placement and its features
//	request.go    what is asked
//	values.go     values of features, by name
//	reader.go     requests in JSON, by hand
//	answer.go     what is answered, and what becomes of it
//	stats.go      counters
//	event.go      what happens, as it is streamed
//	problem.go    errors (RFC 9457)
//
// The tags doc, default, enum, minimum, maximum, minItems, maxLength and format are for the document. The package
// imports nothing of ours.
package api
