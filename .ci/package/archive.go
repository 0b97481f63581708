package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is a file of an archive, or a directory if the name ends with a slash.
type file struct {
	name string // with slashes
	body []byte
	mode int64 // 0644, or 0755 for a directory, if 0
	user int   // its owner and group
}

// archive packs a program with the common files.
func (r *release) archive(target string) error {
	program, err := r.program(target)
	if err != nil {
		return err
	}
	dir := "vitrine_" + r.Version + "_" + strings.ReplaceAll(target, "/", "_")
	list := []file{{name: "vitrine", body: program, mode: 0o755}}
	write, name := writeTarGz, dir+".tar.gz"
	if strings.HasPrefix(target, "windows/") {
		list[0].name, write, name = "vitrine.exe", writeZip, dir+".zip"
	}
	var out bytes.Buffer
	if err := write(&out, below(dir, append(list, r.common...)), r.date); err != nil {
		return err
	}
	r.Archives[target] = archive{name, sha256.Sum256(out.Bytes())}
	return os.WriteFile(filepath.Join(r.out, name), out.Bytes(), 0o644)
}

// deploy packs the files of deploy/.
func (r *release) deploy() error {
	names, err := command(r.root, "git", "ls-files", "--cached", "--others", "--exclude-standard", "deploy",
		":!deploy/testdata")
	if err != nil {
		return err
	}
	var list []file
	for name := range strings.Lines(string(names)) {
		name = strings.TrimSuffix(name, "\n")
		body, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return err
		}
		list = append(list, file{name: strings.TrimPrefix(name, "deploy/"), body: body})
	}
	dir := "vitrine_" + r.Version + "_deploy"
	var out bytes.Buffer
	if err := writeTarGz(&out, below(dir, list), r.date); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, dir+".tar.gz"), out.Bytes(), 0o644)
}

// below puts files into a directory.
func below(dir string, list []file) (moved []file) {
	for _, f := range list {
		f.name = path.Join(dir, f.name)
		moved = append(moved, f)
	}
	return moved
}

// sorted returns files in the order of their names, so that archives do not depend on the caller's.
func sorted(list []file) []file {
	return slices.SortedFunc(slices.Values(list), func(a, b file) int { return cmp.Compare(a.name, b.name) })
}

func writeTarGz(w io.Writer, list []file, date time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := writeTar(z, list, date); err != nil {
		return err
	}
	return z.Close()
}

func writeTar(w io.Writer, list []file, date time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range sorted(list) {
		h := &tar.Header{Name: f.name, Size: int64(len(f.body)), Mode: cmp.Or(f.mode, 0o644), Uid: f.user, Gid: f.user,
			ModTime: date, Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag, h.Mode = tar.TypeDir, cmp.Or(f.mode, 0o755)
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.body); err != nil {
			return err
		}
	}
	return t.Close()
}

func writeZip(w io.Writer, list []file, date time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range sorted(list) {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		h.SetMode(os.FileMode(cmp.Or(f.mode, 0o644)))
		part, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := part.Write(f.body); err != nil {
			return err
		}
	}
	return z.Close()
}
