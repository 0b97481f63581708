// Package desk holds the files of the desk, the service's page for people.
//
// The sources are in web/; make desk builds dist/ from them. The built files are committed, so that a build of the
// program needs no Node.
package desk

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"path"
)

//go:embed dist
var dist embed.FS

// Policy is the Content-Security-Policy of the page: nothing in it is code but its own files, and it loads nothing from
// other hosts but pictures of items, which payloads name.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https:; connect-src " +
	"'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// File is a built file.
type File struct {
	Type string // media type
	Tag  string // entity tag, with its quotes
	Body []byte
}

// The names of the pages in [Files]. A service with a demonstration answers with Demo, whose desk includes the shop.
const (
	Index = "index.html"
	Demo  = "demo.html"
)

// Files returns the built files: the pages by their names, and the files that they load by path, such as
// "desk/index.js".
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
		files[name[len("dist/"):]] = file(name, body)
		return nil
	})
	if err != nil {
		panic("vitrine/service/desk: " + err.Error()) // the files are part of the program
	}
	files[Demo] = file(Demo, bytes.Replace(files[Index].Body, []byte("</head>"),
		[]byte("<meta name=\"demo\">\n</head>"), 1))
	return files
}

func file(name string, body []byte) File {
	sum := sha256.Sum256(body)
	return File{Type: mime.TypeByExtension(path.Ext(name)), Tag: `"` + hex.EncodeToString(sum[:8]) + `"`, Body: body}
}
