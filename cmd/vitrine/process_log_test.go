//go:build unix

package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A line of 200 KB in a program's log does not hide the lines after it.
func TestLongLogLines(t *testing.T) {
	cmd := exec.Command("sh", "-c", `head -c 200000 /dev/zero | tr '\0' x >&2; printf '\nready\n' >&2`)
	p := launch(t, cmd, func(line []byte) string {
		if string(line) == "ready" {
			return "here"
		}
		return ""
	})
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatal("the log of the program is not read within a minute")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if text := p.stderr.String(); len(p.ready) != 1 || strings.Count(text, "x") != 200_000 {
		t.Errorf("%d bytes of the log are known", len(text))
	}
}
