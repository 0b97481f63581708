// Package strict decodes TOML and rejects unknown keys.
package strict

import (
	"bytes"
	"errors"
	"fmt"
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

// Decode decodes text into dst, a pointer to a struct. Errors with a position in the text are of type *[Error].
func Decode(text []byte, dst any) error {
	err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(dst)
	var unknown *toml.StrictMissingError
	var malformed *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		line, _ := unknown.Errors[0].Position()
		key := strings.Join(unknown.Errors[0].Key(), ".")
		return &Error{line, key, fmt.Sprintf("unknown key %q", key)}
	case errors.As(err, &malformed):
		line, _ := malformed.Position()
		return &Error{line, "", strings.TrimPrefix(malformed.Error(), "toml: ")}
	}
	return err
}

// In adds the file's name to an error of Decode: "service.toml:3: unknown key …".
func In(name string, err error) error {
	if at := new(Error); errors.As(err, &at) {
		return fmt.Errorf("%s:%w", name, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}
