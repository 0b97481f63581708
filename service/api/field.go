package api

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrInvalid is the error of a configuration or a request that breaks a rule. Such errors have
// the type *[FieldError].
var ErrInvalid = errors.New("invalid")

// FieldError says what is wrong with a field of a configuration or a request.
type FieldError struct {
	Field   string // a JSON pointer (RFC 6901), such as "/items/3/id"; "" is the whole text
	Message string
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// Is reports that every field error is an [ErrInvalid].
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

// Fieldf returns a *[FieldError]. It abbreviates what may come from a caller.
func Fieldf(field, format string, args ...any) error {
	const most = 500
	return &FieldError{Abbreviate(field, most), Abbreviate(fmt.Sprintf(format, args...), most)}
}

// Pointer returns key as a part of a JSON pointer (RFC 6901).
func Pointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// Abbreviate returns the first bytes of s, at most n.
func Abbreviate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// InRange returns a *[FieldError] if v is not from least to most.
func InRange(field string, v, least, most int) error {
	if v < least || v > most {
		return Fieldf(field, "%d: must be from %d to %d", v, least, most)
	}
	return nil
}

// OneOf returns a *[FieldError] if v is not one of the legal values.
func OneOf(field, v string, legal ...string) error {
	if slices.Contains(legal, v) {
		return nil
	}
	return Fieldf(field, "%q: must be one of %q", v, legal)
}
