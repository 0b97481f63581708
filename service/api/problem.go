package api

import (
	"cmp"
	"net/http"
	"strings"
)

// Problem is the body of an error answer, application/problem+json (RFC 9457).
type Problem struct {
	Type      string         `json:"type" doc:"the kind of the problem" example:"urn:vitrine:problem:invalid"`
	Title     string         `json:"title" doc:"the status in words"`
	Status    int            `json:"status"`
	Detail    string         `json:"detail" doc:"what is wrong, and what to do"`
	Errors    []ProblemField `json:"errors,omitempty" doc:"the fields that are wrong"`
	Lost      *Loss          `json:"lost,omitempty" doc:"of the problem loss: what the change would lose"`
	RequestID string         `json:"request_id" doc:"the id of the request in the service's output"`
}

// ProblemField describes an invalid field of a body.
type ProblemField struct {
	Pointer string `json:"pointer" doc:"a JSON pointer in the body, as a fragment of a URI" example:"#/items/3/id"`
	Detail  string `json:"detail"`
}

// ProblemType is the prefix of the types of the service's problems.
const ProblemType = "urn:vitrine:problem:"

// NewProblem returns a problem of a kind.
func NewProblem(status int, kind, detail string) *Problem {
	return &Problem{Type: ProblemType + kind, Title: http.StatusText(status), Status: status, Detail: detail}
}

// Kind returns the type without [ProblemType]: "conflict", "late", "not-found", …. A problem that
// something other than the service answered, such as a proxy, keeps its whole type.
func (p *Problem) Kind() string { return strings.TrimPrefix(p.Type, ProblemType) }

// Pointer returns the JSON pointer of the first invalid field, or "".
func (p *Problem) Pointer() string {
	if len(p.Errors) == 0 {
		return ""
	}
	return p.Errors[0].Pointer
}

// Error implements error.
func (p *Problem) Error() string {
	text := cmp.Or(p.Detail, "no reason was given")
	if p.Kind() == "" {
		return p.Title + ": " + text
	}
	return p.Kind() + ": " + text
}
