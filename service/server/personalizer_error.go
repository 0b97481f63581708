package server

import (
	"net/http"
	"strconv"
	"strings"

	"vitrine/service/api"
)

// errorDocument is an error in the shape of that service.
type errorDocument struct {
	Error personalizerError `json:"error"`
}

type personalizerError struct {
	Code    string              `json:"code" doc:"one of the codes of that service, or the status where its gateway answered"`
	Message string              `json:"message"`
	Target  string              `json:"target,omitempty" doc:"a JSON pointer in the body"`
	Details []personalizerError `json:"details,omitempty"`
	Inner   *innerError         `json:"innerError,omitempty"`
}

type innerError struct {
	Code string `json:"code" doc:"the kind of the problem in the service's own words"`
}

// personalizerCodes are statuses and codes of problems, by their kind. The code "" is the
// status: that is what the gateway before that service answered with.
var personalizerCodes = map[string]struct {
	status int
	code   string
}{
	"malformed": {http.StatusBadRequest, "BadRequest"},
	"body":      {http.StatusBadRequest, "BadRequest"},
	"too-large": {http.StatusRequestEntityTooLarge, "PayloadSizeExceeded"},
	"not-found": {http.StatusNotFound, "ResourceNotFound"},
	"policy":    {http.StatusInternalServerError, "ModelRankingError"},
	"internal":  {http.StatusInternalServerError, "InternalServerError"},
}

// asPersonalizer returns the status and the body of a problem on a route whose
// invalid requests have the given code.
func (p *problem) asPersonalizer(invalid string) (status int, body errorDocument) {
	kind := strings.TrimPrefix(p.Type, api.ProblemType)
	e := personalizerError{Message: p.Detail, Inner: &innerError{kind}}
	status = p.Status
	known, ok := personalizerCodes[kind]
	switch {
	case kind == "not-found" && invalid == "InvalidEventIdToActivate",
		kind == "invalid", kind == "conflict", kind == "not-shown", kind == "late", kind == "evicted":
		status, e.Code = http.StatusBadRequest, invalid
	case ok:
		status, e.Code = known.status, known.code
	default:
		e.Code = strconv.Itoa(status)
	}
	for _, field := range p.Errors {
		e.Target = inRank(strings.TrimPrefix(field.Pointer, "#"))
		e.Message = strings.TrimPrefix(e.Target+": "+field.Detail, ": ")
		if e.Target != "" {
			e.Details = append(e.Details, personalizerError{Code: e.Code, Message: field.Detail, Target: e.Target})
		}
	}
	return status, errorDocument{e}
}

// inRank returns what is called so in a request of the engine as it is called in a Rank.
func inRank(pointer string) string {
	for _, c := range [][2]string{{"/items", "/actions"}, {"/user", "/contextFeatures"}, {"/baseline", "/slots"}} {
		if rest, ok := strings.CutPrefix(pointer, c[0]); ok {
			return c[1] + rest
		}
	}
	return pointer
}
