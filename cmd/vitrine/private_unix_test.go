//go:build unix

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vitrine/internal/fatal"
)

// Decisions and learned states are in files that only their owner may read: the log, its mark, snapshots and bases, and
// backups of these. The data directory may be open to others, because an operator or a package made it.
func TestFilesArePrivate(t *testing.T) {
	defer unix.Umask(unix.Umask(0o022))
	file, data := serviceFile(t, "[snapshots]\nevery = \"50ms\"\n[retention]\nage = \"1d\"\n")
	fatal.If(t, os.Mkdir(data, 0o755))
	p := program.Serve(t, file)
	url := p.Listening()
	ask(t, 201, "PUT", url+"/v1/placements/home", `{"max_size":1,"features":[{"name":"x","kind":"number"}]}`)
	ask(t, 201, "POST", url+"/v1/placements/home/decisions",
		`{"decision_id":"a","items":[{"id":"sku","features":{"x":1}}]}`)
	base := filepath.Join(data, "bases", "*.snapshot")
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if found, _ := filepath.Glob(base); len(found) > 0 {
			break
		}
	}
	p.Stop()
	backup := filepath.Join(filepath.Dir(data), "backup")
	if output, code := command(t, "backup", data, backup); code != 0 {
		t.Fatal(output)
	}
	seen := map[string]bool{}
	for _, root := range []string{data, backup} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == data {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			want := fs.FileMode(0o600)
			if d.IsDir() {
				want = 0o700
			}
			if mode := info.Mode().Perm(); mode&^want != 0 {
				t.Errorf("%s has the mode %v, want %v", path, mode, want)
			}
			seen[d.Name()] = true
			return nil
		})
		fatal.If(t, err)
	}
	found, _ := filepath.Glob(base)
	if !seen["mark"] || !seen["state.snapshot"] || len(found) == 0 {
		t.Errorf("saw only %v", seen)
	}
}
