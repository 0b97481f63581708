package importer_test

import (
	"os"
	"path/filepath"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/importer"
)

// inFile writes bytes into a file of the test and returns its path.
func inFile(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	fatal.If(t, os.WriteFile(path, text, 0o600))
	return path
}

var itemFeatures = []api.Feature{{Name: "price", Kind: "number", From: "item"},
	{Name: "brand", Kind: "category", From: "item", Columns: 4}}

// Any file's items get ids, or an error names the file.
func FuzzItemsFile(f *testing.F) {
	for _, text := range []string{
		"id,price,brand\na,1.5,acme\nb,,zen\n", "id;price\n",
		`{"id":"a","features":{"price":1,"brand":"acme"},"revenue":2,"groups":["g"]}` + "\n" + `{"id":"b"}`,
		`{"id":1,"price":"2"}`, `{"id":"a","price":[1,{}]}`, "PAR1", "", "{", "\"", "id,id\na,b\n",
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, given bool) {
		mapped := ""
		if given {
			mapped = inFile(t, "mapping.toml", []byte("[columns]\nid = \"id\"\nrevenue = "+
				"\"price\"\n[features]\nprice = \"price\"\n"))
		}
		m := fatal.Or(importer.ReadItemMapping(mapped, itemFeatures))(t)
		_ = importer.ReadItems(inFile(t, "items", text), m, func(item *api.CatalogueItem) error {
			if item.ID == "" {
				t.Error("an item without an id")
			}
			return nil
		})
	})
}

// Any mapping of items is read, or an error names its file.
func FuzzItemsMapping(f *testing.F) {
	for _, text := range []string{"", "[columns]\nid = \"sku\"\nrevenue = \"margin\"\ngroups = " +
		"[\"shelf\"]\n[features]\nbrand = \"make\"\n", "[attributes]\ncolour = \"colour\"\n", "columns.id = 1",
		"[features"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := importer.ReadItemMapping(inFile(t, "mapping.toml", text), itemFeatures)
		if (m == nil) == (err == nil) {
			t.Errorf("%+v, %v", m, err)
		}
	})
}
