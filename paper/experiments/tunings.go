package experiments

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed tune/*.toml
var tunings embed.FS

// Tunings returns the names of the embedded tunings in alphabetical order.
func Tunings() []string {
	paths, err := fs.Glob(tunings, "tune/*.toml")
	if err != nil {
		panic("experiments: " + err.Error()) // the pattern is well-formed
	}
	for i, p := range paths {
		paths[i] = strings.TrimSuffix(path.Base(p), ".toml")
	}
	return paths
}

// ReadTuning returns a tuning's file.
func ReadTuning(name string) ([]byte, error) {
	return tunings.ReadFile("tune/" + name + ".toml")
}
