// Package long marks tests that take more than a few seconds, so that go test ./... skips them: walks that compile a
// copy of the module, kills of running services, recorded panels, cross-builds.
//
// Set VITRINE_LONG=1 in the environment to run them. .ci/run long runs only these tests.
package long

import (
	"os"
	"testing"
)

// Test skips the test unless VITRINE_LONG is set. Call it in the test's first line, where .ci/run looks for it.
func Test(t testing.TB) {
	t.Helper()
	if !Wanted() {
		t.Skip("long: set VITRINE_LONG=1, or use .ci/run long")
	}
}

// Wanted reports whether VITRINE_LONG is set. Use it in tests that only do more of the same then.
func Wanted() bool { return os.Getenv("VITRINE_LONG") != "" }
