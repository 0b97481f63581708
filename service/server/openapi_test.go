package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/personalizer"
)

// openAPI is the part of the document under test.
type openAPI struct {
	OpenAPI string `json:"openapi"`
	Paths   map[string]map[string]struct {
		RequestBody struct {
			Content map[string]struct {
				Schema  jsontext.Value
				Example jsontext.Value
			}
		} `json:"requestBody"`
		Responses map[string]struct {
			Content map[string]struct {
				Schema struct {
					Ref string `json:"$ref"`
				}
			}
		}
	} `json:"paths"`
	Components struct {
		Schemas map[string]struct {
			Properties map[string]jsontext.Value
			Required   []string
		}
	} `json:"components"`
}

func documentOf(s *service) (d openAPI) {
	s.Helper()
	fatal.If(s, json.Unmarshal([]byte(s.want(200, "GET", "/openapi.json", "").body), &d,
		json.MatchCaseInsensitiveNames(true)))
	return d
}

// The document covers every route, and requests and answers follow it: its examples work, and their answers match their
// schemas.
func TestDocumentIsTrue(t *testing.T) {
	s := started(t, nil)
	d := documentOf(s)
	expect.Equal(t, d.OpenAPI, "3.1.0", "OpenAPI")
	for _, want := range []string{
		"put /v1/placements/{name}", "get /v1/placements/{name}", "delete /v1/placements/{name}", "get /v1/placements",
		"post /v1/placements/{name}/decisions",
		"get /v1/placements/{name}/stats", "get /v1/events", "post /v1/placements/{name}/rollback",
		"post /v1/placements/{name}/decisions/{id}/outcome", "post /v1/placements/{name}/decisions/{id}/rewards",
		"get /v1/placements/{name}/decisions/{id}", "post /v1/placements/{name}/decisions/{id}/activate",
	} {
		method, path, _ := strings.Cut(want, " ")
		if _, ok := d.Paths[path][method]; !ok {
			t.Errorf("%s is missing", want)
		}
	}
	for _, r := range s.Routes() {
		if _, ok := d.Paths[r.Path][strings.ToLower(r.Method)]; ok != (strings.HasPrefix(r.Path, "/v1/") ||
			r.Personalizer) {
			t.Errorf("%s %s is in the document: %v", r.Method, r.Path, ok)
		}
	}
	ask := func(status, method, path string) {
		t.Helper()
		op := d.Paths[path][strings.ToLower(method)]
		where := strings.NewReplacer("{name}", "home", "{id}", "abc", "{version}", "v1.1-preview.3", "{event}",
			map[bool]string{false: "abc", true: "def"}[strings.Contains(path, "multislot")]).Replace(path)
		a := s.ask(method, where, string(op.RequestBody.Content["application/json"].Example))
		response, ok := op.Responses[status]
		if !ok || status != string([]byte{byte('0' + a.status/100), byte('0' + a.status/10%10),
			byte('0' + a.status%10)}) {
			t.Fatalf("%s %s: %d %s, want the documented %s", method, path, a.status, a.body, status)
		}
		if a.status == 204 {
			return
		}
		content, ok := response.Content[a.header.Get("Content-Type")]
		if !ok {
			t.Errorf("%s %s: the type %q is not documented", method, path, a.header.Get("Content-Type"))
		}
		schema, ok := d.Components.Schemas[strings.TrimPrefix(content.Schema.Ref, "#/components/schemas/")]
		if !ok {
			t.Fatalf("%s %s: no schema %q", method, path, content.Schema.Ref)
		}
		var got map[string]any
		fatal.If(t, json.Unmarshal([]byte(a.body), &got))
		for _, name := range schema.Required {
			if _, ok := got[name]; !ok {
				t.Errorf("%s %s: %q is required and not in %s", method, path, name, a.body)
			}
		}
		for name := range got {
			if _, ok := schema.Properties[name]; !ok {
				t.Errorf("%s %s: %q is not documented", method, path, name)
			}
		}
	}
	ask("404", "GET", "/v1/placements/{name}")
	ask("201", "PUT", "/v1/placements/{name}")
	ask("200", "PUT", "/v1/placements/{name}")
	ask("200", "GET", "/v1/placements/{name}")
	ask("200", "GET", "/v1/placements")
	ask("201", "POST", "/v1/placements/{name}/decisions")
	ask("200", "POST", "/v1/placements/{name}/decisions")
	if a := s.ask("POST", "/v1/placements/home/decisions/abc/outcome", `{"choice":"sku1"}`); a.status != 204 &&
		a.status != 422 {
		t.Errorf("the outcome: %d %s", a.status, a.body)
	}
	ask("200", "GET", "/v1/placements/{name}/decisions/{id}")
	ask("204", "POST", "/v1/placements/{name}/decisions/{id}/activate")
	ask("200", "GET", "/v1/placements/{name}/stats")
	ask("404", "POST", "/v1/placements/{name}/rollback")
	if _, ok := d.Paths["/v1/placements/{name}/rollback"]["post"].Responses["409"]; !ok {
		t.Error("the 409 of a rollback during a relearning is missing")
	}
	s.want(201, "PUT", "/v1/placements/view", strings.Replace(s.want(200, "GET",
		"/v1/placements/home", "").body, "{", `{"catalogue_of":"home",`, 1))
	ask("422", "DELETE", "/v1/placements/{name}")
	s.want(204, "DELETE", "/v1/placements/view", "")
	ask("204", "DELETE", "/v1/placements/{name}")
	ask("404", "POST", "/v1/placements/{name}/personalizer/{version}/rank")
	for _, at := range []string{"", "/v1/placements/{name}"} {
		if at != "" {
			s.want(201, "PUT", "/v1/placements/home", s.want(200, "GET", "/v1/placements/personalizer", "").body)
		}
		for _, slots := range []string{"", "/multislot"} {
			ask("201", "POST", at+"/personalizer/{version}"+slots+"/rank")
			ask("204", "POST", at+"/personalizer/{version}"+slots+"/events/{event}/activate")
			ask("204", "POST", at+"/personalizer/{version}"+slots+"/events/{event}/reward")
		}
	}
}

