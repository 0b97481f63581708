package freeport_test

import (
	"fmt"
	"net"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/internal/freeport"
)

// Ports are distinct, free, and below the range of outgoing connections.
func TestLocal(t *testing.T) {
	seen := make(map[int]bool)
	for range 200 {
		port := freeport.Local(t)
		if seen[port] || port < 1024 || port >= 32768 {
			t.Fatalf("port %d, after %v", port, seen)
		}
		seen[port] = true
		listener := fatal.Or(net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)))(t)
		defer listener.Close()
	}
}
