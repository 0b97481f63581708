package sockets

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the proxies to trust about callers' addresses.
type Proxies struct {
	Trusted []netip.Prefix // their addresses; nil trusts no proxy
	Header  string         // the header with the caller's address; "" means X-Forwarded-For
}

// ParseProxies reads addresses and networks of proxies, such as "127.0.0.1" and "10.0.0.0/8".
func ParseProxies(addresses []string, header string) (Proxies, error) {
	p := Proxies{Header: http.CanonicalHeaderKey(cmp.Or(header, "X-Forwarded-For"))}
	if header != "" && len(addresses) == 0 {
		return p, fmt.Errorf("client_address_header = %q needs trusted_proxies: without them anybody could claim "+
			"any address", header)
	}
	if p.Header == "Forwarded" {
		return p, fmt.Errorf("client_address_header = %q: must be a header that has only addresses, such as "+
			"X-Forwarded-For or X-Real-IP", header)
	}
	for _, text := range addresses {
		network, err := netip.ParsePrefix(text)
		if address, single := netip.ParseAddr(text); single == nil {
			network, err = address.Prefix(address.BitLen())
		}
		if err != nil {
			return p, fmt.Errorf("trusted_proxies: %q: must be an address such as \"10.0.0.7\", or a network such "+
				"as \"10.0.0.0/8\"", text)
		}
		p.Trusted = append(p.Trusted, network.Masked())
	}
	return p, nil
}

func (p *Proxies) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(p.Trusted, func(n netip.Prefix) bool { return n.Contains(a) })
}

// Caller returns the caller's address. Each proxy appends the address that called it, so the list is read from its end,
// as far as trusted proxies wrote it; earlier addresses may be invented.
func (p *Proxies) Caller(r *http.Request) netip.Addr {
	at := addressOf(r.RemoteAddr)
	list := strings.Split(strings.Join(r.Header[p.Header], ","), ",")
	for _, text := range slices.Backward(list) {
		next := addressOf(strings.TrimSpace(text))
		if !p.trusts(at) || !next.IsValid() {
			break
		}
		at = next
	}
	return at
}

// addressOf reads an address with or without a port. The address of another text is not valid.
func addressOf(text string) netip.Addr {
	for _, with := range []string{text, text + ":0"} { // [2001:db8::1] needs a port
		if at, err := netip.ParseAddrPort(with); err == nil {
			return at.Addr().Unmap().WithZone("")
		}
	}
	at, _ := netip.ParseAddr(text)
	return at.Unmap().WithZone("")
}

// NetworkOf returns the address itself, or for IPv6 the network of one customer.
func NetworkOf(a netip.Addr) netip.Prefix {
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	network, _ := a.Prefix(bits) // fails for the invalid address, which yields the invalid network
	return network
}
