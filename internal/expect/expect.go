// Package expect reports errors of a test that are not the expected ones.
package expect

import (
	"errors"
	"fmt"
	"strings"
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

// Fails is Error for a call that also returns a value: expect.Fails(f())(t, want).
func Fails[V any](_ V, err error) func(t TB, want error) {
	return func(t TB, want error) {
		t.Helper()
		Error(t, err, want)
	}
}

// Text reports an error that lacks the wanted text. called names the call in the report.
type Text func(t TB, want string, called ...any)

// Message checks the results of a call, the last of which is an error with the wanted text:
// expect.Message(f())(t, "no ink").
func Message(results ...any) Text {
	return text(results, func(text, want string) bool { return text == want })
}

// Prefix is Message for an error that begins with the wanted text.
func Prefix(results ...any) Text { return text(results, strings.HasPrefix) }

// Part is Message for an error with the wanted text anywhere in it.
func Part(results ...any) Text { return text(results, strings.Contains) }

func text(results []any, agree func(text, want string) bool) Text {
	err, _ := results[len(results)-1].(error)
	return func(t TB, want string, called ...any) {
		if err != nil && agree(err.Error(), want) {
			return
		}
		t.Helper()
		where := ""
		if len(called) > 0 {
			where = strings.TrimSpace(fmt.Sprintln(called...)) + ": "
		}
		t.Error(fmt.Sprintf("%sthe error is %v\n want %s", where, err, want))
	}
}
