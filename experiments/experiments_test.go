package experiments_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vitrine/experiments"
)

// Every file has its place in the order, and every place its file.
func TestEveryFileHasItsPlace(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".toml"); ok {
			files = append(files, name)
		}
	}
	names := experiments.Names()
	slices.Sort(names)
	if diff := cmp.Diff(files, names); diff != "" {
		t.Errorf("files and names differ (-files +names):\n%s", diff)
	}
	for _, name := range names {
		if text, err := experiments.Read(name); err != nil || len(text) == 0 {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
}

func TestGroups(t *testing.T) {
	if diff := cmp.Diff([]string{"main", "main-gaussian", "main-uniform", "items", "sweep", "sweep-gaussian", "sweep-uniform"}, experiments.Groups()); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	for group, want := range map[string]int{"main": 4, "main-uniform": 2, "items": 4, "sweep": 16, "sweep-gaussian": 8, "none": 0} {
		if n := len(experiments.Members(group)); n != want {
			t.Errorf("%s has %d members, want %d", group, n, want)
		}
	}
}
