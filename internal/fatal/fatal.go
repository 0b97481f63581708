// Package fatal ends a test at an error that it does not expect.
package fatal

// TB is a *testing.T, *testing.B, *testing.F or *rapid.T.
type TB interface {
	Helper()
	Fatal(...any)
}

// If ends the test if err is not nil.
func If(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
