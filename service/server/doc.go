// Package server is the HTTP API of the decision service, on an engine of package decision.
//
// A call takes this way:
//
//	listen.go    a socket accepts a connection and reads the head of a request
//	server.go    Server.serve begins the call, and counts, logs and traces it when it is answered
//	routes.go    the table of routes: the wrappers that a call passes, its handler, and what the OpenAPI document says
//	wrappers.go  the wrappers: origin, key, limit, own, deadline, upToDate or change, catchUp, lead
//	call.go      the body is read, and the answer printed
//	problem.go   an error becomes the answer, a problem (RFC 9457)
//
// The handlers are in the files of what they are about: decisions.go, placements.go, items.go, events.go and so on. Package
// personalizer has the contract of Azure Personalizer. docs/adr/0042-http-api.md says why the API is as it is.
package server
