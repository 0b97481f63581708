package api

import (
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/hint"
)

// JSONError converts an error of the JSON packages to a *[FieldError]. A *[FieldError] inside err is returned as it is.
func JSONError(err error) error {
	var inside *FieldError
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	var moment *time.ParseError
	switch {
	case errors.As(err, &inside):
		return inside
	case errors.As(err, &semantic):
		field := string(semantic.JSONPointer)
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return unknownKey(field, semantic.JSONPointer.LastToken(), members(semantic.GoType))
		case errors.Is(semantic.Err, strconv.ErrSyntax): // of a whole number; 2.0 and 1e3 are not accepted
			return Fieldf(field, "must be %s, in digits only", typeName(semantic.GoType.Kind().String()))
		case errors.Is(semantic.Err, strconv.ErrRange):
			return Fieldf(field, "must be %s, and not that large", typeName(semantic.GoType.Kind().String()))
		case errors.As(semantic.Err, &moment):
			return Fieldf(field, "%q: must be a time such as 2026-11-22T10:00:00Z", Abbreviate(moment.Value, 40))
		case semantic.Err != nil:
			return Fieldf(field, "%v", semantic.Err)
		case semantic.GoType != nil:
			return Fieldf(field, "wrong type: have %s, want %s", kindName(semantic.JSONKind),
				typeName(semantic.GoType.Kind().String()))
		}
		return Fieldf(field, "wrong type")
	case errors.As(err, &syntactic):
		field := string(syntactic.JSONPointer)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return Fieldf(field, "duplicate key")
		}
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return Fieldf(field, "the JSON ends early")
		}
		return Fieldf(field, "not JSON: %v", syntactic.Err)
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return Fieldf("", "the JSON ends early")
	}
	return Fieldf("", "%v", err)
}

// InText returns the error of a text. It sets IsSyntax if the text is not JSON.
func InText(text []byte, err error) error {
	if field, ok := errors.AsType[*FieldError](err); ok && !jsontext.Value(text).IsValid() {
		syntax := *field
		syntax.IsSyntax = true
		return &syntax
	}
	return err
}

// unknownKey is the error of a key that is not one of the legal ones.
func unknownKey(field, key string, legal []string) error {
	return Fieldf(field, "unknown key %q%s", Abbreviate(key, 40), hint.Legal(key, legal))
}

// members returns the names of the members that a struct is read from.
func members(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// kindName names a kind of JSON value for an error message.
func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't', 'f':
		return "true or false"
	}
	return "null"
}

func typeName(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "bool":
		return "true or false"
	case kind == "slice":
		return "a list"
	case kind == "struct", kind == "map":
		return "an object"
	}
	return "a string"
}
