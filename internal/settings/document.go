// Package settings reads tables of named settings, from TOML files or JSON objects, into structs of options. It also
// keeps the tables of names that a key "kind" may take.
//
// Reading is strict. Every error names the file, the line, the key and its value, and the legal alternatives.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"vitrine/internal/hint"
	"vitrine/internal/option"
)

// Document is a parsed file that remembers the positions of its keys.
type Document struct {
	Name   string // of the file
	Values map[string]any
	Lines  map[string]int // line of each key and table, by path: "policy[1].lambda"
}

// Section is a table of a document.
type Section struct {
	Doc       *Document
	Path      string // "" for the document itself
	What      string // name in errors, "policy \"ucb-mnl\""; "" for the document itself
	Values    map[string]any
	elsewhere []string // keys that Split removed
}

// Parse reads a TOML file, with or without a byte order mark. Errors refer to it by name.
func Parse(name string, text []byte) (*Document, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	d := &Document{Name: name, Values: map[string]any{}, Lines: map[string]int{}}
	if err := toml.Unmarshal(text, &d.Values); err != nil {
		if syntax, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ := syntax.Position()
			return nil, fmt.Errorf("%s:%d: %s", name, line, strings.TrimPrefix(syntax.Error(), "toml: "))
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d.index(text)
	return d, nil
}

// index finds the lines of the keys in a text that is known to parse.
func (d *Document) index(text []byte) {
	var p unstable.Parser
	p.Reset(text)
	elements := map[string]int{} // number of [[tables]] so far, by name
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.ArrayTable:
			path, line := keyPath(&p, e.Key())
			if first, rest, nested := strings.Cut(path, "."); nested && elements[first] > 0 {
				path = fmt.Sprintf("%s[%d].%s", first, elements[first]-1, rest)
			}
			table = fmt.Sprintf("%s[%d]", path, elements[path])
			elements[path]++
			d.Lines[table] = line
		case unstable.Table:
			path, line := keyPath(&p, e.Key())
			first, rest, nested := strings.Cut(path, ".")
			if n := elements[first]; n > 0 {
				path = fmt.Sprintf("%s[%d]", first, n-1)
				if nested {
					path += "." + rest
				}
			}
			table = path
			d.Lines[table] = line
		case unstable.KeyValue:
			d.indexValue(&p, table, e)
		}
	}
}

func (d *Document) indexValue(p *unstable.Parser, table string, e *unstable.Node) {
	key, line := keyPath(p, e.Key())
	path := Join(table, key)
	d.Lines[path] = line
	if v := e.Value(); v.Kind == unstable.InlineTable {
		for children := v.Children(); children.Next(); {
			d.indexValue(p, path, children.Node())
		}
	}
}

func keyPath(p *unstable.Parser, key unstable.Iterator) (path string, line int) {
	for key.Next() {
		path = Join(path, string(key.Node().Data))
		line = p.Shape(key.Node().Raw).Start.Line
	}
	return path, line
}

// Join returns the path of a table's key.
func Join(table, key string) string {
	if table == "" {
		return key
	}
	return table + "." + key
}

// Root returns the document's top-level keys.
func (d *Document) Root() Section { return Section{Doc: d, Values: d.Values} }

// Table returns the table called key. ok is false if the key is absent. If the key is not a table, Table returns an
// error.
func (s Section) Table(key string) (t Section, ok bool, err error) {
	v, ok := s.Values[key]
	if !ok {
		return Section{}, false, nil
	}
	values, isTable := v.(map[string]any)
	if !isTable {
		return Section{}, false, s.Errorf(key, "%s = %s: must be a table", key, Literal(v))
	}
	what := key
	if s.What != "" {
		what = s.What + ": " + key
	}
	return Section{Doc: s.Doc, Path: Join(s.Path, key), What: what, Values: values}, true, nil
}

