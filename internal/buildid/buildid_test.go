package buildid

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// built compiles a program that prints a word, with flags of go build, and returns its file.
func built(t *testing.T, word string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	source, file := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	fatal.If(t, os.WriteFile(source, []byte("package main\n\nfunc main() { println(\""+word+"\") }\n"), 0o600))
	tool(t, "go", append(append([]string{"build", "-o", file}, flags...), source)...)
	return file
}

func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	fatal.If(t, err, name, args, out)
	return string(out)
}

func idOf(t *testing.T, file string) string {
	t.Helper()
	f := fatal.Or(os.Open(file))(t)
	defer f.Close()
	return fatal.Or(sumOf(f))(t)
}

// Stripping a program and signing it, which appends bytes, leave the ID. Other code changes it.
func TestIDIsOfTheCode(t *testing.T) {
	file := built(t, "shop")
	want := idOf(t, file)
	if !pattern.MatchString("Go build ID: \"" + strings.TrimSpace(tool(t, "go", "tool", "buildid", file))) {
		t.Errorf("go tool buildid prints an ID of another form for %s", file)
	}
	if other := idOf(t, built(t, "shelf")); other == want {
		t.Errorf("two programs have the ID %s", other)
	}
	if _, err := exec.LookPath("strip"); err == nil {
		before := fatal.Or(os.Stat(file))(t).Size()
		tool(t, "strip", file)
		if after := fatal.Or(os.Stat(file))(t).Size(); after >= before {
			t.Errorf("strip leaves %d of %d bytes", after, before)
		}
		expect.Equal(t, idOf(t, file), want, "stripped: ID")
	}
	f := fatal.Or(os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0))(t)
	_ = fatal.Or(f.WriteString("signature"))(t)
	fatal.If(t, f.Close())
	expect.Equal(t, idOf(t, file), want, "signed: ID")
}

// Programs for Windows and macOS have their build ID in the text.
func TestIDInText(t *testing.T) {
	const id = `AAAAAAAAAAAAAAAAAAAA/BBBBBBBBBBBBBBBBBBBB/cccccccc-_ccccccccc0/DDDDDDDDDDDDDDDDDDDD`
	note := idOf(t, written(t, "\x7fELF\x04\x00\x00\x00\x53\x00\x00\x00\x04\x00\x00\x00Go\x00\x00"+id+"\x00 code"))
	if text := idOf(t, written(t, "MZ\x90 \xff Go build ID: \""+id+"\"\n \xff code")); text != note {
		t.Errorf("ID %s in the text, %s in a note", text, note)
	}
}

// Without a build ID, as some build systems link, the whole file counts.
func TestIDWithoutBuildID(t *testing.T) {
	for _, flag := range []string{"-ldflags=-buildid=", "-ldflags=-buildid=redacted"} {
		if a, b := idOf(t, built(t, "shop", flag)), idOf(t, built(t, "shelf", flag)); a == b {
			t.Errorf("%s: two programs have the ID %s", flag, a)
		}
	}
	long := strings.Repeat("x", beginning)
	if a, b := idOf(t, written(t, long+"a")), idOf(t, written(t, long+"b")); a == b {
		t.Errorf("two files have the ID %s", a)
	}
	if a, b := idOf(t, written(t, "x")), idOf(t, written(t, "y")); a == b {
		t.Errorf("two short files have the ID %s", a)
	}
}

func written(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	fatal.If(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// The running test has an ID, the same each time.
func TestOwnID(t *testing.T) {
	first := fatal.Or(Sum())(t)
	expect.Equal(t, len(first), 12, "ID", first)
	file := fatal.Or(os.Executable())(t)
	expect.Equal(t, idOf(t, file), first, "ID", first, "then")
}
