package api

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"vitrine/internal/hint"
)

// ErrInvalid is wrapped by errors in a configuration or request, which are of type *[FieldError].
var ErrInvalid = errors.New("invalid")

// FieldError describes an invalid field of a configuration or a request.
type FieldError struct {
	Field    string // a JSON pointer (RFC 6901), such as "/items/3/id"; "" is the whole document
	Message  string
	IsSyntax bool // the text is not JSON
}

// Error returns the field, if there is one, and the message.
func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// Is reports that every field error is an [ErrInvalid].
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

// Fieldf returns a *[FieldError]. It shortens field and message, which may quote a caller.
func Fieldf(field, format string, args ...any) error {
	const maxBytes = 500
	return &FieldError{Field: CutMiddle(field, maxBytes), Message: CutMiddle(fmt.Sprintf(format, args...), maxBytes)}
}

// CutMiddle returns s without its middle if it is longer than n bytes: an error quotes first, and then says what to do.
func CutMiddle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Abbreviate(s, n/2) + strings.ToValidUTF8(s[len(s)-n/2:], "")
}

// Pointer escapes key for use in a JSON pointer (RFC 6901).
func Pointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// Abbreviate returns s, or its first n bytes followed by "…" if it is longer.
func Abbreviate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// InRange returns a *[FieldError] unless minV ≤ v ≤ maxV.
func InRange(field string, v, minV, maxV int) error {
	if v < minV || v > maxV {
		return Fieldf(field, "%d: must be from %d to %d", v, minV, maxV)
	}
	return nil
}

// MaxAmount is the largest amount of money that callers may send: a value, a revenue or a refund. A larger number is
// something else, such as an EAN-13 or a time in milliseconds.
const MaxAmount = 1e12

// CheckAmount returns a *[FieldError] unless least ≤ v ≤ MaxAmount.
func CheckAmount(field string, v, least float64) error {
	if v >= least && v <= MaxAmount {
		return nil
	}
	advice := ""
	if math.Abs(v) > MaxAmount {
		advice = "; send an amount of money, not an id or a timestamp"
	}
	return Fieldf(field, "%.15g: must be from %v to %v%s", v, least, MaxAmount, advice)
}

// OneOf returns a *[FieldError] if v is not one of the legal values.
func OneOf(field, v string, legal ...string) error {
	if slices.Contains(legal, v) {
		return nil
	}
	if v == "" {
		return Fieldf(field, "is missing%s", hint.Legal("", legal))
	}
	return Fieldf(field, "%q: unknown%s", v, hint.Legal(v, legal))
}
