package personalizer

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Canonical returns a request in the routes' form. Clients differ in two ways:
//
//   - An endpoint that ends with a slash, as in that service's portal, gives a path with two.
//   - The newest version stands in the query, /personalizer/rank?api-version=2022-09-01-preview, and not in the path.
func Canonical(r *http.Request) *http.Request {
	path := r.URL.EscapedPath()
	prefix, rest, ok := split(path)
	if !ok {
		return r
	}
	if first, _, _ := strings.Cut(rest, "/"); !slices.Contains(Versions, first) {
		if v := r.URL.Query().Get("api-version"); slices.Contains(Versions, v) {
			rest = v + "/" + rest
		}
	}
	if prefix += rest; prefix == path {
		return r
	}
	at := *r.URL
	at.RawPath = prefix
	at.Path, _ = url.PathUnescape(prefix) // which was escaped well
	again := *r
	again.URL = &at
	return &again
}

// Owns reports whether a path is below Personalizer's.
func Owns(r *http.Request) bool {
	_, _, ok := split(r.URL.EscapedPath())
	return ok
}

// split cuts a path behind Personalizer's part of it, at the root or below a placement.
func split(path string) (prefix, rest string, ok bool) {
	const ours = "/personalizer/"
	if !strings.Contains(path, ours) { // as in most requests of a shop
		return "", "", false
	}
	if after, below := strings.CutPrefix(path, "/v1/placements/"); below {
		name, _, _ := strings.Cut(after, "/")
		prefix, path = path[:len(path)-len(after)]+name, after[len(name):]
	}
	if strings.HasPrefix(path, "/"+ours) {
		path = path[1:]
	}
	rest, ok = strings.CutPrefix(path, ours)
	return prefix + ours, rest, ok
}
