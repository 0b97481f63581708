package commandline

import (
	"os/exec"
	"strings"
	"testing"

	"vitrine/internal/expect"
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
	expect.Equal(t, roff(`.x -\`), "\\&.x \\-\\e", "roff gives")
}
