package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
	"vitrine/service/personalizer"
)

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// A list is never null.
func init() { huma.DefaultArrayNullable = false }

// document makes the OpenAPI document of the routes.
func document(routes []*route, version string) []byte {
	registry := huma.NewMapRegistry("#/components/schemas/", func(t reflect.Type, hint string) string {
		if t == reflect.TypeFor[api.Request]() {
			return "DecideRequest" // ogen defines a Request itself
		}
		return strings.TrimSuffix(huma.DefaultSchemaNamer(t, hint), "Document")
	})
	registry.RegisterTypeAlias(reflect.TypeFor[api.Values](), reflect.TypeFor[map[string]any]())
	registry.RegisterTypeAlias(reflect.TypeFor[jsontext.Value](), reflect.TypeFor[any]())
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Vitrine", Version: version,
			Description: "Decides which items to show, and learns from the outcomes that are reported. Errors are " +
				"problem details (RFC 9457). What may be null has the type null beside its own; everything else " +
				"is left out if it is not there. Unknown keys in a query or a body are errors. Leave out lists that " +
				"you do not set: an empty list of candidates is an error, and an empty baseline means an empty page.",
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*huma.Server{{URL: "/", Description: "The service that the document is from."}},
		Tags: []*huma.Tag{
			{Name: tagPlacements, Description: "Where assortments are shown, and what their learners have learned."},
			{Name: tagDecisions, Description: "What to show, and what became of it."},
			{Name: tagKeys, Description: "Who asks: the keys, and the sessions of the desk."},
			{Name: tagPersonalizer, Description: "The contract of Azure Personalizer: docs/personalizer.md."},
		},
		Components: &huma.Components{
			Schemas: registry,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"subscription": {Type: "apiKey", In: "header", Name: personalizer.KeyHeader, Description: "An API key, on the routes of Personalizer."},
				"key": {Type: "http", Scheme: "bearer", Description: "An API key. A key that is limited " +
					"to placements gets 404 for other placements, whether they exist or not, and 403 for what " +
					"concerns the whole service. A service without configured keys listens only on loopback and " +
					"needs none."},
			},
		},
	}
	for _, rt := range routes {
		contents(rt.body, registry)
	}
	asked := maps.Clone(registry.Map())
	registry.Schema(reflect.TypeFor[api.Event](), true, "") // it is no route's body
	for _, rt := range routes {
		if rt.id != "" {
			doc.AddOperation(rt.describe(registry))
		}
	}
	for name, schema := range registry.Map() {
		if asked[name] == nil { // a later version's answer may contain more members
			schema.AdditionalProperties = nil
		}
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("server: the OpenAPI document does not marshal: %v", err))
	}
	return text
}

// operation describes what a route does.
type operation struct {
	id, summary    string
	query, headers []parameter
	body           []content
	answers        map[int][]content // by status; nil is an empty body
	errors         []int             // statuses, except those that follow from the rest
}

// parameter is a parameter of a query, or a header.
type parameter struct{ name, doc string }

// content is a body in one media type.
type content struct {
	mediaType string
	of        any    // a value of its Go type, or nil
	example   string // JSON
}

func op(id, summary string) *operation {
	return &operation{id: id, summary: summary, answers: map[int][]content{}}
}

func (o *operation) with(query ...parameter) *operation    { o.query = query; return o }
func (o *operation) under(headers ...parameter) *operation { o.headers = headers; return o }
func (o *operation) fails(statuses ...int) *operation      { o.errors = statuses; return o }

// takes adds a body of JSON, like the value.
func (o *operation) takes(of any, example string) *operation {
	o.body = append(o.body, content{asJSON, of, example})
	return o
}

// takesLines adds a body of a line of JSON for each item.
func (o *operation) takesLines() *operation {
	o.body = append(o.body, content{mediaType: asLines})
	return o
}

// gives adds an answer: JSON like the value, a content, or an empty one.
func (o *operation) gives(status int, of any) *operation {
	switch of := of.(type) {
	case nil:
		o.answers[status] = nil
	case content:
		o.answers[status] = []content{of}
	default:
		o.answers[status] = []content{{asJSON, of, ""}}
	}
	return o
}

// operationOf describes a route of Personalizer's contract.
func operationOf(of *personalizer.Route) *operation {
	o := op(of.ID, of.Summary).gives(of.Status, of.Answer)
	if of.Body != nil {
		return o.takes(of.Body, of.Example)
	}
	if of.Invalid != "" {
		return o.fails(400)
	}
	return o
}

