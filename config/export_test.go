package config

import (
	"testing"

	"vitrine/utility"
)

// Model makes a utility family of the catalog with its default options.
func Model(t *testing.T, kind string, features int) utility.Model {
	t.Helper()
	doc, err := parse("x.toml", []byte("kind = \""+kind+"\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := pick(doc.root(), utilities, features)
	if err != nil {
		t.Fatal(err)
	}
	return m.value
}
