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
	if diff := cmp.Diff([]string{"main"}, experiments.Groups()); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if n := len(experiments.Members("main")); n != 4 {
		t.Errorf("main has %d members, want 4", n)
	}
	if n := len(experiments.Members("none")); n != 0 {
		t.Errorf("a group that is not there has %d members", n)
	}
}
