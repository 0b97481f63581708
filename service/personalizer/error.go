package personalizer

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"vitrine/service/api"
)

// ErrorDocument is the body of an error.
type ErrorDocument struct {
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

const invalidActivate = "InvalidEventIdToActivate"

// codes maps kinds of problems to statuses and codes. The code of other problems is their status, as from that
// service's gateway.
var codes = map[string]struct {
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

// Error returns the status and the body of a problem on the route.
func (rt *Route) Error(p *api.Problem) (status int, body ErrorDocument) {
	kind := p.Kind()
	e := personalizerError{Message: p.Detail, Inner: &innerError{kind}}
	status = p.Status
	known, ok := codes[kind]
	switch {
	case kind == "not-found" && rt.Invalid == invalidActivate,
		kind == "invalid", kind == "conflict", kind == "not-shown", kind == "late", kind == "evicted":
		status, e.Code = http.StatusBadRequest, rt.Invalid
	case ok:
		status, e.Code = known.status, known.code
	default:
		e.Code = strconv.Itoa(status)
	}
	for _, field := range p.Errors {
		pointer, _ := url.PathUnescape(strings.TrimPrefix(field.Pointer, "#"))
		e.Target = inRank(pointer)
		e.Message = strings.TrimPrefix(e.Target+": "+field.Detail, ": ")
		if e.Target != "" {
			e.Details = append(e.Details, personalizerError{Code: e.Code, Message: field.Detail, Target: e.Target})
		}
	}
	return status, ErrorDocument{e}
}

// inRank translates a field of the engine's request into its name in a Rank. The objects of other members are the lists
// in the Rank.
func inRank(pointer string) string {
	pointer += "/"
	for _, c := range [][2]string{{"/items/", "/actions/"}, {"/shopper/" + RestOfContext + "/", "/contextFeatures/"},
		{"/shopper/", "/contextFeatures/"}, {"/baseline/", "/slots/"}} {
		if rest, ok := strings.CutPrefix(pointer, c[0]); ok {
			pointer = c[1] + strings.Replace(rest, "/features/"+RestOfActions+"/", "/features/", 1)
			break
		}
	}
	return strings.TrimSuffix(pointer, "/")
}
