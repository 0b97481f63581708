// Package desk is the page for people: its built files, and how they are asked for.
//
// The sources are in web/; make desk builds dist/ from them. The built files are committed, so that a build of the
// program needs no Node.
package desk

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"path"
)

//go:embed dist
var dist embed.FS

// Policy is the Content-Security-Policy of the page: it loads nothing from other hosts, and nothing in it is code but
// its own files.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// File is a built file.
type File struct {
	Type string // media type
	Tag  string // entity tag, with its quotes
	Body []byte
}

// Files returns the built files by their path below the page: "index.html", "desk/index.js".
func Files() map[string]File {
	files := map[string]File{}
	err := fs.WalkDir(dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		files[name[len("dist/"):]] = File{
			Type: mime.TypeByExtension(path.Ext(name)),
			Tag:  `"` + hex.EncodeToString(sum[:8]) + `"`,
			Body: body,
		}
		return nil
	})
	if err != nil {
		panic("vitrine/service/desk: " + err.Error()) // the files are part of the program
	}
	return files
}
