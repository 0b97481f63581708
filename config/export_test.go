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
	doc := fatal.Or(settings.Parse("x.toml", []byte("kind = \""+kind+"\"\n")))(t)
	m := fatal.Or(settings.Pick(doc.Root(), policy.Families, features))(t)
	return m.Value
}
