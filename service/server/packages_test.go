package server_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/server"
)

// The Python and TypeScript packages contain the types and routes of the OpenAPI document. -rewrite writes them again.
func TestPackages(t *testing.T) {
	var d spec
	s := started(t, func(o *server.Options, _ *engine.Options) {
		o.Export = func(context.Context, io.Writer, string) error { return nil } // without it its route is missing
	})
	fatal.If(t, json.Unmarshal([]byte(s.want(200, "GET", "/openapi.json", "").body), &d))
	for file, text := range map[string]string{
		"python/src/vitrine/api.py": d.python(),
		"typescript/src/api.ts":     d.typescript(),
	} {
		path := filepath.Join("..", "..", file)
		if *rewrite {
			fatal.If(t, os.WriteFile(path, []byte(text), 0o666))
		}
		if string(fatal.Or(os.ReadFile(path))(t)) != text {
			t.Errorf("%s differs from the OpenAPI document: go test ./service/server -run TestPackages -rewrite", file)
		}
	}
}

// spec is the part of the OpenAPI document in the packages.
type spec struct {
	Paths      map[string]map[string]*call
	Components struct{ Schemas map[string]*schema }
}

// call is an operation of the document.
type call struct {
	OperationID string
	Summary     string
	Parameters  []struct {
		Name, In, Description string
		Schema                schema
	}
	RequestBody *struct{ Content map[string]media }
	Responses   map[string]struct{ Content map[string]media }

	method, path string
}

type media struct{ Schema *schema }

type schema struct {
	Ref                  string `json:"$ref"`
	Type                 types
	Description          string
	Enum                 []string
	Items                *schema
	Properties           map[string]*schema
	Required             []string
	AdditionalProperties any
}

// types are the type of a schema, and null if it may be null.
type types []string

func (y *types) UnmarshalJSON(text []byte) error {
	if one := ""; json.Unmarshal(text, &one) == nil {
		*y = types{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(y))
}

// words are how a language spells types: JSON's types by their names, and the composed types.
type words struct {
	names map[string]string
	null  string
	list  func(of string) string
	enum  func(string) string
}

var (
	inPython = words{
		map[string]string{"string": "str", "number": "float", "integer": "int", "boolean": "bool",
			"object": "dict[str, Any]", "": "Any"}, "None",
		func(of string) string { return "list[" + of + "]" },
		func(values string) string { return "Literal[" + strings.ReplaceAll(values, " | ", ", ") + "]" },
	}
	inTypeScript = words{
		map[string]string{"string": "string", "number": "number", "integer": "number", "boolean": "boolean",
			"object": "Record<string, unknown>", "": "unknown"}, "null",
		func(of string) string { return "readonly " + parenthesized.ReplaceAllString(of, "($0)") + "[]" },
		func(values string) string { return values },
	}
	parenthesized = regexp.MustCompile(`^.* \| .*$|^readonly .*`)
)

// spell writes the type of a schema.
func (w words) spell(s *schema) string {
	var all []string
	switch {
	case s.Ref != "":
		return s.Ref[strings.LastIndex(s.Ref, "/")+1:]
	case len(s.Enum) > 0:
		values := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			values[i] = quoted(v)
		}
		all = append(all, w.enum(strings.Join(values, " | ")))
	case s.Items != nil:
		all = append(all, w.list(w.spell(s.Items)))
	case len(s.Type) == 0:
		return w.names[""]
	default:
		all = append(all, w.names[s.Type[0]])
	}
	if slices.Contains(s.Type, "null") {
		all = append(all, w.null)
	}
	return strings.Join(all, " | ")
}

// answer returns the type of a call's result, or "", and its media type.
func (c *call) answer(w words) (name, mediaType string) {
	var names []string
	for _, status := range slices.Sorted(maps.Keys(c.Responses)) {
		if status >= "300" {
			continue
		}
		for kind, m := range c.Responses[status].Content {
			names = append(names, w.spell(m.Schema))
			mediaType, _, _ = strings.Cut(kind, ";")
		}
		if c.Responses[status].Content == nil {
			names = append(names, w.null)
		}
	}
	return strings.Join(slices.Compact(names), " | "), mediaType
}

// body returns the type of a call's body, or "".
func (c *call) body(w words) string {
	if c.RequestBody == nil {
		return ""
	}
	return w.spell(c.RequestBody.Content["application/json"].Schema)
}

