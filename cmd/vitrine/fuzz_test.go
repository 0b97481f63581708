package main

import (
	"os"
	"path/filepath"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/api"
)

// inFile writes bytes into a file of the test and returns its path.
func inFile(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	fatal.If(t, os.WriteFile(path, text, 0o600))
	return path
}

var itemFeatures = []api.Feature{{Name: "price", Kind: "number", From: "item"}, {Name: "brand", Kind: "category", From: "item", Buckets: 4}}

// Whatever the bytes, the items of a file have ids, or an error names the file.
func FuzzItemsFile(f *testing.F) {
	for _, text := range []string{
		"id,price,brand\na,1.5,acme\nb,,zen\n", "id;price\n", `{"id":"a","features":{"price":1,"brand":"acme"},"revenue":2,"groups":["g"]}` + "\n" + `{"id":"b"}`,
		`{"id":1,"price":"2"}`, `{"id":"a","price":[1,{}]}`, "PAR1", "", "{", "\"", "id,id\na,b\n",
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, given bool) {
		mapped := ""
		if given {
			mapped = inFile(t, "mapping.toml", []byte("id = \"id\"\nrevenue = \"price\"\n[features]\nprice = \"price\"\n"))
		}
		m := fatal.Or(readMapping(mapped, itemFeatures))(t)
		_ = readItemFile(inFile(t, "items", text), m, func(item *api.CatalogueItem) error {
			if item.ID == "" {
				t.Error("an item without an id")
			}
			return nil
		})
	})
}

// Whatever the bytes, a mapping of items is read or an error names its file.
func FuzzItemsMapping(f *testing.F) {
	for _, text := range []string{"", "id = \"sku\"\nrevenue = \"margin\"\ngroups = [\"shelf\"]\n[features]\nbrand = \"make\"\n", "[attributes]\ncolour = \"colour\"\n", "id = 1", "[features"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := readMapping(inFile(t, "mapping.toml", text), itemFeatures)
		if (m == nil) == (err == nil) {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

// Whatever the bytes, a policy to judge is read or an error names its file.
func FuzzJudged(f *testing.F) {
	for _, text := range []string{
		"", "show = \"items\"\nitems = [\"a\", \"b\"]\nsize = 2\n", "show = \"policy\"\n[policy]\nname = \"ucb-mnl\"\n", "show = \"model\"\nmodel = \"model.json\"\n",
		"show = \"uniform\"\nsize = -1\n", "show = \"best\"\nnam = \"x\"\n", "show = 3", "[policy",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := readJudged(inFile(t, "policy.toml", text))
		if (p == nil) == (err == nil) {
			t.Errorf("%+v, %v", p, err)
		}
	})
}
