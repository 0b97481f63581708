package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"vitrine/service/engine"
	"vitrine/service/server"
	"vitrine/service/shoppers"
)

// goSyntax matches text that only readers of Go understand.
var goSyntax = regexp.MustCompile(`\[\\?"|%!|\bGo\b|struct\b|\[\]|map\[|strconv|json:|invalid syntax|interface \{|<nil>|\bnil\b|float64|uint64|jsontext`)

// Wrong requests are answered in words of the field, and name the right word if the wrong one is close to it.
func TestErrorsAreReadable(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", home)
	const (
		put    = "/v1/placements/new"
		decide = "/v1/placements/home/decisions"
		put1   = `{"max_size":1,"features":[{"name":"x","kind":"number"}]`
	)
	for _, c := range []struct{ method, path, body, says string }{
		{"PUT", put, `{"max_sise":1}`, `did you mean \"max_size\"?`},
		{"PUT", put, `{"colour":1}`, `must be one of max_size, min_size, max_request_items, `},
		{"PUT", put, `{"max_size":"1"}`, `wrong type: have a string, want a whole number`},
		{"PUT", put, `{"max_size":2.0}`, `must be a whole number, in digits only`},
		{"PUT", put, `{"max_size":1e30}`, `must be a whole number`},
		{"PUT", put, `{"max_size":[1]}`, `have a list, want a whole number`},
		{"PUT", put, `{"max_size":1,"features":{}}`, `have an object, want a list`},
		{"PUT", put, `{"max_size":1,"features":[{"name":"x","kind":"numbr"}]}`, `did you mean \"number\"?`},
		{"PUT", put, `{"max_size":1,"features":[{"name":"x"}]}`,
			`/features/0/kind: is missing: must be one of number, category`},
		{"PUT", put, put1 + `,"mode":"lern"}`, `did you mean \"learn\"?`},
		{"PUT", put, put1 + `,"mode":"banana"}`, `must be one of learn, shadow, explore, experiment`},
		{"PUT", put, put1 + `,"fallback":"versoin"}`, `did you mean \"version\"?`},
		{"PUT", put, put1 + `,"policy":{"name":"onl-mln"}}`, `did you mean \"onl-mnl\"?`},
		{"PUT", put, put1 + `,"policy":{"name":"onl-mnl","lamda":3}}`, `did you mean \"lambda\"?`},
		{"PUT", put, put1 + `,"policy":{"name":"onl-mnl","lambda":"3"}}`, ``},
		{"PUT", put, put1 + `,"policy":"onl-mnl"}`, ``},
		{"PUT", put, put1 + `,"attribution_window":"soon"}`, ``},
		{"PUT", put, put1 + `,"attribution_window":30}`, `have a number, want a string`},
		{"PUT", put, put1 + `,"seed":-1}`, `must be a whole number`},
		{"PUT", put, put1 + `,"explore_share":"half"}`, `have a string, want a number`},
		{"PUT", put, put1 + `,"mode":"experiment","experiment":{"name":"e","shopper_id":"u","variants":[{"name":"a","share":1}],"control":"b"}}`, ``},
		{"PUT", put, `[]`, `have a list, want an object`},
		{"PUT", put, `null`, ``},
		{"PUT", put, `{"max_size":1,`, `the JSON ends early`},
		{"PUT", put, `{'max_size':1}`, `not JSON`},
		{"POST", "/v1/placements/home/versions", `{"note":"` + strings.Repeat("é", 1000) + `"}`, `must have at most 500 bytes`},
		{"POST", decide, strings.Repeat("[", 20000), `nested more than 10000 deep`},
		{"POST", decide, `{"items":[{"id":"a","features":{"% é/":1}}]}`, `"pointer":"#/items/0/features/%25%20%C3%A9~1"`},
		{"POST", decide, `{"items":[{"id":"a","features":{"` + strings.Repeat("é", 400) + `":1}}]}`, `%C3%A9%E2%80%A6%C3%A9`},
		{"POST", decide, `{"items":[{"id":"a","features":{"y\nvitrine: hint: z":1}}]}`, `y\n  vitrine: hint: z`}, // a line apart
		{"POST", decide, `{"itms":[]}`, `did you mean \"items\"?`},
		{"POST", decide, `{"items":[{"id":"a","feature":{}}]}`, `did you mean \"features\"?`},
		{"POST", decide, `{"items":[{"id":"a","features":{"price":1,"brnd":"acme"}}]}`, ``},
		{"POST", decide, `{"items":[{"id":"a","features":{"price":"1","brand":"acme"}}]}`, ``},
		{"POST", decide, `{"items":[{"id":"a","features":{"price":1,"brand":"acmee"}}]}`, ``},
		{"POST", decide, `{"items":[{"id":7}]}`, ``},
		{"POST", decide, `{"items":{}}`, ``},
		{"POST", decide, `{"items":[{"id":"a"}],"max_size":1.5}`, ``},
		{"POST", decide, `{"items":[{"id":"a"}],"max_size":"x"}`, ``},
		{"PUT", "/v1/placements/home/items", `{"items":[{"id":"a","features":{"price":1,"brand":"acme"},"revenue":null}]}`,
			`/items/0/revenue: null: must be a number`},
		{"PATCH", "/v1/placements/home/items", `{"items":[{"id":"a","space":null}]}`, `/items/0/space: null: must be a number`},
		{"PATCH", "/v1/placements/home/items", `{"items":[{"id":"a","attributes":null}]}`,
			`/items/0/attributes: null: must be an object`},
		{"GET", "/v1/placements/home/shelf?id=a&id=", ``, `/id: must not be empty`},
		{"POST", decide, `{"filter":"prise < 3"}`, ``},
		{"POST", decide, `{"filter":"price < 1e400"}`, `invalid float literal: want a condition`},
		{"POST", decide, `{"filter":"price < 99999999999999999999"}`, `invalid integer literal: want a condition`},
		{"GET", decide + "/x?search=lag", ``, `\"lag\": must be log`},
		{"GET", decide + "/x/explanation?search=lag", ``, `\"lag\": must be log`},
		{"POST", "/v1/placements/home/decisions/x/outcome", `{"choise":"a"}`, `did you mean \"choice\"?`},
		{"POST", "/v1/placements/home/decisions/x/outcome", `{"choice":3}`, ``},
		{"POST", "/v1/placements/home/decisions/x/outcome", `{"choice":"","choices":null}`, `must be the id of an item`},
		{"POST", "/v1/placements/home/decisions/x/outcome", `{"choice":"","choices":[]}`, `must be the id of an item`},
		{"POST", "/v1/placements/home/decisions/x/outcome", `{"choice":"a","choices":[]}`, `comes with choice`},
		{"POST", "/v1/placements/home/decisions/x/outcome", `{"choices":[{}],"choice":"a"}`, `comes with choice`},
		{"POST", "/v1/placements/home/decisions/x/outcome", `{}`, `must be the id of an item`},
		{"POST", "/v1/placements/home/rollback", `{"version":"last"}`, `have a string, want a whole number`},
		{"POST", "/v1/placements/home/rollback", `{"version":-2}`, `must be a whole number`},
		{"PUT", "/v1/placements/home/items", `{"items":[{"id":"a","featurs":{}}]}`, ``},
		{"PATCH", "/v1/placements/home", `{}`, `the method must be one of GET, HEAD, PUT, DELETE or OPTIONS`},
		{"POST", decide, `{"items":[{"id":"a","features":{"price":1,"brand":"acme"}}],"shopper":{"age":3}}`,
			`unknown key \"age\": the placement has no features of shoppers`},
		{"POST", decide, `{"items":[{"id":"a","features":{"prize":1}}]}`, `did you mean \"price\"?`},
		{"POST", decide, `{"items":[{"id":"a","features":{"price":1,"brand":"other"}}]}`, `add it, or set allow_other`},
		{"POST", decide, `{"items":[{"id":"a","features":{"price":1,"brand":"acme"}}],"max_size":0}`,
			`/max_size: 0: must be at least 1; leave it out for the placement's max_size`},
		{"PUT", "/v1/placements/home/items", `{"items":[{"id":"a","valid_until":"2026-12-24"}]}`,
			`/items/0/valid_until: \"2026-12-24\": must be a time such as 2026-11-22T10:00:00Z`},
		{"POST", "/v1/placements/home/rollback", `{"version":3}`, `version 3: not found: the placement has none yet`},
		{"PUT", put + "?reset=yes", put1 + `}`, `"#/reset"`},
		{"PUT", put + "?relearn=all", put1 + `}`, `"#/relearn"`},
		{"GET", "/v1/placements/home/experiment/plan?shares=1,1", ``, `/shares: sum to 2: must sum to 1`},
		{"GET", "/v1/placements/home/experiment/plan?gains=-1", ``, `/gains: \"-1\": must be at most 20 numbers`},
		{"POST", "/v1/placements/home/decisions/x/outcome", `{"choices":[{"item":"a","value":null}]}`,
			`/choices/0/value: null: must be a number`},
		{"POST", "/v1/placements/home/decisions/x/outcome", `{"choices":[{"item":"a","quantity":null}]}`,
			`/choices/0/quantity: null: must be a number`},
		{"POST", "/v1/placements/home/decisions/x/corrections", `{"id":"c"}`, `/item: is missing`},
		{"POST", "/v1/placements/home/decisions/x/corrections", `{"id":"c","item":"a","value":null}`,
			`/value: null: must be a number; leave it out if there is none`},
		{"POST", "/v1/placements/home/decisions/x/rewards", `{"rewards":[{"item":"a","value":null}]}`,
			`/rewards/0/value: null: must be a number`},
		{"POST", "/v1/placements/home/decisions/x/metrics", `{"metrics":{"margin":null}}`,
			`/metrics/margin: null: must be a number`},
		{"GET", "/v1/overview?limit=many", ``, `must be a whole number`},
		{"GET", "/v1/overview?limit=1000", ``, `must be from 1 to 100`},
	} {
		a := s.ask(c.method, c.path, c.body)
		if a.status < 400 || a.status >= 500 {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, a.status, a.body)
		}
		if found := goSyntax.FindString(a.body); found != "" || !strings.Contains(a.body, c.says) {
			t.Errorf("%s %s %s: %s, want %s, without %q", c.method, c.path, c.body, a.body, c.says, found)
		}
	}
	for _, header := range []string{"Content-Type", "Content-Encoding"} {
		if a := s.ask("PUT", put, put1+"}", header, "x/y"); a.status != 415 || goSyntax.MatchString(a.body) {
			t.Errorf("%s: %d %s", header, a.status, a.body)
		}
	}
}

