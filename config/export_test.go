package config

import (
	"testing"

	"vitrine/bandit/policy"
	"vitrine/internal/fatal"
	"vitrine/internal/settings"
	"vitrine/utility"
)

// Model makes a utility family from the catalog with its default options.
func Model(t *testing.T, kind string, features int) utility.Model {
	t.Helper()
	doc := fatal.Or(settings.Parse("x.toml", []byte("kind = \""+kind+"\"\n")))(t)
	m, _, err := settings.Pick(doc.Root(), policy.Families, settings.Dims{Features: features})
	fatal.If(t, err)
	return m
}
