// Package server is the HTTP API of the decision service. It serves an engine of package decision.
//
//	server.go      the handler, and what all requests have in common
//	routes.go      the table of routes
//	placements.go  placements, their statistics and versions
//	decisions.go   decisions and outcomes
//	wire.go        decisions in the protocol buffer wire format
//	events.go      the stream of events (server-sent events)
//	problem.go     errors as problem details (RFC 9457)
//	keys.go        API keys, their scopes and placements
//	keyfile.go     changes to the file of keys
//	sessions.go    sessions of the desk, which stand for keys
//	identity.go    the ids of requests
//	entry.go       the entries of the log that answers name
//	cors.go        pages of other origins, and OPTIONS
//	encoding.go    compressed bodies
//	proxy.go       addresses of callers behind proxies
//	framing.go     requests whose body has two lengths
//	alerts.go      the problems that alerts tell of
//	watch.go       files that are read again when they change
//	ready.go       whether the process is ready, and its role
//	limits.go      limits on requests
//	memory.go      memory that requests take from the budget
//	metrics.go     Prometheus metrics
//	tracing.go     traces of requests
//	openapi.go     the OpenAPI document
//	pages.go       the desk's files
//	overview.go    placements at a glance and over time, their health in words
//	policies.go    policies and their parameters
//	downloads.go   the log and the model of a placement
//	listen.go      sockets, TLS, timeouts, shutdown
//
// The JSON of placements and decisions is the engine's to read, Engine.Put and
// api.RequestReader; wire.go reads the other form
// of a request, and package personalizer has the contract of Azure Personalizer. docs/adr/0042-http-api.md says why it is built this way.
package server
