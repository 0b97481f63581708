// Package strict decodes TOML whose keys must all be known.
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
	Key     string // the unknown key, with dots; "" for another mistake
	Message string // without the line
}

func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Line, e.Message) }

// Decode decodes text into dst, a pointer to a struct. Errors that have a place in the text are of the type *[Error].
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

// In names the file in an error of Decode: "service.toml:3: unknown key …".
func In(name string, err error) error {
	if at := new(Error); errors.As(err, &at) {
		return fmt.Errorf("%s:%w", name, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}
