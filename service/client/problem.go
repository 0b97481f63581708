package client

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Problem is an answer that refuses (RFC 9457).
type Problem struct {
	Type      string // "urn:vitrine:problem:conflict"; others, and "", are of something other than the service
	Title     string // the status in words
	Status    int
	Detail    string // what is wrong, and what to do
	Pointer   string // to the field that is wrong in the body, "#/items/3/id"; "" is none
	RequestID string // what the log of the service calls the request
}

const problemType = "urn:vitrine:problem:"

// Kind is what tells problems apart: "conflict", "late", "not-found", …. What something other
// than the service answered has its whole Type.
func (p *Problem) Kind() string {
	kind, _ := strings.CutPrefix(p.Type, problemType)
	return kind
}

// Error implements error.
func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = "no reason was given"
	}
	if p.Kind() == "" {
		return p.Title + ": " + text
	}
	return p.Kind() + ": " + text
}

// problemOf reads an answer that refuses, whoever gave it.
func problemOf(status int, header http.Header, body []byte) *Problem {
	p := &Problem{Title: http.StatusText(status), Status: status, RequestID: header.Get("X-Request-Id")}
	if mediaType(header) != "application/problem+json" {
		p.Detail = "not an answer of the service"
		return p
	}
	var told struct {
		Type      string `json:"type"`
		Title     string `json:"title"`
		Detail    string `json:"detail"`
		RequestID string `json:"request_id"`
		Errors    []struct {
			Pointer string `json:"pointer"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(body, &told); err != nil {
		p.Detail = "a problem that cannot be read"
		return p
	}
	p.Type, p.Title, p.Detail, p.RequestID = told.Type, told.Title, told.Detail, told.RequestID
	if len(told.Errors) > 0 {
		p.Pointer = told.Errors[0].Pointer
	}
	return p
}
