// Package api has what the decision service and its callers exchange.
package api
