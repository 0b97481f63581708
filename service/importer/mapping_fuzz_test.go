package importer_test

import (
	"os"
	"path/filepath"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/importer"
)

// Any mapping is read, or an error names its file.
func FuzzMapping(f *testing.F) {
	for _, text := range []string{
		"", "format = \"csv\"\ndelimiter = \";\"\n[columns]\nchosen = \"bought\"\n", "several = \"each\"\nitems = " +
			"\"items.csv\"\n",
		"[sampling_law]\ndraw = \"swaps\"\nshare = 0.2\nsize = 3\npage = \"own\"\n", "[sampling_law]\ndraw = " +
			"\"items\"\nslot = \"slot\"\n", "format = [", "law = 1",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "mapping.toml")
		fatal.If(t, os.WriteFile(path, text, 0o600))
		m, err := importer.ReadMapping(path)
		if (m == nil) == (err == nil) {
			t.Errorf("%+v, %v", m, err)
		}
	})
}