// calls returns the operations by their names.
func (d *spec) calls() (all []*call) {
	for path, methods := range d.Paths {
		for method, c := range methods {
			named := *c
			named.method, named.path = strings.ToUpper(method), path
			all = append(all, &named)
		}
	}
	slices.SortFunc(all, func(a, b *call) int { return cmp.Compare(a.OperationID, b.OperationID) })
	return all
}

func quoted(s string) string { text, _ := json.Marshal(s); return string(text) }

// sentence makes a sentence of a description.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	_, size := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:size]) + strings.TrimSuffix(s[size:], ".") + "."
}

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// snake is a name in Python: keywords get an underscore.
func snake(name string) string {
	name = strings.ToLower(camel.ReplaceAllString(strings.ReplaceAll(name, "-", "_"), "${1}_$2"))
	if name == "from" {
		return "from_"
	}
	return name
}

func (d *spec) python() string {
	var b strings.Builder
	b.WriteString(`"""The types and routes of the service: go test ./service/server -run TestPackages -rewrite.

A type that the service answers with may contain more members in a later version.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict
from urllib.parse import quote

if TYPE_CHECKING:
    from typing_extensions import NotRequired, Unpack

Parameter = str | int | bool | None


def _part(value: str) -> str:
    """A part of a path: "." and ".." would make it another path."""
    if not isinstance(value, str) or value in (".", ".."):
        raise ValueError(f"{value!r}: is no name in a URL")
    return quote(value, "")
`)
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		kind := func(property string) string {
			kind := inPython.spell(s.Properties[property])
			if !slices.Contains(s.Required, property) {
				kind = "NotRequired[" + kind + "]"
			}
			return kind
		}
		properties := slices.Sorted(maps.Keys(s.Properties))
		if slices.Contains(properties, "from") { // a keyword
			fmt.Fprintf(&b, "\n\n%s = TypedDict(\n    %q,\n    {\n", name, name)
			for _, p := range properties {
				fmt.Fprintf(&b, "        %q: %s,\n", p, quoted(kind(p)))
			}
			b.WriteString("    },\n)\n")
			continue
		}
		fmt.Fprintf(&b, "\n\nclass %s(TypedDict):\n", name)
		for _, p := range properties {
			fmt.Fprintf(&b, "    %s: %s\n", p, kind(p))
			if text := sentence(s.Properties[p].Description); text != "" {
				fmt.Fprintf(&b, "    \"\"\"%s\"\"\"\n", text)
			}
		}
	}
	b.WriteString(`

class Message(NamedTuple):
    """An entry of the log, as events sends it."""

    entry: int
    kind: str
    data: Event
`)
	for _, async := range []string{"", "Async"} {
		def, await := "def", ""
		if async != "" {
			def, await = "async def", "await "
		}
		fmt.Fprintf(&b, `

class %[1]sRoutes:
    """A method for each route. Keyword arguments are the members of the body and, if it is listed, a parameter."""

    %[2]s _call(self, method: str, path: str, query: dict[str, Any], headers: dict[str, Any], body: Any = None, wanted: str = "application/json") -> Any:
        raise NotImplementedError

    def _events(self, path: str, query: dict[str, Any], headers: dict[str, Any]) -> %[1]sIterator[Message]:
        raise NotImplementedError

    def _lines(self, path: str, query: dict[str, Any], headers: dict[str, Any]) -> %[1]sIterator[Any]:
        raise NotImplementedError
`, async, def)
		for _, c := range d.calls() {
			arguments, sent, path := []string{"self"}, map[string][]string{}, c.path
			var positional, keyword []string
			for _, p := range c.Parameters {
				if p.In == "path" {
					positional = append(positional, p.Name+": str")
					path = strings.ReplaceAll(path, "{"+p.Name+"}", "{_part("+p.Name+")}")
					continue
				}
				of := "Parameter"
				if p.Schema.Items != nil {
					of = "Sequence[str] | None"
				}
				keyword = append(keyword, snake(p.Name)+": "+of+" = None")
				sent[p.In] = append(sent[p.In], quoted(p.Name)+": "+snake(p.Name))
			}
			if arguments = append(arguments, positional...); len(positional) > 0 {
				arguments = append(arguments, "/")
			}
			if len(keyword) > 0 {
				arguments = append(append(arguments, "*"), keyword...)
			}
			body := ""
			if of := c.body(inPython); of != "" {
				arguments, body = append(arguments, "**body: Unpack["+of+"]"), ", body"
			}
			answer, mediaType := c.answer(inPython)
			parameters := fmt.Sprintf("f%q, {%s}, {%s}", path, strings.Join(sent["query"], ", "),
				strings.Join(sent["header"], ", "))
			if !strings.Contains(path, "{") {
				parameters = parameters[1:]
			}
			head := fmt.Sprintf("\n    %%s %s(%s) -> %%s:\n        \"\"\"%s\"\"\"\n", snake(c.OperationID),
				strings.Join(arguments, ", "), sentence(c.Summary))
			switch mediaType {
			case "text/event-stream":
				fmt.Fprintf(&b, head+"        return self._events(%s)\n", "def", async+"Iterator[Message]", parameters)
			case "application/x-ndjson":
				fmt.Fprintf(&b, head+"        return self._lines(%s)\n", "def", async+"Iterator[Any]", parameters)
			default:
				fmt.Fprintf(&b, head, def, answer)
				if mediaType != "" && mediaType != "application/json" {
					body += fmt.Sprintf(", wanted=%q", mediaType)
				}
				if answer == "None" {
					fmt.Fprintf(&b, "        %sself._call(%q, %s%s)\n", await, c.method, parameters, body)
				} else {
					fmt.Fprintf(&b, "        answer: %s = %sself._call(%q, %s%s)\n        return answer\n", answer,
						await, c.method, parameters, body)
				}
			}
		}
	}
	return b.String()
}