// refusals returns the statuses of the problems that a call may get.
func (rt *route) refusals() []int {
	all := append(slices.Clone(rt.errors), 401, 403, 429, 500, 503)
	if rt.contract != nil || strings.Contains(rt.path, "{name}") || strings.Contains(rt.path, "{id}") {
		all = append(all, 404)
	}
	if rt.body != nil {
		all = append(all, 400, 408, 413)
		if rt.scope != "" {
			all = append(all, 415)
		}
		if rt.scope != "" && rt.contract == nil {
			all = append(all, 422)
		}
	}
	if rt.headers != nil || rt.contract == nil {
		all = append(all, 400)
	}
	if slices.Contains(rt.headers, ifMatch) {
		all = append(all, 412)
	}
	if rt.reads {
		all = append(all, 422)
	}
	return all
}

// The tags of operations.
const (
	tagPlacements   = "Placements"
	tagDecisions    = "Decisions"
	tagKeys         = "Keys"
	tagPersonalizer = "Personalizer"
)

func tagOfRoute(rt *route) string {
	switch {
	case rt.contract != nil:
		return tagPersonalizer
	case rt.path == "/v1/session", rt.path == "/v1/keys":
		return tagKeys
	case strings.Contains(rt.path, "/decisions"), !rt.timed:
		return tagDecisions
	}
	return tagPlacements
}

func (rt *route) describe(registry huma.Registry) *huma.Operation {
	op := &huma.Operation{
		Method: rt.method, Path: rt.path, OperationID: rt.id, Tags: []string{tagOfRoute(rt)}, Summary: rt.summary,
		Responses:   map[string]*huma.Response{},
		Description: fmt.Sprintf("Needs the scope `%s`.", rt.scope),
		Security:    []map[string][]string{{"key": {string(rt.scope)}}},
	}
	if rt.scope == "" {
		op.Description, op.Security = "Needs no key.", []map[string][]string{}
	}
	text := &huma.Schema{Type: huma.TypeString}
	for _, m := range pathParameter.FindAllStringSubmatch(rt.path, -1) {
		parameter := &huma.Param{Name: m[1], In: "path", Required: true, Schema: text}
		if m[1] == "version" {
			parameter.Description = "The version of the contract. The last one may stand in the query instead, as " +
				"api-version, in a path without this step."
			parameter.Schema = &huma.Schema{Type: huma.TypeString}
			for _, v := range personalizer.Versions {
				parameter.Schema.Enum = append(parameter.Schema.Enum, v)
			}
		}
		op.Parameters = append(op.Parameters, parameter)
	}
	entry := &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: new(0.0)}
	for _, q := range rt.query {
		p := &huma.Param{Name: q.name, In: "query", Description: q.doc, Schema: text}
		switch q.name {
		case "from", "limit", "seconds", "points": // see whole
			p.Schema = &huma.Schema{Type: huma.TypeInteger, Minimum: new(0.0)}
		case "id": // see queried
			p.Schema = &huma.Schema{Type: huma.TypeArray, Items: text}
		}
		op.Parameters = append(op.Parameters, p)
	}
	if rt.reads {
		op.Parameters = append(op.Parameters, &huma.Param{Name: entryParameter.name, In: "query",
			Description: entryParameter.doc, Schema: entry})
	}
	for _, h := range rt.headers {
		op.Parameters = append(op.Parameters, &huma.Param{Name: h.name, In: "header", Description: h.doc, Schema: text})
	}
	if rt.body != nil {
		op.RequestBody = &huma.RequestBody{Required: true, Content: contents(rt.body, registry)}
	}
	for status, body := range rt.answers {
		response := &huma.Response{Description: http.StatusText(status), Content: contents(body, registry)}
		if rt.writes {
			response.Headers = map[string]*huma.Param{api.EntryHeader: {Description: "The last entry of the log " +
				"that the answering process knows. The change is in the log up to there.", Schema: entry}}
		}
		op.Responses[strconv.Itoa(status)] = response
	}
	problem := contents([]content{{"application/problem+json", api.Problem{}, ""}}, registry)
	if rt.contract != nil {
		problem = contents([]content{{asJSON, personalizer.ErrorDocument{}, ""}}, registry)
		op.Security = append(op.Security, map[string][]string{"subscription": {}})
	}
	for _, status := range rt.refusals() {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: problem}
	}
	return op
}

func contents(list []content, registry huma.Registry) map[string]*huma.MediaType {
	types := map[string]*huma.MediaType{}
	for _, c := range list {
		m := &huma.MediaType{}
		if c.of != nil {
			t := reflect.TypeOf(c.of)
			m.Schema = registry.Schema(t, true, t.Name())
		} else {
			m.Schema = &huma.Schema{Type: huma.TypeString}
		}
		if c.example != "" {
			m.Example = json.RawMessage(c.example)
		}
		types[c.mediaType] = m
	}
	return types
}