// Generators can use the document: no member is a string of bytes, lists are never null, null occurs only with a
// meaning, members lack defaults, which openapi-typescript would require in requests, no schema is called Request, a
// type of every client of ogen, and entries are not negative.
func TestDocumentForGenerators(t *testing.T) {
	s := started(t, nil)
	text := s.want(200, "GET", "/openapi.json", "").body
	if strings.Contains(text, "base64") {
		t.Error("a member is bytes")
	}
	var d struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name   string
				Schema struct {
					Type    string
					Minimum *float64
				}
			}
		}
		Components struct {
			Schemas map[string]struct {
				AdditionalProperties *bool
				Properties           map[string]struct {
					Type    any
					Ref     string `json:"$ref"`
					Default any
				}
			}
		}
	}
	fatal.If(t, json.Unmarshal([]byte(text), &d, json.MatchCaseInsensitiveNames(true)))
	var nullable []string
	for name, schema := range d.Components.Schemas {
		for member, p := range schema.Properties {
			if types, ok := p.Type.([]any); ok {
				nullable = append(nullable, fmt.Sprint(name, ".", member, " ", types))
			}
			if p.Default != nil {
				t.Errorf("%s.%s has a default", name, member)
			}
		}
	}
	slices.Sort(nullable)
	want := []string{
		"Answer.expected_revenue [number null]", "Answer.outside_probability [number null]", "Answer.propensity " +
			"[number null]",
		"CatalogueItem.valid_from [string null]", "CatalogueItem.valid_until [string null]",
		"Decision.choice [string null]", "Decision.expected_revenue [number null]", "Decision.outside_probability " +
			"[number null]", "Decision.propensity [number null]", "EffectPoint.sd [number null]",
		"Explained.choice_probability [number null]", "Explained.index [number null]",
		"Explained.sd [number null]", "Explained.utility [number null]", "ItemInsight.sd [number null]",
		"ItemInsight.solo_revenue [number null]", "ItemInsight.utility [number null]",
		"Outcome.choice [string null]", "Outcome.choices [array null]", "OverviewEntry.mean_revenue [number null]",
		"OverviewEntry.standard_error [number null]", "PageSlot.excludedActions [array null]",
		"PlannedGain.decisions [number null]", "PlannedGain.seconds [number null]",
		"Position.effect [number null]",
		"Rank.contextFeatures [array null]", "Rank.deferActivation [boolean null]", "Rank.eventId [string null]",
		"Rank.excludedActions [array null]",
		"Shown.choice_probability [number null]", "SlotsRank.contextFeatures [array null]",
		"SlotsRank.deferActivation [boolean null]", "SlotsRank.eventId [string null]",
	}
	expect.Equal(t, nullable, want, "what may be null")
	expect.Equal(t, d.Components.Schemas["PlacementEntry"].Properties["config"].Ref, "#/components/schemas/Placement",
		"the configuration of a placement in the list is")
	if strict := d.Components.Schemas["DecideRequest"].AdditionalProperties; strict == nil || *strict {
		t.Error("a request may have any members")
	}
	if _, ok := d.Components.Schemas["Request"]; ok {
		t.Error("a schema is named Request")
	}
	for path, methods := range d.Paths {
		for method, op := range methods {
			for _, p := range op.Parameters {
				isWhole := slices.Contains([]string{"entry", "from", "limit", "seconds", "points"}, p.Name)
				if (p.Schema.Type == "integer") != isWhole {
					t.Errorf("%s %s: %s is of the type %s", method, path, p.Name, p.Schema.Type)
				}
				if p.Name == "entry" && (p.Schema.Minimum == nil || *p.Schema.Minimum != 0) {
					t.Errorf("%s %s: the entry has no minimum of 0", method, path)
				}
			}
		}
	}
	if strict := d.Components.Schemas["Answer"].AdditionalProperties; strict != nil && !*strict {
		t.Error("an answer may have no more members: clients made from the document refuse those of a later service")
	}
}

