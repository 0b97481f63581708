package config

import (
	"testing"

	"vitrine/internal/fatal"
	"vitrine/internal/policy"
	"vitrine/internal/settings"
	"vitrine/utility"
)

// Model makes a utility family of the catalog with its default options.
func Model(t *testing.T, kind string, features int) utility.Model {
	t.Helper()
	doc, err := settings.Parse("x.toml", []byte("kind = \""+kind+"\"\n"))
	fatal.If(t, err)
	m, err := settings.Pick(doc.Root(), policy.Families, features)
	fatal.If(t, err)
	return m.Value
}
