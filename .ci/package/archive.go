package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"os"
	"path"
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
func (r *release) archive(target string) {
	dir := "vitrine_" + r.Version + "_" + strings.ReplaceAll(target, "/", "_")
	list := []file{{name: "vitrine", body: r.program(target), mode: 0o755}}
	pack, name := tarGz, dir+".tar.gz"
	if strings.HasPrefix(target, "windows/") {
		list[0].name, pack, name = "vitrine.exe", zipped, dir+".zip"
	}
	body := pack(below(dir, append(list, r.common...)), r.date)
	r.Archives[target] = archive{name, sha256.Sum256(body)}
	r.write(name, body)
}

// deploy packs the files of deploy/.
func (r *release) deploy() {
	names := command(r.root, "git", "ls-files", "--cached", "--others", "--exclude-standard", "deploy",
		":!deploy/testdata")
	var list []file
	for name := range strings.Lines(string(names)) {
		name = strings.TrimSuffix(name, "\n")
		list = append(list, file{name: strings.TrimPrefix(name, "deploy/"), body: r.read(name)})
	}
	dir := "vitrine_" + r.Version + "_deploy"
	r.write(dir+".tar.gz", tarGz(below(dir, list), r.date))
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

func tarGz(list []file, date time.Time) []byte {
	var out bytes.Buffer
	z := must(gzip.NewWriterLevel(&out, gzip.BestCompression))
	must(z.Write(tarred(list, date)))
	check(z.Close())
	return out.Bytes()
}

func tarred(list []file, date time.Time) []byte {
	var out bytes.Buffer
	t := tar.NewWriter(&out)
	for _, f := range sorted(list) {
		h := &tar.Header{Name: f.name, Size: int64(len(f.body)), Mode: cmp.Or(f.mode, 0o644), Uid: f.user, Gid: f.user,
			ModTime: date, Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag, h.Mode = tar.TypeDir, cmp.Or(f.mode, 0o755)
		}
		check(t.WriteHeader(h))
		must(t.Write(f.body))
	}
	check(t.Close())
	return out.Bytes()
}

func zipped(list []file, date time.Time) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range sorted(list) {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		h.SetMode(os.FileMode(cmp.Or(f.mode, 0o644)))
		w := must(z.CreateHeader(h))
		must(w.Write(f.body))
	}
	check(z.Close())
	return out.Bytes()
}
