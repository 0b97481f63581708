package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// CheckOrigin returns an error unless origin is one in the form in which browsers send it, "https://shop.example" or
// "http://localhost:3000".
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || http.NewCrossOriginProtection().AddTrustedOrigin(origin) != nil ||
		u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Scheme+"://"+u.Host != origin ||
		strings.ToLower(origin) != origin || strings.Contains(u.Host, "*") {
		return fmt.Errorf("origin %q: must be of the form \"https://shop.example\" or \"http://localhost:3000\", in lower case, without a path or a wildcard", origin)
	}
	return nil
}

// Headers of requests that pages of other origins may send, and headers of answers that they may read.
const (
	corsRequest = "Authorization, Content-Encoding, Content-Type, If-Match, If-None-Match, Last-Event-ID, " +
		"Ocp-Apim-Subscription-Key, Traceparent, Tracestate, X-Ms-Client-Request-Id, X-Request-Id"
	corsAnswer = "Allow, ETag, Location, RateLimit, RateLimit-Policy, Retry-After, Traceparent, Vitrine-Entry, " +
		"WWW-Authenticate, X-Ms-Client-Request-Id, X-Request-Id"
	corsMaxAge = "600" // seconds that a browser may keep the answer to a preflight
)

// crossOrigin lets pages of the origins in the allow-list read the answer (the Fetch standard's CORS protocol). It
// sends no Access-Control-Allow-Credentials: pages send a key, and a session is only for our own pages.
func (s *Server) crossOrigin(c *call) {
	if len(s.options.Origins) == 0 {
		return
	}
	h := c.w.Header()
	h.Add("Vary", "Origin")
	if origin := c.Header.Get("Origin"); slices.Contains(s.options.Origins, origin) {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", corsAnswer)
	}
}

// preflight answers an OPTIONS request about a path with the given methods.
func (s *Server) preflight(c *call, allowed string) error {
	h := c.w.Header()
	h.Set("Allow", allowed)
	if h.Get("Access-Control-Allow-Origin") != "" && c.Header.Get("Access-Control-Request-Method") != "" {
		h.Del("Access-Control-Expose-Headers")
		h.Set("Access-Control-Allow-Methods", allowed)
		h.Set("Access-Control-Allow-Headers", corsRequest)
		h.Set("Access-Control-Max-Age", corsMaxAge)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
