package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// A changed program or argument means another policy, and its runs are played again. The file's directory does not
// matter.
func TestProcessIsIdentifiedByItsFiles(t *testing.T) {
	load := func(dir, script, command string) string {
		t.Helper()
		fatal.If(t, os.WriteFile(filepath.Join(dir, "learner.py"), []byte(script), 0o644))
		f := fatal.Or(Load(filepath.Join(dir,
			"mine.toml"), []byte("name = \"mine\"\n[contexts]\nkind = \"gaussian\"\n[truth]\nkind = "+
			"\"linear\"\n[[policy]]\nname = \"process\"\n"+command)))(t)
		known := fatal.Or(json.Marshal(f.contenders[0].Settings))(t)
		return string(known)
	}
	here, there := t.TempDir(), t.TempDir()
	first := load(here, "one", `command = ["python3", "learner.py"]`)
	// sha256sum of "one"
	expect.Equal(t, first,
		`{"command":["python3","learner.py"],"files":{"learner.py":"7692c3ad3540bb80"},"name":"process","timeout":60}`, "settings")
	expect.Equal(t, load(there, "one", `command = ["python3", "learner.py"]`), first, "in another folder")
	for _, other := range []string{load(here, "two", `command = ["python3", "learner.py"]`),
		load(here, "one", `command = ["python3", "learner.py", "0.1"]`)} {
		if other == first {
			t.Errorf("another program is %s, too", other)
		}
	}
	for command, want := range map[string]string{
		"":                             `mine.toml:6: policy "process": command is missing: name the program and its arguments, command = ["python3", "learner.py"]`,
		`command = "python3"`:          `mine.toml:8: policy "process": command = 'python3': wrong type: want a list of strings in quotes`,
		"command = [\"x\"]\nsteps = 3": `mine.toml:9: policy "process": unknown key "steps"`,
	} {
		expect.Prefix(Load("mine.toml", []byte("name = \"mine\"\n[contexts]\nkind = \"gaussian\"\n[truth]\nkind = "+
			"\"linear\"\n[[policy]]\nname = \"process\"\n"+command)))(t, want, command)
	}
}
