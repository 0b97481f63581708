package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"vitrine/service/decision"
)

// The documents are what bodies look like. Those of requests are read by
// the engine, which is stricter than a schema can be.

type placementDocument struct {
	MaxSize           int               `json:"max_size" minimum:"1" doc:"the most items that are shown"`
	MaxItems          int               `json:"max_items,omitempty" default:"1000" doc:"the most items of a request"`
	Features          []featureDocument `json:"features"`
	AtMost            []limitDocument   `json:"at_most,omitempty" doc:"how many items of each value of a category are shown"`
	Policy            map[string]any    `json:"policy" doc:"name, and its parameters: see vitrine list policies"`
	Rounds            int               `json:"rounds,omitempty" default:"100000" doc:"the horizon, for policies that have one"`
	Seed              uint64            `json:"seed,omitempty"`
	AttributionWindow string            `json:"attribution_window,omitempty" default:"30m" doc:"how long an outcome is waited for"`
	Mode              string            `json:"mode,omitempty" enum:"learn,shadow,explore" default:"learn"`
	ExploreShare      float64           `json:"explore_share,omitempty" doc:"in the mode explore, the share of uniformly drawn sets; 0.05 where it is left out"`
	Record            string            `json:"record,omitempty" enum:"shown,all" doc:"which items' features the log keeps"`
	Memory            int               `json:"memory,omitempty" default:"67108864" doc:"the most bytes of remembered decisions"`
	Keep              int               `json:"keep,omitempty" default:"8" doc:"how many versions there are to roll back to"`
}

type featureDocument struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind" enum:"number,category,text,object,cross"`
	From    string   `json:"from,omitempty" enum:"item,user" default:"item"`
	Center  float64  `json:"center,omitempty"`
	Scale   float64  `json:"scale,omitempty" default:"1"`
	Min     *float64 `json:"min,omitempty" doc:"of a number: what is less counts as this; center − 10 scale where a center or a scale is given"`
	Max     *float64 `json:"max,omitempty" doc:"of a number: what is more counts as this; center + 10 scale where a center or a scale is given"`
	Values  []string `json:"values,omitempty" doc:"of a category that is not hashed"`
	Other   bool     `json:"other,omitempty" doc:"whether a category may have other values too"`
	Buckets int      `json:"buckets,omitempty" doc:"columns of a hashed category, a text or an object"`
	Of      []string `json:"of,omitempty" doc:"the two features of a cross"`
	Default any      `json:"default,omitempty" doc:"what a missing value stands for"`
}

type limitDocument struct {
	Items   []string `json:"items,omitempty" doc:"ids, in a request alone"`
	Feature string   `json:"feature,omitempty" doc:"a category"`
	Most    int      `json:"most"`
}

type requestDocument struct {
	Decision string          `json:"decision_id,omitempty" maxLength:"128" doc:"the idempotency key: one is made where it is left out"`
	Items    []itemDocument  `json:"items" minItems:"1"`
	User     map[string]any  `json:"user,omitempty" doc:"features of the user, by name"`
	Size     int             `json:"size,omitempty" minimum:"1"`
	Include  []string        `json:"include,omitempty" doc:"ids of items that are shown"`
	Exclude  []string        `json:"exclude,omitempty" doc:"and that are not"`
	AtMost   []limitDocument `json:"at_most,omitempty"`
	Baseline []string        `json:"baseline,omitempty" doc:"what is shown in the mode shadow, in display order"`
	Defer    bool            `json:"defer,omitempty" doc:"whether the outcome is waited for only once the decision is activated"`
}

type itemDocument struct {
	ID       string         `json:"id" maxLength:"200"`
	Features map[string]any `json:"features,omitempty" doc:"numbers, strings and objects by the features' names"`
	Revenue  float64        `json:"revenue,omitempty" minimum:"0" default:"1"`
}

type answerDocument struct {
	Decision      string          `json:"decision_id"`
	Assortment    []shownDocument `json:"assortment" doc:"in display order"`
	Outside       *float64        `json:"outside_probability" doc:"null where the policy has no estimate"`
	Revenue       *float64        `json:"expected_revenue" doc:"null where the policy has no estimate"`
	Propensity    *float64        `json:"propensity" doc:"of the set; null where it has no closed form"`
	PolicyVersion uint64          `json:"policy_version" doc:"the last entry of the log that the policy had learned from"`
}

