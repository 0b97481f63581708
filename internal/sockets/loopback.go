package sockets

import (
	"net"
	"strings"
)

// IsLoopback reports whether an address, with or without a port, is a loopback address.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
