//go:build unix

package experiment_test

import (
	"syscall"
	"testing"

	"vitrine/internal/expect"
)

// noChildren fails a test that leaves a program running or unreaped.
func noChildren(t *testing.T) {
	t.Helper()
	expect.Fails(syscall.Wait4(-1, nil, syscall.WNOHANG, nil))(t, syscall.ECHILD, "a child process is left")
}
