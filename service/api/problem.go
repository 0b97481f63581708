package api

import "strings"

// Problem is an error as its caller sees it, in application/problem+json (RFC 9457).
type Problem struct {
	Type      string         `json:"type" doc:"what kind of problem it is" example:"urn:vitrine:problem:invalid"`
	Title     string         `json:"title" doc:"the status in words"`
	Status    int            `json:"status"`
	Detail    string         `json:"detail" doc:"what is wrong, and what to do"`
	Errors    []ProblemField `json:"errors,omitempty" doc:"the field that is wrong"`
	RequestID string         `json:"request_id" doc:"what the log of the service calls the request"`
}

// ProblemField says what is wrong with a field of a body.
type ProblemField struct {
	Pointer string `json:"pointer" doc:"a JSON pointer in the body" example:"#/items/3/id"`
	Detail  string `json:"detail"`
}

// ProblemType is what the types of the service's own problems begin with.
const ProblemType = "urn:vitrine:problem:"

// Kind is what tells problems apart: "conflict", "late", "not-found", …. That of a problem which something other than
// the service answered is its whole Type.
func (p *Problem) Kind() string { return strings.TrimPrefix(p.Type, ProblemType) }

// Pointer returns where in the body the problem is; "" if nowhere in particular.
func (p *Problem) Pointer() string {
	if len(p.Errors) == 0 {
		return ""
	}
	return p.Errors[0].Pointer
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
