// Package client calls a decision service (vitrine serve) over HTTP.
//
//	client.go     the client and its calls
//	request.go    encoded requests
//	send.go       attempts and retries
//	addresses.go  several addresses
//	problem.go    error answers
//
// Every call is safe to retry, and is retried: a decision gets an id before it is sent, and the same id and request get
// the same answer. Requests and answers use the types of package api.
package client
