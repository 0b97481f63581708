package server_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"vitrine/service/decision"
	"vitrine/service/server"
)

// The answer to a change names its entry in the log, and the document says so. Reads and problems name none.
func TestEntryOfAChange(t *testing.T) {
	s := started(t, func(*server.Options, *decision.Options) {})
	const home = "/v1/placements/home"
	for _, c := range []struct{ method, path, body, entry string }{
		{"PUT", home, `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`, "1"},
		{"POST", home + "/decisions", `{"decision_id":"a","items":[{"id":"i","features":{"x":1}}]}`, "2"},
		{"POST", home + "/decisions", `{"decision_id":"b","items":[{"id":"i","features":{"x":1}}]}`, "3"},
		{"POST", home + "/decisions", `{"decision_id":"a","items":[{"id":"i","features":{"x":1}}]}`, "2"},
		{"POST", home + "/decisions", `{"decision_id":"a","items":[{"id":"j","features":{"x":1}}]}`, ""},
		{"POST", home + "/decisions/a/outcome", `{"choice":"i"}`, "4"},
		{"POST", home + "/decisions/a/outcome", `{"choice":"i"}`, "4"},
		{"GET", home + "/decisions/a", "", ""},
		{"PUT", home, `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"},"attribution_window":"1h"}`, "5"},
		{"DELETE", home, "", "6"},
	} {
		a := s.ask(c.method, c.path, c.body)
		if got := a.header.Get("Vitrine-Entry"); got != c.entry {
			t.Errorf("%s %s %s: %d, entry %q, want %q", c.method, c.path, c.body, a.status, got, c.entry)
		}
	}
	var document struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct{ Headers map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(s.ask("GET", "/openapi.json", "").body), &document, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for path, operations := range document.Paths {
		for method, operation := range operations {
			changes := method != "get" && path != "/v1/session" && path != "/v1/placements/{name}/try"
			for status, response := range operation.Responses {
				want := changes && strings.HasPrefix(status, "2")
				if has := response.Headers["Vitrine-Entry"] != nil; has != want {
					t.Errorf("%s %s: %s has the header: %v", method, path, status, has)
				}
				n++
			}
		}
	}
	if n < 50 {
		t.Errorf("%d answers in the document", n)
	}
}
