// Package strict decodes TOML and rejects unknown keys.
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"
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
	}
	return err
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
