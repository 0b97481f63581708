package keys

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	_ "vitrine/internal/rapidseed"
)

// Changes that are made at once are all made.
func TestKeyFileIsChangedByOneAtATime(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are not locked")
	}
	path := filepath.Join(t.TempDir(), "keys.toml")
	const n = 20
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			f, err := EditFile(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			_, k := New(fmt.Sprintf("k%d", i), ScopeRead)
			expect.Error(t, f.Add(k), nil)
		})
	}
	all.Wait()
	if f, err := ReadFile(path); err != nil || len(f.Keys()) != n {
		t.Errorf("%d keys of %d, %v", len(f.Keys()), n, err)
	}
	expect.Fails(EditFile(filepath.Join(filepath.Dir(path), "missing", "keys.toml")))(t, fs.ErrNotExist)
}

// Keys come and go, and every comment stays.
func TestKeyFileKeepsWhatItIsNotAskedAbout(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "keys.toml")
		text := "# head\n\n"
		var names []string
		for i := range rapid.IntRange(1, 4).Draw(t, "keys") {
			_, k := New(fmt.Sprintf("k%d", i), ScopeRead)
			names = append(names, k.Name)
			text += fmt.Sprintf("# above %d\n[[key]]%s\nscopes = [ # s\n 'read']\nname = %q\n%s sha256 = '%s'%s",
				i, rapid.SampledFrom([]string{"", " # x"}).Draw(t, "beside"), k.Name,
				rapid.SampledFrom([]string{"", "\n\t"}).Draw(t, "indent"), k.SHA256,
				rapid.SampledFrom([]string{"\n", "\n\n", "\n# below\n\n"}).Draw(t, "after"))
		}
		if rapid.Bool().Draw(t, "cut") {
			text = strings.TrimRight(text, "\n")
		}
		fatal.If(t, os.WriteFile(path, []byte(text), 0o644))
		comments := whole.FindAllString(text, -1)
		for n := range rapid.IntRange(1, 5).Draw(t, "changes") {
			f, err := ReadFile(path)
			fatal.If(t, err)
			if i := rapid.IntRange(-1, len(names)-1).Draw(t, "which"); i < 0 || len(names) == 1 {
				name := fmt.Sprintf("n%d", n)
				_, k := New(name, ScopeDecide, ScopeOutcome)
				err, names = f.Add(k), append(names, name)
			} else {
				err, names = f.Remove(names[i]), slices.Delete(names, i, i+1)
			}
			fatal.If(t, err)
		}
		keys := fatal.Or(read(path))(t)
		var got []string
		for _, k := range keys {
			got = append(got, k.Name)
		}
		after := fatal.Or(os.ReadFile(path))(t)
		if !slices.Equal(got, names) || !slices.Equal(whole.FindAllString(string(after), -1), comments) {
			t.Fatalf("keys %q, want %q, in\n%s\nof\n%s", got, names, after, text)
		}
	})
}

// whole are the lines with only a comment.
var whole = regexp.MustCompile(`(?m)^#.*$`)

func TestKeyFileBehindALink(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "real.toml"), filepath.Join(dir, "keys.toml")
	f, err := ReadFile(path)
	if err != nil || len(f.Keys()) != 0 {
		t.Fatal(err)
	}
	add := func(f *File, name string) {
		t.Helper()
		_, k := New(name, ScopeRead)
		fatal.If(t, f.Add(k))
	}
	add(f, "a")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	if f, err = ReadFile(link); err != nil {
		t.Fatal(err)
	}
	add(f, "b")
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%v, %v: the link is gone", info.Mode(), err)
	}
	if keys, err := read(path); err != nil || len(keys) != 2 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	expect.Fails(f.Find("c"))(t, ErrMissing)
	expect.Refused(ReadFile(dir))(t, "a directory is no file")
}
