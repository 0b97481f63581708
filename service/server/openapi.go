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
func document(routes []route, version string) []byte {
	registry := huma.NewMapRegistry("#/components/schemas/", func(t reflect.Type, hint string) string {
		if t == reflect.TypeFor[api.Request]() {
			return "DecideRequest" // ogen has a Request of its own
		}
		return strings.TrimSuffix(huma.DefaultSchemaNamer(t, hint), "Document")
	})
	registry.RegisterTypeAlias(reflect.TypeFor[api.Values](), reflect.TypeFor[map[string]any]())
	registry.RegisterTypeAlias(reflect.TypeFor[jsontext.Value](), reflect.TypeFor[any]())
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Vitrine", Version: version,
			Description: "Decides which items to show, and learns from the outcomes that are reported. Errors are problem details (RFC 9457). What may be null has the type null beside its own; everything else is left out if it is not there.",
			License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
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
				"key":          {Type: "http", Scheme: "bearer", Description: "An API key. A key that is limited to placements gets 404 for other placements, whether they exist or not, and 403 for what concerns the whole service. A service without configured keys listens only on loopback and needs none."},
			},
		},
	}
	for i := range routes {
		contents(routes[i].body, registry)
	}
	asked := maps.Clone(registry.Map())
	registry.Schema(reflect.TypeFor[api.Event](), true, "") // no route has it as its body
	for i := range routes {
		if routes[i].id != "" {
			doc.AddOperation(operation(&routes[i], registry))
		}
	}
	for name, schema := range registry.Map() {
		if asked[name] == nil { // an answer may have more members in a later version
			schema.AdditionalProperties = nil
		}
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("server: the OpenAPI document does not marshal: %v", err))
	}
	return text
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
	case strings.Contains(rt.path, "/decisions"), rt.stream:
		return tagDecisions
	}
	return tagPlacements
}

func operation(rt *route, registry huma.Registry) *huma.Operation {
	op := &huma.Operation{
		Method: rt.method, Path: rt.path, OperationID: rt.id, Tags: []string{tagOfRoute(rt)}, Summary: rt.summary, Responses: map[string]*huma.Response{},
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
			parameter.Description = "The version of the contract. The last one may stand in the query instead, as api-version, in a path without this step."
			parameter.Schema = &huma.Schema{Type: huma.TypeString}
			for _, v := range personalizer.Versions {
				parameter.Schema.Enum = append(parameter.Schema.Enum, v)
			}
		}
		op.Parameters = append(op.Parameters, parameter)
	}
	for _, q := range rt.query {
		op.Parameters = append(op.Parameters, &huma.Param{Name: q.name, In: "query", Description: q.doc, Schema: text})
	}
	entry := &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: new(0.0)}
	if rt.reads() {
		op.Parameters = append(op.Parameters, &huma.Param{Name: entryParameter.name, In: "query", Description: entryParameter.doc, Schema: entry})
	}
	for _, h := range rt.headers {
		op.Parameters = append(op.Parameters, &huma.Param{Name: h.name, In: "header", Description: h.doc, Schema: text})
	}
	if rt.body != nil {
		op.RequestBody = &huma.RequestBody{Required: true, Content: contents(rt.body, registry)}
	}
	for status, body := range rt.answers {
		response := &huma.Response{Description: http.StatusText(status), Content: contents(body, registry)}
		if rt.writes() {
			response.Headers = map[string]*huma.Param{entryHeader: {Description: "The entry of the log that has the change.", Schema: entry}}
		}
		op.Responses[strconv.Itoa(status)] = response
	}
	problem := contents([]content{{"application/problem+json", reflect.TypeFor[api.Problem](), ""}}, registry)
	if rt.contract != nil {
		problem = contents([]content{jsonOf[personalizer.ErrorDocument]("")}, registry)
		op.Security = append(op.Security, map[string][]string{"subscription": {}})
	}
	refusals := append(slices.Clone(rt.errors), 401, 403, 429, 503)
	if rt.reads() {
		refusals = append(refusals, 422)
	}
	for _, status := range refusals {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: problem}
	}
	return op
}

func contents(list []content, registry huma.Registry) map[string]*huma.MediaType {
	types := map[string]*huma.MediaType{}
	for _, c := range list {
		m := &huma.MediaType{}
		if c.of != nil {
			m.Schema = registry.Schema(c.of, true, c.of.Name())
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

func (s *Server) openAPI(c *call) error { return c.answer(http.StatusOK, asJSON, s.document) }
