// Package config turns TOML files into experiments. Its catalog holds the only
// tables of names in the module: to add a policy, a utility family or a world
// is to write its file and a line there.
//
// Files are read strictly. Every error names the file, the line, the key and
// its value, and what would be legal.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// document is a parsed file that remembers where its keys stand.
type document struct {
	name   string // of the file
	values map[string]any
	lines  map[string]int // line of each key and table, by path: "policy[1].lambda"
}

// section is a table of a document.
type section struct {
	doc    *document
	path   string // "" is the document's own
	what   string // how errors call it, "policy \"ucb-mnl\""; "" is the document itself
	values map[string]any
}

func parse(name string, text []byte) (*document, error) {
	d := &document{name: name, values: map[string]any{}, lines: map[string]int{}}
	if err := toml.Unmarshal(text, &d.values); err != nil {
		var syntax *toml.DecodeError
		if errors.As(err, &syntax) {
			line, _ := syntax.Position()
			return nil, fmt.Errorf("%s:%d: %s", name, line, strings.TrimPrefix(syntax.Error(), "toml: "))
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d.index(text)
	return d, nil
}

// index finds the lines of a text that is known to parse.
func (d *document) index(text []byte) {
	var p unstable.Parser
	p.Reset(text)
	elements := map[string]int{} // how many [[tables]] of a name there were
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
			d.lines[table] = line
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
			d.lines[table] = line
		case unstable.KeyValue:
			d.indexValue(&p, table, e)
		}
	}
}

func (d *document) indexValue(p *unstable.Parser, table string, e *unstable.Node) {
	key, line := keyPath(p, e.Key())
	path := join(table, key)
	d.lines[path] = line
	if v := e.Value(); v.Kind == unstable.InlineTable {
		for children := v.Children(); children.Next(); {
			d.indexValue(p, path, children.Node())
		}
	}
}

func keyPath(p *unstable.Parser, key unstable.Iterator) (path string, line int) {
	for key.Next() {
		path = join(path, string(key.Node().Data))
		line = p.Shape(key.Node().Raw).Start.Line
	}
	return path, line
}

func join(table, key string) string {
	if table == "" {
		return key
	}
	return table + "." + key
}

// root returns the document's own keys.
func (d *document) root() section { return section{doc: d, values: d.values} }

// table returns the table called key, which must be one; ok is false where
// there is none.
func (s section) table(key string) (t section, ok bool, err error) {
	v, ok := s.values[key]
	if !ok {
		return section{}, false, nil
	}
	values, isTable := v.(map[string]any)
	if !isTable {
		return section{}, false, s.errorf(key, "%s = %s: must be a table", key, literal(v))
	}
	what := key
	if s.what != "" {
		what = s.what + ": " + key
	}
	return section{doc: s.doc, path: join(s.path, key), what: what, values: values}, true, nil
}

// tables returns the array of tables called key.
func (s section) tables(key string) ([]section, error) {
	v, ok := s.values[key]
	if !ok {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, s.errorf(key, "%s: must be an array of tables, [[%s]]", key, key)
	}
	var sections []section
	for i, v := range list {
		values, ok := v.(map[string]any)
		if !ok {
			return nil, s.errorf(key, "%s: must be an array of tables, [[%s]]", key, key)
		}
		what := key
		if s.what != "" {
			what = fmt.Sprintf("%s: %s[%d]", s.what, key, i)
		}
		sections = append(sections, section{doc: s.doc, path: fmt.Sprintf("%s[%d]", join(s.path, key), i), what: what, values: values})
	}
	return sections, nil
}

// only returns the section with no key but this one, and without that without
// it.
func (s section) only(key string) section {
	values := map[string]any{}
	if v, ok := s.values[key]; ok {
		values[key] = v
	}
	s.values = values
	return s
}

func (s section) without(key string) section {
	s.values = maps.Clone(s.values)
	delete(s.values, key)
	return s
}

// bind stores the keys of the section in the struct that dst points to, by its
// toml tags, but for the keys in except. A key that the struct does not have
// is an error, and so is a value of another type.
func (s section) bind(dst any, except ...string) error {
	values := maps.Clone(s.values)
	for _, key := range except {
		delete(values, key)
	}
	text, err := toml.Marshal(values)
	if err != nil {
		return s.errorf("", "%v", err)
	}
	err = toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(dst)
	var unknown *toml.StrictMissingError
	var wrong *toml.DecodeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		key := strings.Join(unknown.Errors[0].Key(), ".")
		legal := slices.Sorted(maps.Keys(tomlKeys(dst)))
		legal = append(legal, except...)
		return s.errorf(key, "unknown key %q%s", key, hint(key, legal))
	case errors.As(err, &wrong):
		key := strings.Join(wrong.Key(), ".")
		return s.errorf(key, "%s = %s: wrong type: want %s", key, literal(s.values[key]), typeOf(tomlKeys(dst)[key]))
	default:
		return s.errorf("", "%v", err)
	}
}

// literal returns a value as a file would have it, in one line.
func literal(v any) string {
	text, err := toml.Marshal(map[string]any{"v": v})
	value, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "v = ")
	if err != nil || !ok {
		return "a table"
	}
	return value
}

// typeOf names the type of a value that a key has by default.
func typeOf(v any) string {
	switch v.(type) {
	case int64:
		return "an integer"
	case float64:
		return "a number"
	case string:
		return "a string in quotes"
	case bool:
		return "true or false"
	default:
		return "a list of integers"
	}
}

// errorf makes an error that stands at a key of the section, or at its head
// where the file does not have the key.
func (s section) errorf(key, format string, args ...any) error {
	line, ok := s.doc.lines[join(s.path, key)]
	if !ok {
		line = s.doc.lines[s.path]
	}
	message := fmt.Sprintf(format, args...)
	if s.what != "" {
		message = s.what + ": " + message
	}
	if line == 0 {
		return fmt.Errorf("%s: %s", s.doc.name, message)
	}
	return fmt.Errorf("%s:%d: %s", s.doc.name, line, message)
}

// at places an error of the form "key = value: …" at its key.
func (s section) at(err error) error {
	key, _, _ := strings.Cut(err.Error(), " = ")
	return s.errorf(key, "%v", err)
}
