package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/server"
	"vitrine/service/setup"
)

// shop is a service with a placement, the flags that name it, and a directory of files.
type itemShop struct {
	*testing.T
	dir, url string
}

func openItemShop(t *testing.T) *itemShop {
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: new(memlog.Store), Build: setup.NewLearner}))(t)
	config := `{"max_size":2,"policy":{"name":"greedy"},"features":[{"name":"price","kind":"number","max":3000},{"name":"brand","kind":"category","default":"none"},{"name":"age","kind":"number","from":"shopper"}]}`
	fatal.Or(e.Put(t.Context(), "home", []byte(config), 0))(t)
	s := httptest.NewServer(server.New(server.Options{Engine: e}))
	t.Cleanup(func() { s.Close(); e.Close() })
	return &itemShop{t, t.TempDir(), s.URL}
}

func (s *itemShop) file(name, text string) string {
	path := filepath.Join(s.dir, name)
	fatal.If(s, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func (s *itemShop) run(args ...string) (out, errs string, code int) {
	return vitrineRun(s.T, append(args, "--url", s.url, "--placement", "home")...)
}

func (s *itemShop) push(want string, args ...string) {
	s.Helper()
	if _, said, code := s.run(append([]string{"items", "push"}, args...)...); code != 0 ||
		!strings.Contains(said, want) {
		s.Fatalf("exit status %d: %s, want %s", code, said, want)
	}
}

func (s *itemShop) list() string {
	s.Helper()
	out, said, code := s.run("items", "list")
	if code != 0 {
		s.Fatalf("exit status %d: %s", code, said)
	}
	return out
}

const mappingText = `
[columns]
id = "sku"
revenue = "margin"
available = "stock"
groups = ["collection"]
payload = ["title"]
[features]
price = "eur"
brand = "maker"
[attributes]
season = "season"
rating = "stars"
`

const wantItems = `{"id":"a","features":{"price":1.5,"brand":"acme"},"revenue":2,"groups":["x","y"],"available":true,"attributes":{"rating":4,"season":"summer"},"payload":{"title":"Boots, \"high\""}}
{"id":"b","features":{"price":2},"available":false,"payload":{"title":"Hat"}}
`

// A table in any form is the same items.
func TestPushForms(t *testing.T) {
	type line struct {
		SKU        string   `parquet:"sku"`
		Margin     *float64 `parquet:"margin,optional"`
		Stock      bool     `parquet:"stock"`
		Collection *string  `parquet:"collection,optional"`
		Title      string   `parquet:"title"`
		EUR        float32  `parquet:"eur"`
		Maker      *string  `parquet:"maker,optional"`
		Season     *string  `parquet:"season,optional"`
		Stars      *int32   `parquet:"stars,optional"`
	}
	var table bytes.Buffer
	fatal.If(t, parquet.Write(&table, []line{
		{"a", new(2.0), true, new("x | y"), `Boots, "high"`, 1.5, new("acme"), new("summer"), new(int32(4))},
		{SKU: "b", Title: "Hat", EUR: 2},
	}))
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	io.WriteString(z, "\n "+`{"sku":"a","margin":2,"stock":true,"collection":"x|y","title":"Boots, \"high\"","eur":1.5,"maker":"acme","season":"summer","stars":4}
{"sku":"b","stock":false,"title":"Hat","eur":2}`)
	fatal.If(t, z.Close())
	for name, text := range map[string]string{
		"items.jsonl.gz": zipped.String(),
		"items.csv": "sku,margin,stock,collection,title,eur,maker,season,stars,more\na,2,yes,x | y,\"Boots, " +
			"\"\"high\"\"\",1.5,acme,summer,4,1\nb,,0,,Hat,2,,,,\n",
		"items.jsonl": `{"sku":"a","margin":2,"stock":true,"collection":"x|y","title":"Boots, \"high\"","eur":1.5,"maker":"acme","season":"summer","stars":4}
{"sku":"b","margin":null,"stock":false,"title":"Hat","eur":2}`,
		"items.parquet": table.String(),
	} {
		t.Run(name, func(t *testing.T) {
			s := openItemShop(t)
			mapping, path := s.file("m.toml", mappingText), s.file(name, text)
			s.push("2 items in the file: 2 changed, 0 deleted", path, "--mapping", mapping)
			want := strings.Replace(wantItems, `,"available":true`, "", 1)
			expect.Equal(t, s.list(), want)
			s.push("2 items in the file: 0 changed, 0 deleted", path, "--mapping", mapping)
		})
	}
}

// Without a mapping the names of columns and members give their meaning. A list can be pushed again, in part or as a
// replacement.
func TestPushAndList(t *testing.T) {
	s := openItemShop(t)
	s.push("2 changed", s.file("a.csv", "id,price,brand,revenue,space,valid_from,valid_until,colour,ean\na,1,acme,3,0.5,2020-01-01T00:00:00Z,2030-01-01T00:00:00Z,true,NaN\nb,2,,,,,,7,9007199254740993\n"))
	want := `{"id":"a","features":{"price":1,"brand":"acme"},"revenue":3,"space":0.5,"valid_from":"2020-01-01T00:00:00Z","valid_until":"2030-01-01T00:00:00Z","attributes":{"colour":true,"ean":"NaN"}}
{"id":"b","features":{"price":2},"attributes":{"colour":7,"ean":"9007199254740993"}}
`
	list := s.list()
	expect.Equal(fatal.T(t), list, want)
	s.push(`list.jsonl: item "b" has no revenue and counts as 1, although other items set one
vitrine: 2 items in the file: 0 changed`, s.file("list.jsonl", list))
	s.push("the catalogue lacks 1 item of the file", s.file("prices.jsonl", `{"id":"a","revenue":4}
{"id":"z","revenue":4}`), "--patch")
	expect.Contains(t, s.list(), `"revenue":4,"space":0.5`, "after a patch")
	s.push("2 items in the file: 0 changed", s.file("marked.jsonl", "\ufeff"+list[strings.Index(list, "\n{")+1:]+`{"id":"a","revenue":4}`), "--patch")
	s.push("1 item in the file: 1 changed, 2 deleted", s.file("c.csv", "id,price\nc,1\n"), "--replace")
	expect.Equal(t, s.list(), `{"id":"c","features":{"price":1}}`+"\n", "after a replacement")
	// A column without a name, such as the index of a data frame, is ignored.
	s.push("1 item in the file: 0 changed", s.file("frame.csv", ",id,price,\n0,c,1,\n"))
}

// A file that lacks too many of the catalogue's items, such as one that was cut off, is refused before anything is sent.
func TestReplaceByACutFile(t *testing.T) {
	s := openItemShop(t)
	rows := strings.SplitAfter(manyRows(), "\n")
	s.push("1200 changed", s.file("all.csv", strings.Join(rows, "")))
	list := s.list()
	cut := s.file("cut.csv", strings.Replace(strings.Join(rows[:601], ""), "i0,1", "i0,9", 1))
	_, said, code := s.run("items", "push", cut, "--replace")
	if code == 0 || !strings.Contains(said, "cut.csv lacks 600 of the catalogue's 1200 items, which --replace would "+
		"delete: no item was sent") || !strings.Contains(said, "add --may-delete 600") {
		t.Errorf("exit status %d: %s", code, said)
	}
	expect.Equal(t, s.list(), list, "after the refusal")
	if _, said, code = s.run("items", "push", cut, "--replace", "--may-delete", "599"); code == 0 {
		t.Errorf("one more than allowed: %s", said)
	}
	if _, said, code = s.run("items", "push", s.file("one.csv", strings.Join(rows[:1200], "")), "--replace",
		"--may-delete", "0"); code == 0 {
		t.Errorf("no deletion is allowed: %s", said)
	}
	s.push("600 items in the file: 1 changed, 600 deleted", cut, "--replace", "--may-delete", "600")
	s.push("120 deleted", s.file("fifth.csv", strings.Join(rows[:481], "")), "--replace")
}

// A patch is checked before anything is sent, too. It changes only the members of a payload that the file has.
func TestPatchFiles(t *testing.T) {
	s := openItemShop(t)
	mapping := s.file("m.toml", "[columns]\nid = \"id\"\nrevenue = \"margin\"\npayload = [\"title\", \"stock\"]\n[features]\nprice = \"price\"\n")
	s.push("1 changed", s.file("a.csv", "id,margin,title,stock,price\na,1,Boots,7,2\n"), "--mapping", mapping)
	prices := s.file("p.toml", "[columns]\nid = \"id\"\nrevenue = \"margin\"\npayload = [\"stock\"]\n")
	s.push("1 changed", s.file("p.csv", "id,margin,stock\na,3,6\n"), "--mapping", prices, "--patch")
	want := `{"id":"a","features":{"price":2},"revenue":3,"payload":{"stock":"6","title":"Boots"}}` + "\n"
	expect.Equal(t, s.list(), want, "after a patch")
	s.push("0 changed", filepath.Join(s.dir, "p.csv"), "--mapping", prices, "--patch")
	_, said, code := s.run("items", "push", s.file("bad.csv", "id,margin,stock\na,4,6\nb,-1,6\n"), "--mapping", prices, "--patch")
	if code == 0 || !strings.Contains(said, `bad.csv: line 3: item "b": /revenue: -1: must be`) {
		t.Errorf("exit status %d: %s", code, said)
	}
	expect.Equal(t, s.list(), want, "after a bad patch")
}

// Prices in another unit are noticed.
func TestPushInCents(t *testing.T) {
	s := openItemShop(t)
	s.push("is the unit right?", s.file("cents.csv", "id,cents\na,9900\nb,9\n"), "--mapping", s.file("m.toml", "[columns]\nid = \"id\"\n[features]\nprice = \"cents\"\n"))
}

// manyRows are more items than fit into one request.
func manyRows() string {
	text := "id,price\n"
	for i := range 1200 {
		text += fmt.Sprintf("i%d,1\n", i)
	}
	return text
}

// A bad file is refused before anything is sent, and the error names the row and the column.
func TestBadPushes(t *testing.T) {
	s := openItemShop(t)
	mapping := s.file("m.toml", mappingText)
	var nested bytes.Buffer
	fatal.If(t, parquet.Write(&nested, []struct {
		ID   string   `parquet:"id"`
		Tags []string `parquet:"tags"`
	}{{"a", []string{"x"}}}))
	for _, c := range []struct {
		name, text string
		args       []string
		want       string
	}{
		{"twice.csv", "id,price\na,1\nb,1\na,2\n", nil,
			`twice.csv: line 4: item "a" is there before, with different values`},
		{"number.csv", "id,price\na,1\nb,cheap\n", nil,
			`number.csv: line 3: column price of feature price: "cheap" is not a finite number`},
		{"noid.csv", "sku,price\na,1\n", nil,
			`noid.csv: there is no column "id": the columns are sku, price: name the column of ids with --mapping`},
		{"mapped.csv", "sku,eur\na,1\n", []string{"--mapping", mapping},
			`there is no column "margin": the columns are sku, eur`},
		{"empty.csv", "", nil, "empty.csv: the file is empty"},
		{"none.csv", "id,price\n", nil, "has no items"},
		{"columns.csv", "id,price,price\n", nil, `line 1 has the column "price" twice`},
		{"cut.jsonl", `{"id":"a","features":{"price":1}}` + "\n" + `{"id":`, nil, "cut.jsonl: item 2: "},
		{"key.jsonl", `{"id":"a","prize":1}`, nil, "item 1: /prize: unknown key"},
		{"noid.jsonl", `{"features":{"price":1}}`, nil, "item 1: has no id"},
		{"nested.parquet", nested.String(), nil, "column tags holds lists or groups, which are no values of an " +
			"item: name the columns to use with --mapping"},
		{"bad.parquet", "PAR1 is not a table", nil, "bad.parquet: "},
		{"time.csv", "id,price,valid_from\na,1,yesterday\n", nil,
			`line 2: column valid_from: "yesterday" is not a time`},
		{"stock.csv", "id,price,available\na,1,perhaps\n", nil,
			`line 2: column available: "perhaps" is neither 0 nor 1`},
		{"missing.csv", "id,brand\na,acme\n", nil,
			`missing.csv: line 2: item "a": /features/price: is missing, and the feature has no default`},
		{"late.csv", manyRows() + "z,\n", nil, `late.csv: line 1202: item "z": /features/price: is missing`},
		{"spaces.csv", "id,price,space\na,1,0.1234567\n", nil, `line 2: item "a": /space: `},
		{"both.csv", "id,price\na,1\n", []string{"--patch", "--replace"}, "do not go together"},
		{"map.csv", "id,price\na,1\n", []string{"--mapping", s.file("bad.toml", "columns = { id = \"id\" }\n[features]\ncolour = \"c\"\n")},
			"features.colour: the placement has no feature of items of this name: it has brand, price"},
		{"key.csv", "id,price\na,1\n", []string{"--mapping", s.file("key.toml", "sku = \"c\"\n")},
			`key.toml:1: unknown key "sku"`},
		{"list.json", `[{"id":"a","features":{"price":1}}]`, nil,
			"list.json: the file is one list of JSON: write an object a line, without [ and ] around them"},
	} {
		_, said, code := s.run(append([]string{"items", "push", s.file(c.name, c.text)}, c.args...)...)
		if code == 0 || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit status %d: %s, want %s", c.name, code, said, c.want)
		}
	}
	expect.Equal(t, s.list(), "", "the catalogue has")
	if _, errs, code := vitrineRun(t, "items", "list", "--url", s.url, "--placement", "nowhere"); code != 1 ||
		!strings.Contains(errs, `placement "nowhere": not found`) {
		t.Errorf("exit status %d: %s", code, errs)
	}
}
