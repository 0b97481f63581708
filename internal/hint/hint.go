// Package hint attaches advice for the user to an error.
package hint

import (
	"errors"
	"strings"
	"unicode"
)

type hinted struct {
	error
	text string
}

func (h hinted) Unwrap() error { return h.error }

// New returns err with a hint: one line of advice for the user. The hint is not part of the message.
func New(err error, text string) error { return hinted{err, text} }

// Of returns the hint of an error, or "".
func Of(err error) string {
	if h, ok := errors.AsType[hinted](err); ok {
		return h.text
	}
	return ""
}

// Printable returns text that a terminal prints without obeying it: U+FFFD takes the place of control characters other
// than tabs and ends of lines, of characters that change the direction of writing, and of bytes that are not UTF-8.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Bidi_Control) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Message is Printable for a message of the program, which may quote others: it indents all lines after the first, so that
// no quoted text can pose as another message.
func Message(text string) string { return strings.ReplaceAll(Printable(text), "\n", "\n  ") }
