// Package server is the HTTP API of the decision service: routes over an engine
// of package decision.
//
//	server.go      the handler, and what every request passes through
//	routes.go      the table of routes
//	placements.go  placements, their statistics and versions
//	decisions.go   decisions and outcomes
//	wire.go        decisions in the protocol buffer wire format
//	events.go      what happens, as server-sent events
//	problem.go     errors as problem details (RFC 9457)
//	keys.go        API keys, their scopes and placements
//	keyfile.go     keys added to their file, and taken from it
//	watch.go       files that are read again when they change
//	limits.go      how much is let in
//	metrics.go     what Prometheus is told
//	openapi.go     the OpenAPI document
//	pages.go       the page of counters, and that of the API
//	listen.go      sockets, TLS, timeouts, the end
//
// The JSON of placements and decisions is the engine's to read, Engine.Put and
// api.RequestReader; wire.go reads the other form
// of a request, and package personalizer has the contract of Azure Personalizer. docs/adr/0042-http-api.md says why it is built this way.
package server
