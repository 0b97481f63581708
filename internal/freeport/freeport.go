// Package freeport finds TCP ports for the servers of tests.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Ports lie below the ranges that Linux (from 32768), macOS and Windows (from 49152) use for outgoing connections.
// Otherwise another test's connection could take a port before the server listens on it, or during a restart.
const (
	lowest = 15000
	count  = 17000
)

var (
	mu   sync.Mutex
	next = rand.IntN(count) // concurrent test programs start at different ports
)

// Local returns a free port on 127.0.0.1. A process cycles through all ports before it returns one again.
func Local(t testing.TB) int {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	for range count {
		port := lowest + next
		next = (next + 1) % count
		listener, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			continue
		}
		listener.Close()
		return port
	}
	t.Fatalf("no free port from %d to %d", lowest, lowest+count-1)
	return 0
}