// Tables returns the array of tables called key.
func (s Section) Tables(key string) ([]Section, error) {
	v, ok := s.Values[key]
	if !ok {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, s.Errorf(key, "%s: must be an array of tables, [[%s]]", key, key)
	}
	var sections []Section
	for i, v := range list {
		values, ok := v.(map[string]any)
		if !ok {
			return nil, s.Errorf(key, "%s: must be an array of tables, [[%s]]", key, key)
		}
		what := key
		if s.What != "" {
			what = fmt.Sprintf("%s: %s[%d]", s.What, key, i)
		}
		sections = append(sections, Section{
			Doc: s.Doc, Path: fmt.Sprintf("%s[%d]", Join(s.Path, key), i), What: what, Values: values,
		})
	}
	return sections, nil
}

// Split stores one key of the section as Bind does, and returns the section without the key.
func (s Section) Split(key string, dst any) (rest Section, err error) {
	rest = s
	rest.Values = maps.Clone(s.Values)
	delete(rest.Values, key)
	rest.elsewhere = append(slices.Clip(s.elsewhere), key)
	return rest, s.Bind(dst, slices.Collect(maps.Keys(rest.Values))...)
}

// Bind stores the keys of the section, except those in except, in the struct that dst points to, by its toml tags.
// Unknown keys, values of the wrong type, and values outside the range in the tags of package option are errors.
func (s Section) Bind(dst any, except ...string) error {
	values := maps.Clone(s.Values)
	for _, key := range except {
		delete(values, key)
	}
	text, err := toml.Marshal(values)
	if err != nil {
		return s.Errorf("", "%v", err)
	}
	err = toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(dst)
	var unknown *toml.StrictMissingError
	var wrong *toml.DecodeError
	options := option.List(reflect.ValueOf(dst).Elem().Interface())
	switch {
	case err == nil:
		if err := option.Check(reflect.ValueOf(dst).Elem().Interface()); err != nil {
			return s.At(err)
		}
		return nil
	case errors.As(err, &unknown):
		key := strings.Join(unknown.Errors[0].Key(), ".")
		var legal []string
		for _, o := range options {
			legal = append(legal, o.Key)
		}
		slices.Sort(legal)
		legal = slices.Concat(legal, except, s.elsewhere)
		return s.Errorf(key, "unknown key %q%s", key, hint.Legal(key, legal))
	case errors.As(err, &wrong):
		key := strings.Join(wrong.Key(), ".")
		want := ""
		if i := slices.IndexFunc(options, func(o option.Option) bool { return o.Key == key }); i >= 0 {
			want = wanted(options[i])
		}
		return s.Errorf(key, "%s = %s: wrong type%s", key, Literal(s.Values[key]), want)
	default:
		return s.Errorf("", "%v", err)
	}
}

// Literal formats a value as in a TOML file, on one line.
func Literal(v any) string {
	text, err := toml.Marshal(map[string]any{"v": v})
	value, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "v = ")
	if err != nil || !ok {
		return "a table"
	}
	return value
}

// wanted returns an error's description of an option's type.
func wanted(o option.Option) string {
	switch o.Type {
	case "integer":
		return ": want an integer"
	case "true or false":
		return ": want true or false"
	case "string", "list of strings":
		return ": want a " + o.Type + " in quotes"
	}
	return ": want a " + o.Type
}

// Errorf returns an error positioned at a key of the section. If the file does not contain the key, the error points to
// the head of the innermost table.
func (s Section) Errorf(key, format string, args ...any) error {
	line, at := 0, Join(s.Path, key)
	for ; line == 0 && at != ""; at = at[:max(0, strings.LastIndexAny(at, ".["))] {
		line = s.Doc.Lines[at]
	}
	message := fmt.Sprintf(format, args...)
	if s.What != "" {
		message = s.What + ": " + message
	}
	if line == 0 {
		return fmt.Errorf("%s: %s", s.Doc.Name, message)
	}
	return fmt.Errorf("%s:%d: %s", s.Doc.Name, line, message)
}

// At adds the position of the key to an error of the form "key = value: …".
func (s Section) At(err error) error {
	key, _, _ := strings.Cut(err.Error(), " = ")
	return s.Errorf(key, "%v", err)
}
