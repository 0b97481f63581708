package items_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/importer/items"
)

// inFile writes bytes into a file of the test and returns its path.
func inFile(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	fatal.If(t, os.WriteFile(path, text, 0o600))
	return path
}

var features = []api.Feature{{Name: "price", Kind: "number", From: "item"},
	{Name: "brand", Kind: "category", From: "item", Columns: 4}}

// An item with more groups than a catalogue takes is refused.
func TestManyGroups(t *testing.T) {
	text := "id,groups\nx," + strings.Repeat("a|", 1000) + "b|c\ny,"
	for k := range 101 {
		text += fmt.Sprintf("g%d|", k)
	}
	m := fatal.Or(items.ReadMapping("", nil))(t)
	err := items.Read(inFile(t, "items.csv", []byte(text)), m, func(i *api.CatalogueItem) error {
		if i.ID != "x" || len(i.Groups) != 3 {
			t.Errorf("%+v", i)
		}
		return nil
	})
	expect.Part(err)(t, "line 3: column groups: has more than 100 groups")
}

// A file of Windows-1252 is refused, by its first line that is no UTF-8. Columns that items do not use may be anything.
func TestNotUTF8(t *testing.T) {
	text := []byte("id,price,title\na,1,Hat\nb,2,Chaussures d'\xe9t\xe9\n")
	m := fatal.Or(items.ReadMapping("", features))(t)
	visit := func(*api.CatalogueItem) error { return nil }
	expect.Part(items.Read(inFile(t, "items.csv", text), m, visit))(t,
		`items.csv: line 3: column title: "Chaussures d'\xe9t\xe9" is not UTF-8: convert the file`)
	m = fatal.Or(items.ReadMapping(inFile(t, "m.toml", []byte("columns.id = \"id\"\nfeatures.price = \"price\"\n")),
		features))(t)
	fatal.If(t, items.Read(inFile(t, "items.csv", text), m, visit))
	expect.Part(items.Read(inFile(t, "items.jsonl", []byte("{\"id\":\"a\"}\n{\"id\":\"\xe9\"}\n")), m, visit))(t,
		"UTF-8")
}

// A mapping with only a delimiter leaves the columns to their names. One of columns names the ids.
func TestDelimiterAlone(t *testing.T) {
	m := fatal.Or(items.ReadMapping(inFile(t, "m.toml", []byte("delimiter = \";\"\n")), features))(t)
	fatal.If(t, items.Read(inFile(t, "items.csv", []byte("id;price;colour\nx;2;red\n")), m,
		func(i *api.CatalogueItem) error {
			if i.ID != "x" || len(i.Features) != 1 || len(i.Attributes) != 1 {
				t.Errorf("%+v", i)
			}
			return nil
		}))
	expect.Part(items.ReadMapping(inFile(t, "m.toml", []byte("[features]\nprice = \"eur\"\n")), features))(t,
		"columns.id is missing")
}

// A window may begin before 1970: 1900-01-01 often says that an item is always valid.
func TestOldWindow(t *testing.T) {
	m := fatal.Or(items.ReadMapping("", nil))(t)
	read := func(from string) error {
		return items.Read(inFile(t, "items.csv", []byte("id,valid_from,valid_until\nx,"+from+",\"\"\n")), m,
			func(i *api.CatalogueItem) error {
				if i.ValidFrom == nil || i.ValidFrom.Format("2006-01-02") != from || i.ValidUntil != nil {
					t.Errorf("%s: %+v", from, i)
				}
				return nil
			})
	}
	fatal.If(t, read("1900-01-01"))
	expect.Part(read("ever"))(t, `column valid_from: "ever" is not a time`)
}

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
		m := fatal.Or(items.ReadMapping(mapped, features))(t)
		_ = items.Read(inFile(t, "items", text), m, func(item *api.CatalogueItem) error {
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
		m, err := items.ReadMapping(inFile(t, "mapping.toml", text), features)
		if (m == nil) == (err == nil) {
			t.Errorf("%+v, %v", m, err)
		}
	})
}
