package inspect

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"vitrine/internal/hint"
)

// A full disk is not blamed on the log that is copied.
func TestNoRoomForCopy(t *testing.T) {
	r := Log{dir: "data/log", scratch: "/tmp/vitrine-log-1"}
	err := r.explain(&os.PathError{Op: "write", Path: "/tmp/vitrine-log-1/mark", Err: syscall.ENOSPC})
	if !strings.Contains(hint.Of(err), "TMPDIR") || strings.Contains(err.Error(), "data/log") {
		t.Errorf("%v, hint %q", err, hint.Of(err))
	}
}
