// Package fatal ends a test on an unexpected error.
package fatal

// TB is a *testing.T, *testing.B, *testing.F or *rapid.T.
type TB interface {
	Helper()
	Fatal(...any)
}

// If ends the test if err is not nil. called names the call in the report.
func If(t TB, err error, called ...any) {
	if err != nil {
		t.Helper()
		t.Fatal(append(called, err)...)
	}
}

// T returns t with an Error that ends the test: expect.Error(fatal.T(t), err, want).
func T(t TB) ender { return ender{t} }

type ender struct{ TB }

func (e ender) Error(args ...any) {
	e.Helper()
	e.Fatal(args...)
}

// Or returns a function that returns v, or ends the test if err is not nil: v := fatal.Or(f())(t).
func Or[V any](v V, err error) func(t TB, called ...any) V {
	return func(t TB, called ...any) V {
		if err != nil {
			t.Helper()
			If(t, err, called...)
		}
		return v
	}
}
