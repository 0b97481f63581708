package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// The defects that bench/sim.sh puts back can still be put back: the lines that each changes are in the tree, once.
func TestDefectsApply(t *testing.T) {
	paths, _ := filepath.Glob("testdata/defects/*.patch")
	expect.Equal(t, len(paths), 12, "there are n defects")
	for _, path := range paths {
		var file, before string
		flush := func() {
			if before == "" {
				return
			}
			if n := strings.Count(string(fatal.Or(os.ReadFile(filepath.Join("../..", file)))(t)), before); n != 1 {
				t.Errorf("%s does not apply: %s has these lines %d times, want once:\n%s", path, file, n, before)
			}
			before = ""
		}
		for line := range strings.Lines(string(fatal.Or(os.ReadFile(path))(t))) {
			switch {
			case strings.HasPrefix(line, "--- a/"):
				flush()
				file = strings.TrimSpace(line[len("--- a/"):])
			case strings.HasPrefix(line, "@@"):
				flush()
			case line[0] == ' ' || line[0] == '-':
				before += line[1:]
			}
		}
		flush()
	}
}
