package server

import (
	"net/http"
	"strconv"
	"strings"

	"vitrine/service/keys"
)

// idOf returns the id of a request: the caller's X-Request-Id, or else one of the service's own.
func (s *Server) idOf(r *http.Request) string {
	if id := callersID(r.Header, "X-Request-Id"); id != "" {
		return id
	}
	return s.process + "-" + strconv.FormatUint(s.asked.Add(1), 10)
}

// callersID returns the request id in a header, or "" unless it may be logged and answered: at most 128 letters, digits
// and characters of "._:~/+=@-". A token, which may have slipped into the wrong header, does not qualify.
func callersID(h http.Header, name string) string {
	values := h[name]
	if len(values) != 1 || len(values[0]) > maxID || strings.Contains(values[0], keys.TokenPrefix) {
		return ""
	}
	for _, c := range []byte(values[0]) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("._:~/+=@-", c) >= 0) {
			return ""
		}
	}
	return values[0]
}

const maxID = 128 // bytes of a caller's id
