// Package server is the HTTP API of the decision service, on an engine of package engine. A call passes
//
//	listen.go    a socket accepts a connection and reads the head of a request
//	server.go    Server.serve begins the call, and counts, logs and traces it when it is answered
//	routes.go    the table of routes: the wrappers that a call passes, its handler, its text in the OpenAPI document
//	wrappers.go  the wrappers: origin, key, limit, own, deadline, upToDate or change, catchUp, lead
//	call.go      the body is read, and the answer printed
//	problem.go   an error becomes the answer, a problem (RFC 9457)
//
// The handlers are in files by subject: decisions.go, placements.go, items.go, events.go and so on. Package
// personalizer implements Azure Personalizer's contract. docs/adr/0042-http-api.md gives the reasons.
package server
