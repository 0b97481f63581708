// Package expect reports errors of a test that are not the expected ones.
package expect

import (
	"errors"
	"fmt"
)

// TB is a *testing.T, *testing.B, *testing.F or *rapid.T.
type TB interface {
	Helper()
	Error(...any)
}

// Error reports an error that is not want and does not wrap it.
func Error(t TB, err, want error) {
	if !errors.Is(err, want) {
		t.Helper()
		t.Error(fmt.Sprintf("the error is %v, want %v", err, want))
	}
}

// Fails returns a function that does so for the error of a call with a result: expect.Fails(f())(t, want).
func Fails[V any](_ V, err error) func(t TB, want error) {
	return func(t TB, want error) {
		t.Helper()
		Error(t, err, want)
	}
}
