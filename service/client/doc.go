// Package client asks a decision service (vitrine serve) over HTTP.
//
//	client.go     the client, and its calls
//	request.go    requests as bytes
//	send.go       one attempt after another
//	problem.go    answers that refuse
//	wire.go       decisions in the protocol buffer wire format
//
// Every call may be tried again without harm, and is: a decision has an id
// before it is sent, and the same id and request have the same answer. What goes
// over the wire has the types of package api.
package client
