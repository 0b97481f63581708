package server

import (
	_ "embed"
	"net/http"
)

// The pages load nothing from other servers.
var (
	//go:embed page.html
	frontPage []byte // the counters of the placements
	//go:embed docs.html
	docsPage []byte // the OpenAPI document as a page
)

func page(text []byte) func(*call) error {
	return func(c *call) error {
		c.w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'")
		return c.answer(http.StatusOK, "text/html; charset=utf-8", text)
	}
}
