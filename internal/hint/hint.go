// Package hint adds to an error what a user can do about it.
package hint

import "errors"

type hinted struct {
	error
	text string
}

func (h hinted) Unwrap() error { return h.error }

// New returns err with a hint: one line that says what to do. The hint is not part of the message.
func New(err error, text string) error { return hinted{err, text} }

// Of returns the hint of an error, "" if it has none.
func Of(err error) string {
	var h hinted
	if errors.As(err, &h) {
		return h.text
	}
	return ""
}
