// Package strict decodes TOML and rejects unknown keys.
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Error is a mistake in a file.
type Error struct {
	Line    int
	Key     string // the unknown key, with dots; "" for other mistakes
	Message string // without the line
}

func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Line, e.Message) }

// Decode decodes text, with or without a byte order mark, into dst, a pointer to a struct. Errors with a position in
// the text are of type *[Error].
func Decode(text []byte, dst any) error {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(dst)
	var unknown *toml.StrictMissingError
	var malformed *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		line, _ := unknown.Errors[0].Position()
		key := strings.Join(unknown.Errors[0].Key(), ".")
		return &Error{line, key, fmt.Sprintf("unknown key %q", key)}
	case errors.As(err, &malformed):
		line, column := malformed.Position()
		message := strings.TrimPrefix(malformed.Error(), "toml: ")
		key := malformed.Key()
		before := strings.Split(string(text), "\n")[line-1]
		if of := inlineKey.FindStringSubmatch(before[:min(column-1, len(before))]); of != nil {
			key = append(key, of[1])
		}
		if of := wrongType.FindStringSubmatch(message); of != nil {
			message = "a TOML " + of[1] + " does not fit here"
			if want, ok := wanted[of[2]]; ok {
				message = "have a TOML " + of[1] + ", want " + want
			}
			message = "wrong type: " + message
		}
		if len(key) > 0 && !strings.HasPrefix(message, "key ") && !strings.HasPrefix(message, "table ") {
			message = strings.Join(key, ".") + ": " + message
		}
		return &Error{line, "", message}
	case err != nil:
		return locate(text, dst, err)
	}
	return nil
}

// locate adds the line and the key to the error of a type that reads text. go-toml leaves them out for a value without
// quotes. The first value that gives the same error on its own is the mistake.
func locate(text []byte, dst any, err error) error {
	var p unstable.Parser
	p.Reset(text)
	var at *Error
	var search func(under []string, pair *unstable.Node)
	search = func(under []string, pair *unstable.Node) {
		key, value := append(under, keyOf(pair)...), pair.Value()
		if value.Kind == unstable.InlineTable {
			for each := value.Children(); each.Next(); {
				search(slices.Clip(key), each.Node())
			}
			return
		}
		quoted := make([]string, len(key))
		for i, name := range key {
			quoted[i] = strconv.Quote(name)
		}
		alone := strings.Join(quoted, ".") + " = " + string(value.Data)
		same := toml.Unmarshal([]byte(alone), reflect.New(reflect.TypeOf(dst).Elem()).Interface())
		if at == nil && same != nil && same.Error() == err.Error() {
			message := strings.Replace(err.Error(), strconv.Quote(string(value.Data)), string(value.Data), 1)
			line := p.Shape(p.Range(value.Data)).Start.Line
			at = &Error{line, "", strings.Join(key, ".") + ": " + message}
		}
	}
	var table []string
	for at == nil && p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = slices.Clip(keyOf(e))
		case unstable.KeyValue:
			search(table, e)
		}
	}
	if at == nil {
		return err
	}
	return at
}

func keyOf(n *unstable.Node) (names []string) {
	for key := n.Key(); key.Next(); {
		names = append(names, string(key.Node().Data))
	}
	return names
}

// inlineKey matches the text before a value of an inline table, whose key go-toml leaves out.
var inlineKey = regexp.MustCompile(`[{,]\s*([\w-]+)\s*=\s*$`)

// wrongType matches go-toml's error about a value of the wrong type, which describes Go's types.
var wrongType = regexp.MustCompile(`^cannot decode TOML (.+?) into struct field .* of type (.+)$`)

// wanted describes a file's types by Go's.
var wanted = map[string]string{
	"string": "a string in quotes", "bool": "true or false", "int": "an integer", "int64": "an integer",
	"uint64": "an integer", "float64": "a number", "[]string": "a list of strings", "[]int": "a list of integers",
	"[]float64": "a list of numbers", "map[string]string": "a table",
}

// In adds the file's name to an error of Decode: "service.toml:3: unknown key …".
func In(name string, err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return fmt.Errorf("%s:%w", name, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}
