package client

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"vitrine/service/api"
)

// problemOf reads an error answer. It may come from a proxy, which does not send problems.
func problemOf(status int, header http.Header, body []byte) *api.Problem {
	p := &api.Problem{Title: http.StatusText(status), Status: status, RequestID: header.Get("X-Request-Id")}
	if mediaType(header) != "application/problem+json" {
		p.Detail = "not an answer of the service"
		return p
	}
	read := *p
	if err := json.Unmarshal(body, &read); err != nil {
		p.Detail = "a problem that cannot be read"
		return p
	}
	read.Status = status
	return &read
}
