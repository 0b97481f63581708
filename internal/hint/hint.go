// Package hint attaches advice for the user to an error.
package hint

import "errors"

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
