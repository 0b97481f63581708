// Package client asks a decision service (vitrine serve) over HTTP.
//
//	client.go     the client, and its calls
//	request.go    what is asked for, and its bytes
//	answer.go     what is answered
//	placement.go  placements and their statistics
//	send.go       one attempt after another
//	problem.go    errors as problem details (RFC 9457)
//	wire.go       decisions in the protocol buffer wire format
//
// Every call may be tried again without harm, and is: a decision has an id
// before it is sent, and the same id and request have the same answer. It imports
// nothing of the service.
package client
