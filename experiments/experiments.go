// Package experiments embeds the panels of the paper, one TOML file each.
package experiments

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed *.toml
var files embed.FS

// Names returns the names of all experiments, sorted.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("experiments: the embedded directory cannot be read: %v", err))
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	slices.Sort(names)
	return names
}

// Groups returns the names that stand for several experiments, sorted: what
// comes before the first '-' of more than one name.
func Groups() []string {
	var groups []string
	for _, n := range Names() {
		prefix, _, _ := strings.Cut(n, "-")
		if len(Members(prefix)) > 1 && !slices.Contains(groups, prefix) {
			groups = append(groups, prefix)
		}
	}
	return groups
}

// Members returns the experiments of a group, sorted.
func Members(group string) []string {
	return slices.DeleteFunc(Names(), func(n string) bool { return !strings.HasPrefix(n, group+"-") })
}

// Read returns the file of an experiment.
func Read(name string) ([]byte, error) {
	return files.ReadFile(name + ".toml")
}
