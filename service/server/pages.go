package server

import (
	_ "embed"
	"net/http"
)

// The pages ask this server alone, and load nothing from elsewhere.
var (
	//go:embed page.html
	frontPage []byte // the counters of the placements
	//go:embed docs.html
	docsPage []byte // the OpenAPI document, drawn
)

func page(text []byte) func(*call) error {
	return func(c *call) error {
		c.w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'")
		return c.answer(http.StatusOK, "text/html; charset=utf-8", text)
	}
}
