package main

import (
	"os"
	"path/filepath"
	"testing"

	"vitrine/internal/fatal"
)

// inFile writes bytes into a file of the test and returns its path.
func inFile(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	fatal.If(t, os.WriteFile(path, text, 0o600))
	return path
}

// Whatever the bytes, a policy to judge is read or an error names its file.
func FuzzJudged(f *testing.F) {
	for _, text := range []string{
		"", "show = \"items\"\nitems = [\"a\", \"b\"]\nsize = 2\n", "show = \"policy\"\n[policy]\nname = \"ucb-mnl\"\n", "show = \"model\"\nmodel = \"model.json\"\n",
		"show = \"uniform\"\nsize = -1\n", "show = \"best\"\nnam = \"x\"\n", "show = 3", "[policy",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := readJudged(inFile(t, "policy.toml", text))
		if (p == nil) == (err == nil) {
			t.Errorf("%+v, %v", p, err)
		}
	})
}