// In an outcome null next to the other member is ignored: clients that write all members can report.
func TestNullsInOutcomes(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", home)
	for body, want := range map[string]string{
		`{"choice":"sku1","choices":null}`:            `"choice":"sku1"`,
		`{"choice":null,"choices":[{"item":"sku1"}]}`: `"choice":"sku1"`,
		`{"choice":null,"choices":null}`:              `"choice":null`,
		`{"choices":[{"item":"sku1","quantity":2}]}`:  `"quantity":2`,
	} {
		s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"d",`+items+`}`)
		s.want(204, "POST", "/v1/placements/home/decisions/d/outcome", body)
		if got := s.want(200, "GET", "/v1/placements/home/decisions/d", "").body; !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
		s.want(204, "DELETE", "/v1/placements/home", "")
		s.want(201, "PUT", "/v1/placements/home", home)
	}
}

// A request without candidates gets an error that names the cause.
func TestNothingToShow(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/shop", `{"max_size":1,"max_request_items":2,"features":[{"name":"price","kind":"number"}]}`)
	const item = `{"items":[{"id":"%s","features":{"price":9},"available":%t}]}`
	for _, c := range []struct {
		available   []bool
		body, field string
		says        string
	}{
		{nil, `{}`, "#/items", "must have at least one item"},
		{nil, `{"items":[{"id":"own","features":{"price":9}}],"filter":"price < 10"}`, "#/filter", "not on the request's own"},
		{[]bool{true}, `{"items":[]}`, "#/items", "must have at least one item"},
		{[]bool{false}, `{}`, "#/items", "no item of the catalogue is available now"},
		{[]bool{false}, `{"filter":"price < 10"}`, "#/filter", "no item that is available satisfies it"},
		{[]bool{false}, `{"candidates":[]}`, "#/candidates", "must have at least one id"},
		{[]bool{false}, `{"candidates":["i0","i0"]}`, "#/candidates/0", "is not available"},
		{[]bool{true}, `{"candidates":["none","i0"],"filter":"price < 5"}`, "#/filter", "no item that is available satisfies it"},
		{[]bool{true}, `{"candidates":["none"],"filter":"price < 5"}`, "#/candidates/0", "is unknown to the catalogue"},
		{[]bool{true, false}, `{"include":["i1"]}`, "#/include/0", "may not be shown now"},
		{[]bool{true}, `{"include":["none"]}`, "#/include/0", "is not in the catalogue"},
		{[]bool{true, true, true}, `{"candidates":["i0","i1","i2"]}`, "#/candidates", "has more than 2 elements"},
	} {
		for i, is := range c.available {
			s.want(200, "PUT", "/v1/placements/shop/items", fmt.Sprintf(item, fmt.Sprint("i", i), is))
		}
		a := s.want(422, "POST", "/v1/placements/shop/decisions", c.body)
		if !strings.Contains(a.body, `"`+c.field+`"`) || !strings.Contains(a.body, c.says) {
			t.Errorf("%s among %v: %s, want %s", c.body, c.available, a.body, c.says)
		}
	}
	for _, body := range []string{`{}`, `{"filter":"price < 10"}`, `{"items":[{"id":"own","features":{"price":9}}],"filter":"price < 10"}`} {
		s.want(201, "POST", "/v1/placements/shop/decisions", body) // the catalogue may be larger than a request
	}
	s.want(200, "DELETE", "/v1/placements/shop/items", `{"ids":["i0","i1","i2"]}`)
	s.want(201, "POST", "/v1/placements/shop/decisions", // as with an item left that is not available
		`{"items":[{"id":"own","features":{"price":9}}],"filter":"price < 10"}`)
}

// noKeys is a store of keys that fails.
type noKeys struct{ shoppers.Store }

func (noKeys) Key(context.Context, string, string) (shoppers.Key, error) {
	return shoppers.Key{}, io.EOF
}

func (noKeys) Erase(context.Context, string) error { return io.EOF }

// Callers come back later when shoppers' keys cannot be read or written. A caller who goes away is not told that.
func TestKeysCannotBeWritten(t *testing.T) {
	s := started(t, func(_ *server.Options, e *engine.Options) { e.Shoppers = noKeys{} })
	s.want(201, "PUT", "/v1/placements/p", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"shopper_history":{"keep":"1h"}}`)
	s.problem(503, "shopper-keys", "", "POST", "/v1/placements/p/decisions",
		`{"shopper_id":"anna","items":[{"id":"a","features":{"x":1}}]}`)
	s.problem(503, "shopper-keys", "", "POST", "/v1/erasures", `{"shopper_id":"anna"}`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.engine.EraseShopper(ctx, "anna"); err == nil || errors.Is(err, engine.ErrKeys) {
		t.Errorf("an erasure whose caller went away ends with %v", err)
	}
}
