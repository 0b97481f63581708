package sockets

import (
	"net/http/httptest"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// The address of a caller comes from trusted proxies, and only from them.
func TestCallersAddress(t *testing.T) {
	proxies := []string{"10.0.0.0/8", "2001:db8::1", "127.0.0.1"}
	for _, c := range []struct {
		header, peer, field, want string
	}{
		{"", "192.0.2.9:5", "198.51.100.1", "192.0.2.9"}, // not a proxy, but claims an address
		{"", "10.0.0.1:5", "", "10.0.0.1"},
		{"", "10.0.0.1:5", "198.51.100.1", "198.51.100.1"},
		{"", "10.0.0.1:5", "203.0.113.7, 198.51.100.1", "198.51.100.1"}, // the caller claims another address
		{"", "10.0.0.1:5", "203.0.113.7, 198.51.100.1, 10.0.0.2 , 10.0.0.3", "198.51.100.1"},
		{"", "10.0.0.1:5", "203.0.113.7\n198.51.100.1", "198.51.100.1"}, // in two fields
		{"", "10.0.0.1:5", "10.0.0.2, 10.0.0.3", "10.0.0.2"},            // a caller among the proxies
		{"", "10.0.0.1:5", "198.51.100.1, unknown", "10.0.0.1"},
		{"", "10.0.0.1:5", "198.51.100.1, unknown, 10.0.0.2", "10.0.0.2"},
		{"", "10.0.0.1:5", "198.51.100.1:4711", "198.51.100.1"},
		{"", "[2001:db8::1]:5", "[2001:db8:1::2]:77", "2001:db8:1::2"},
		{"", "[2001:db8::2]:5", "198.51.100.1", "2001:db8::2"},
		{"", "[::ffff:10.0.0.1]:5", "::ffff:198.51.100.1", "198.51.100.1"},
		{"X-Real-IP", "127.0.0.1:5", "198.51.100.1", "198.51.100.1"},
		{"x-real-ip", "127.0.0.1:5", "198.51.100.1", "198.51.100.1"},
		{"", "no address", "198.51.100.1", "invalid IP"},
	} {
		p := fatal.Or(ParseProxies(proxies, c.header))(t)
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.peer
		name := "X-Forwarded-For"
		if c.header != "" {
			name = "X-Real-Ip"
			r.Header.Set("X-Forwarded-For", "203.0.113.99") // uncalled for
		}
		for _, line := range strings.Split(c.field, "\n") {
			r.Header.Add(name, line)
		}
		expect.Equal(t, p.Caller(r).String(), c.want, "peer", c.peer, name, c.field, "the caller is")
	}
	var none Proxies
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Forwarded-For", "198.51.100.1")
	expect.Equal(t, none.Caller(r).String(), "192.0.2.1", "without trusted proxies the caller is")
	for _, bad := range [][]string{{"10.0.0.1/33"}, {"proxy.example"}, {""}, {"10.0.0.1:80"}} {
		expect.Refused(ParseProxies(bad, ""))(t, bad, "are proxies")
	}
	expect.Refused(ParseProxies(nil, "X-Real-IP"))(t, "a header without proxies")
	expect.Refused(ParseProxies(proxies, "forwarded"))(t, "the header Forwarded, whose form is another one")
}
