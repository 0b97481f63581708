package judge

import (
	"os"
	"path/filepath"
	"testing"

	"vitrine/internal/fatal"
)

// For any bytes, reading a policy succeeds or returns an error that names the file.
func FuzzPolicy(f *testing.F) {
	for _, text := range []string{
		"", "show = \"items\"\nitems = [\"a\", \"b\"]\nsize = 2\n", "show = \"policy\"\n[policy]\nname = \"ucb-mnl\"\n",
		"show = \"model\"\nmodel = \"model.json\"\n",
		"show = \"uniform\"\nsize = -1\n", "show = \"best\"\nnam = \"x\"\n", "show = 3", "[policy",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "policy.toml")
		fatal.If(t, os.WriteFile(path, text, 0o600))
		p, err := ReadPolicy(path)
		if (p == nil) == (err == nil) {
			t.Errorf("%+v, %v", p, err)
		}
	})
}