// The document satisfies linters of OpenAPI, and names the versions of Personalizer.
func TestDocumentForLinters(t *testing.T) {
	s := started(t, nil)
	var d struct {
		Info    struct{ License struct{ Identifier string } }
		Servers []struct{ URL string }
		Tags    []struct{ Name string }
		Paths   map[string]map[string]struct {
			Tags       []string
			Summary    string
			Parameters []struct {
				Name   string
				Schema struct{ Enum []string }
			}
		}
	}
	fatal.If(t, json.Unmarshal([]byte(s.want(200, "GET", "/openapi.json", "").body), &d,
		json.MatchCaseInsensitiveNames(true)))
	if d.Info.License.Identifier != "Apache-2.0" || len(d.Servers) != 1 || d.Servers[0].URL != "/" {
		t.Errorf("license %+v, servers %+v", d.Info.License, d.Servers)
	}
	used := map[string]int{}
	for path, methods := range d.Paths {
		for method, op := range methods {
			if len(op.Tags) != 1 || op.Summary == "" {
				t.Errorf("%s %s: tags %q, summary %q", method, path, op.Tags, op.Summary)
				continue
			}
			used[op.Tags[0]]++
			expect.Equal(t, op.Tags[0] == "Personalizer", strings.Contains(path, "/personalizer/"), method, path,
				"has the tag", op.Tags[0])
			for _, p := range op.Parameters {
				if p.Name == "version" && !slices.Equal(p.Schema.Enum, personalizer.Versions) {
					t.Errorf("%s %s: versions %q", method, path, p.Schema.Enum)
				}
			}
		}
	}
	for _, tag := range d.Tags {
		if used[tag.Name] == 0 {
			t.Errorf("the tag %q has no operation", tag.Name)
		}
	}
	expect.Equal(t, len(used), len(d.Tags), "tags", used, "declared", d.Tags)
}
