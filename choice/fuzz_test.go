package choice

import (
	"os"
	"path/filepath"
	"testing"

	"vitrine/internal/fatal"
)

// For any bytes in a specification and a table, reading succeeds or an error explains the problem.
func FuzzSpec(f *testing.F) {
	for _, text := range []string{longSpec, "", "[data]\nform = \"wide\"",
		"[model]\nkind = \"mixed\"\n[utility]\ngeneric = [\"cost = fare / 100\", \"log(\"]",
		"[utility]\nreference = 3"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ReadSpec("spec.toml", text)
		if (s == nil) == (err == nil) {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func FuzzTable(f *testing.F) {
	trips := fatal.Or(os.ReadFile("testdata/trips.csv"))(f)
	spec := fatal.Or(ReadSpec("spec.toml", []byte(longSpec)))(f)
	for _, table := range []string{string(trips[:min(len(trips), 2000)]), "", "a;b\n1;2\n", "PAR1", "\x1f\x8b",
		"\x28\xb5\x2f\xfd", "\"\n", "id,id\n1,1\n"} {
		f.Add([]byte(table))
	}
	f.Fuzz(func(t *testing.T, table []byte) {
		path := filepath.Join(t.TempDir(), "table")
		fatal.If(t, os.WriteFile(path, table, 0o600))
		d, err := Load(t.Context(), path, spec, nil)
		if (d == nil) == (err == nil) {
			t.Errorf("%+v, %v", d, err)
		}
	})
}
