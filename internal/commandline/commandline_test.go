package commandline

import (
	"os/exec"
	"strings"
	"testing"
)

// The scripts are of their shells' grammar, where these are installed.
func TestCompletionScripts(t *testing.T) {
	for shell, script := range Scripts {
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		c := exec.CommandContext(t.Context(), shell, "-n")
		c.Stdin = strings.NewReader(script)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}

func TestRoff(t *testing.T) {
	if want := "\\&.x \\-\\e"; roff(`.x -\`) != want {
		t.Errorf("roff gives %q, want %q", roff(`.x -\`), want)
	}
}