type shownDocument struct {
	ID          string   `json:"id"`
	Position    int      `json:"position" minimum:"1"`
	Probability *float64 `json:"choice_probability" doc:"null where the policy has no estimate"`
}

type decisionDocument struct {
	Decision      string          `json:"decision_id"`
	Placement     string          `json:"placement"`
	Assortment    []shownDocument `json:"assortment"`
	Outside       *float64        `json:"outside_probability"`
	Revenue       *float64        `json:"expected_revenue"`
	Propensity    *float64        `json:"propensity"`
	PolicyVersion uint64          `json:"policy_version"`
	By            string          `json:"by" enum:"policy,chance,baseline" doc:"how the set was found"`
	Time          string          `json:"time" format:"date-time"`
	Status        string          `json:"status" enum:"open,chosen,expired,deferred,withdrawn,evicted"`
	Choice        *string         `json:"choice" doc:"the item that was taken, null for none"`
}

type statsDocument = decision.Stats

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// document makes the OpenAPI document of the routes.
func document(routes []route, version string) []byte {
	registry := huma.NewMapRegistry("#/components/schemas/", func(t reflect.Type, hint string) string {
		return strings.TrimSuffix(huma.DefaultSchemaNamer(t, hint), "Document")
	})
	api := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Vitrine", Version: version,
			Description: "Decides what to show, is told what became of it, and learns. Errors are problem details (RFC 9457).",
		},
		Components: &huma.Components{
			Schemas: registry,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"subscription": {Type: "apiKey", In: "header", Name: subscriptionKey, Description: "An API key, on the routes of Personalizer."},
				"key":          {Type: "http", Scheme: "bearer", Description: "An API key. One that is limited to placements has 404 as the answer about others, whether they are there or not, and 403 about the whole service. On loopback without configured keys none is asked for."},
			},
		},
	}
	for i := range routes {
		if routes[i].id != "" {
			api.AddOperation(operation(&routes[i], registry))
		}
	}
	text, err := json.MarshalIndent(api, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("server: the OpenAPI document does not marshal: %v", err))
	}
	return text
}

func operation(rt *route, registry huma.Registry) *huma.Operation {
	op := &huma.Operation{
		Method: rt.method, Path: rt.path, OperationID: rt.id, Summary: rt.summary, Responses: map[string]*huma.Response{},
		Description: fmt.Sprintf("Needs the scope `%s`.", rt.scope),
		Security:    []map[string][]string{{"key": {string(rt.scope)}}},
	}
	text := &huma.Schema{Type: huma.TypeString}
	for _, m := range pathParameter.FindAllStringSubmatch(rt.path, -1) {
		op.Parameters = append(op.Parameters, &huma.Param{Name: m[1], In: "path", Required: true, Schema: text})
	}
	for _, q := range rt.query {
		op.Parameters = append(op.Parameters, &huma.Param{Name: q.name, In: "query", Description: q.doc, Schema: text})
	}
	if rt.body != nil {
		op.RequestBody = &huma.RequestBody{Required: true, Content: contents(rt.body, registry)}
	}
	for status, body := range rt.answers {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: contents(body, registry)}
	}
	problem := contents([]content{{"application/problem+json", reflect.TypeFor[Problem](), ""}}, registry)
	if rt.invalid != "" {
		problem = contents([]content{jsonOf[errorDocument]("")}, registry)
		op.Security = append(op.Security, map[string][]string{"subscription": {}})
	}
	for _, status := range append(slices.Clone(rt.errors), 401, 403, 429, 503) {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: problem}
	}
	return op
}

func contents(list []content, registry huma.Registry) map[string]*huma.MediaType {
	types := map[string]*huma.MediaType{}
	for _, c := range list {
		m := &huma.MediaType{}
		switch {
		case c.of != nil:
			m.Schema = registry.Schema(c.of, true, c.of.Name())
		case c.mediaType == asBinary:
			m.Schema = &huma.Schema{Type: huma.TypeString, Format: "binary", Description: "a message of service/server/proto/decision.proto"}
		default:
			m.Schema = &huma.Schema{Type: huma.TypeString}
		}
		if c.example != "" {
			m.Example = json.RawMessage(c.example)
		}
		types[c.mediaType] = m
	}
	return types
}

func (s *Server) openAPI(c *call) error { return c.answer(http.StatusOK, asJSON, s.document) }