func (d *spec) typescript() string {
	var b strings.Builder
	b.WriteString("// The types and routes of the service: go test ./service/server -run TestPackages -rewrite.\n//\n" +
		"// A type that the service answers with may contain more members in a later version.\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		fmt.Fprintf(&b, "\nexport interface %s {\n", name)
		for _, p := range slices.Sorted(maps.Keys(s.Properties)) {
			if text := sentence(s.Properties[p].Description); text != "" {
				fmt.Fprintf(&b, "  /** %s */\n", text)
			}
			optional, orUndefined := "?", " | undefined" // which callers with exactOptionalPropertyTypes need
			if slices.Contains(s.Required, p) {
				optional, orUndefined = "", ""
			}
			fmt.Fprintf(&b, "  %s%s: %s%s;\n", p, optional, inTypeScript.spell(s.Properties[p]), orUndefined)
		}
		b.WriteString("}\n")
	}
	b.WriteString("\n/** What a route takes and answers. An answer that is not JSON is a Response. */\nexport interface " +
		"Routes {\n")
	var table strings.Builder
	for _, c := range d.calls() {
		sent := map[string][]string{}
		_, conditional := c.Responses["304"]
		for _, p := range c.Parameters {
			switch {
			case p.In == "path":
				sent[p.In] = append(sent[p.In], p.Name+": string")
			case !conditional || p.Name != "If-None-Match": // an answer of 304 would not have the route's type
				of := "string | number | boolean"
				if p.Schema.Items != nil {
					of = "readonly string[]"
				}
				sent[p.In] = append(sent[p.In], quoted(p.Name)+"?: "+of+" | undefined")
			}
		}
		var parts []string
		for _, p := range []struct{ of, optional, end string }{{"path", "", ""}, {"query", "?", " | undefined"},
			{"header", "?", " | undefined"}} {
			if len(sent[p.of]) > 0 {
				parts = append(parts, p.of+p.optional+": { "+strings.Join(sent[p.of], "; ")+" }"+p.end)
			}
		}
		if body := c.body(inTypeScript); body != "" {
			parts = append(parts, "body: "+body)
		}
		answer, mediaType := c.answer(inTypeScript)
		streams := ""
		if mediaType != "" && mediaType != "application/json" {
			answer, streams = "Response", fmt.Sprintf(", %q", mediaType)
		}
		takes := "{ " + strings.Join(parts, "; ") + " }"
		if len(parts) == 0 {
			takes = "{}"
		}
		fmt.Fprintf(&b, "  /** %s */\n  %s: { takes: %s; answer: %s };\n", sentence(c.Summary), c.OperationID, takes,
			answer)
		fmt.Fprintf(&table, "  %s: [%q, %q%s],\n", c.OperationID, c.method, c.path, streams)
	}
	b.WriteString("}\n\nexport const routes: { readonly [K in keyof Routes]: readonly [method: string, path: " +
		"string, mediaType?: string] } = {\n" + table.String() + "};\n")
	return b.String()
}
