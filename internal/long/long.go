// Package long marks the tests that go test ./... leaves out because they take more than a few seconds: walks that compile a copy of
// the module, kills of running services, recorded panels, cross-builds.
//
// With VITRINE_LONG=1 in the environment they run. .ci/run long runs all of them, and nothing else.
package long

import (
	"os"
	"testing"
)

// Test skips the test unless VITRINE_LONG is set. It is the test's first line, where .ci/run looks for it.
func Test(t testing.TB) {
	t.Helper()
	if !Wanted() {
		t.Skip("long: set VITRINE_LONG=1, or use .ci/run long")
	}
}

// Wanted reports whether VITRINE_LONG is set, for tests that only do more of the same when it is.
func Wanted() bool { return os.Getenv("VITRINE_LONG") != "" }
