// Package freeport finds TCP ports for the servers of tests.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Ports are below those that Linux (32768), macOS and Windows (49152) give to outgoing connections. Otherwise
// a connection of another test could take a port before the server listens on it, or while it restarts.
const (
	lowest = 15000
	count  = 17000
)

var (
	mu   sync.Mutex
	next = rand.IntN(count) // test programs that run at the same time begin at different ports
)

// Local returns a port of 127.0.0.1 on which nobody listens. A process gets a port again only after all others.
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
