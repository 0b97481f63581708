package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The commands of docs/howto/fit-a-choice-model.md print what the page shows.
func TestHowToFit(t *testing.T) {
	page, err := os.ReadFile("../../docs/howto/fit-a-choice-model.md")
	if err != nil {
		t.Fatal(err)
	}
	trips, err := os.ReadFile("../../choice/testdata/trips.csv")
	if err != nil {
		t.Fatal(err)
	}
	specs := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(page, -1)
	t.Chdir(t.TempDir())
	for name, text := range map[string][]byte{"trips.csv": trips, "trips.toml": specs[0][1], "nested.toml": append(bytes.Clone(specs[0][1]), specs[1][1]...), "neural.toml": specs[2][1], "wrong.toml": specs[3][1]} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commands := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllSubmatch(page, -1) {
		for _, part := range strings.Split(string(block[1]), "$ ")[1:] {
			line, want, _ := strings.Cut(part, "\n")
			if diff := cmp.Diff(want, shell(t, line)); diff != "" {
				t.Errorf("%s: -page +program:\n%s", line, diff)
			}
			commands++
		}
	}
	if commands != 10 {
		t.Errorf("%d commands on the page", commands)
	}
}

// shell runs a command line of vitrine with the filters head, tail and grep, and returns what it
// prints on standard output, or else its error.
func shell(t *testing.T, line string) string {
	t.Helper()
	stages := strings.Split(line, " | ")
	words := regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(stages[0], -1)
	for i, w := range words {
		words[i] = strings.Trim(w, `"`)
	}
	var out bytes.Buffer
	switch words[0] {
	case "vitrine":
		var errs bytes.Buffer
		if code := run(context.Background(), words[1:], &out, &errs); code != 0 {
			out.Write(errs.Bytes())
		}
	case "head":
		f, err := os.Open(filepath.Clean(words[2]))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		io.Copy(&out, f)
		stages = append(stages, "head "+words[1])
	default:
		t.Fatalf("no command %q", words[0])
	}
	lines := strings.SplitAfter(strings.TrimSuffix(out.String(), "\n"), "\n")
	for _, filter := range stages[1:] {
		name, argument, _ := strings.Cut(filter, " ")
		switch name {
		case "head":
			lines = lines[:int(argument[1]-'0')]
		case "tail":
			lines = lines[len(lines)-int(argument[1]-'0'):]
		case "grep":
			pattern := regexp.MustCompile(strings.ReplaceAll(strings.Trim(argument, `"`), `\|`, "|"))
			var kept []string
			for _, l := range lines {
				if pattern.MatchString(l) {
					kept = append(kept, l)
				}
			}
			lines = kept
		}
	}
	return strings.TrimSuffix(strings.Join(lines, ""), "\n") + "\n"
}
