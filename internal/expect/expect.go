// Package expect reports values and errors of a test that are not the expected ones.
package expect

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// TB is a *testing.T, *testing.B, *testing.F or *rapid.T.
type TB interface {
	Helper()
	Error(...any)
}

// Equal reports a value that differs from want in the eyes of [cmp.Diff]. called names the value in the report, and may
// contain a [cmp.Option].
func Equal[V any](t TB, got, want V, called ...any) {
	var words []any
	var options []cmp.Option
	for _, c := range called {
		if o, ok := c.(cmp.Option); ok {
			options = append(options, o)
		} else {
			words = append(words, c)
		}
	}
	diff := cmp.Diff(want, got, options...)
	if diff == "" {
		return
	}
	t.Helper()
	if reflect.ValueOf(want).Kind() <= reflect.Complex128 { // a number, or a truth value
		t.Error(fmt.Sprintf("%s%v, want %v", prefix(words), got, want))
		return
	}
	t.Error(fmt.Sprintf("%s-want +got:\n%s", prefix(words), diff))
}

// List reports a list of other elements than want's. called names the list in the report.
func List[E comparable](t TB, got, want []E, called ...any) {
	if !slices.Equal(got, want) {
		t.Helper()
		t.Error(fmt.Sprintf("%s%v, want %v", prefix(called), got, want))
	}
}

// Contains reports a text without the wanted part. called names the text in the report.
func Contains(t TB, text, part string, called ...any) {
	if !strings.Contains(text, part) {
		t.Helper()
		t.Error(fmt.Sprintf("%s%q is not in\n%s", prefix(called), part, text))
	}
}

// Error reports an error that is not want and does not wrap it. called names the call in the report.
func Error(t TB, err, want error, called ...any) {
	if !errors.Is(err, want) {
		t.Helper()
		t.Error(fmt.Sprintf("%sthe error is %v, want %v", prefix(called), err, want))
	}
}

// Fails is Error for a call that also returns a value: expect.Fails(f())(t, want).
func Fails[V any](_ V, err error) func(t TB, want error, called ...any) {
	return func(t TB, want error, called ...any) {
		t.Helper()
		Error(t, err, want, called...)
	}
}

// Refused reports a call without an error: expect.Refused(f())(t). called names the call in the report.
func Refused(results ...any) func(t TB, called ...any) {
	return func(t TB, called ...any) {
		if err, _ := results[len(results)-1].(error); err == nil {
			t.Helper()
			t.Error(prefix(called) + "no error")
		}
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
		t.Error(fmt.Sprintf("%sthe error is %v\n want %s", prefix(called), err, want))
	}
}

// prefix begins the report of a value or a call.
func prefix(called []any) string {
	if len(called) == 0 {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintln(called...)) + ": "
}
