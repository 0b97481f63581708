//go:build unix

package experiment_test

import (
	"errors"
	"syscall"
	"testing"
)

// noChildren fails a test that leaves a program running or unreaped.
func noChildren(t *testing.T) {
	t.Helper()
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("a child process is left: %v", err)
	}
}
