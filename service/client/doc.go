// Package client calls a decision service (vitrine serve) over HTTP.
//
//	client.go  the client, its calls and encoded requests; items.go changes of a catalogue
//	send.go    attempts and retries at several addresses, and their errors
//
// Every call is safe to retry, and is retried: a decision gets an id before it is sent, and the same id and request get
// the same answer. Requests and answers use the types of package api.
package client
