package importer_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/importer"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// A file in another encoding than UTF-8 is refused, with the line and the column: its categories would differ from
// the categories of requests.
func TestFileThatIsNotUTF8(t *testing.T) {
	c, err := setup.Parse([]byte(placement))
	fatal.If(t, err)
	path := filepath.Join(t.TempDir(), "log.csv")
	fatal.If(t, os.WriteFile(path, []byte("decision_id,item,chosen,brand\na,x,1,acme\na,y,0,caf\xe9\n"), 0o600))
	_, err = importer.Read(t.Context(), path, &importer.Mapping{}, c, func(*page.Imported) error { return nil })
	if err == nil || !strings.HasSuffix(err.Error(),
		`item "y": column brand: "caf\xe9" is not UTF-8: convert the file`) {
		t.Errorf("%v", err)
	}
}

// An export contains columns in place of hashed values. They are no values, in a table of an export either.
func TestColumnsOfAnExport(t *testing.T) {
	for kind, buckets := range map[string]int{"text": 3, "object": 3, "category": 3} {
		c, err := setup.Parse(fmt.Appendf(nil, `{"max_size":2,"features":[{"name":"t","kind":%q,"columns":%d}]}`, kind,
			buckets))
		fatal.If(t, err)
		for name, text := range map[string]string{
			"log.csv":   "decision_id,item,chosen,t\na,x,1,\"[0,1,0.5]\"\n",
			"log.jsonl": `{"placement":"home","decision_id":"a","time":"2026-01-02T15:04:05Z","candidates":1,"items":[{"id":"x","features":{"t":[0,1,0.5]},"revenue":1}],"shown":["x"],"status":"chosen","choice":"x"}`,
		} {
			path := filepath.Join(t.TempDir(), name)
			fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
			_, err = importer.Read(t.Context(), path, &importer.Mapping{}, c, func(*page.Imported) error { return nil })
			if err == nil || !strings.HasSuffix(err.Error(), "column t: [0,1,0.5] are columns: the values of "+
				"hashed categories, texts and objects are not in an export") {
				t.Errorf("%s, %s: %v", kind, name, err)
			}
		}
		path := filepath.Join(t.TempDir(), "log.csv")
		fatal.If(t, os.WriteFile(path, []byte("decision_id,item,chosen,t\na,x,1,\"[{\"\"year\"\":2026}]\"\n"), 0o600))
		if _, err = importer.Read(t.Context(), path, &importer.Mapping{}, c,
			func(*page.Imported) error { return nil }); err != nil {
			t.Errorf("%s: another list: %v", kind, err)
		}
	}
}

// An export holds null for a value that a category does not list. In other logs null is a missing value.
func TestUnlistedValuesOfAnExport(t *testing.T) {
	c := fatal.Or(setup.Parse([]byte(`{"max_size":2,"features":[{"name":"brand","kind":"category","values":["acme"],"allow_other":true},{"name":"from","from":"shopper","kind":"category","values":["de"],"allow_other":true}]}`)))(t)
	for name, text := range map[string]string{
		"log.csv":    "decision_id,item,chosen,brand,from,sampling_law\na,x,1,acme,,\na,y,0,,,\n",
		"log.jsonl":  `{"decision_id":"a","items":[{"id":"x","features":{"brand":"acme"}},{"id":"y","features":{"brand":null}}],"shopper":{"from":null},"shown":["x"],"status":"chosen"}`,
		"log.dsjson": `{"EventId":"a","c":{"user":{"from":null},"_multi":[{"_tag":"x","item":{"brand":"acme"}},{"_tag":"y","item":{"brand":null}}]},"_outcomes":[{"_label_cost":0,"_a":[0],"_p":[1]}],"_vitrine":{}}`,
	} {
		read := func(text string) error {
			_, err := importer.Read(t.Context(), file(t, name, []byte(text)), &importer.Mapping{}, c,
				func(d *page.Imported) error { return engine.CheckImport("home", c, d) })
			return err
		}
		fatal.If(t, read(text))
		if err := read(strings.NewReplacer("sampling_law", "other", `,"status":"chosen"`, "", `,"_vitrine":{}`, "").Replace(
			text)); err == nil || !strings.HasSuffix(err.Error(), "is missing, and the feature has no default") {
			t.Errorf("%s: %v", name, err)
		}
		if err := read(strings.ReplaceAll(text, "brand", "make")); err == nil {
			t.Errorf("%s: there is no column of the feature", name)
		}
	}
}

// Numbers are ids and times with the file's digits, however long they are.
func TestNumbersAsIDsAndTimes(t *testing.T) {
	const ids = `[1234567,9007199254740993]`
	list, _, err := read(t, "log.jsonl",
		`{"id":7000000,"time":1700000000123,"items":`+ids+`,"chosen":9007199254740993}`,
		&importer.Mapping{Format: "sessions", Columns: importer.Columns{Decision: "id", Time: "time", Item: "items",
			Chosen: "chosen"}})
	fatal.If(t, err)
	d := list[0]
	if want := strings.Split(strings.Trim(ids, "[]"), ","); !slices.Equal(d.Shown, want) || first(d) != want[1] ||
		d.Request.Decision != "7000000" || d.Time != 1700000000123e6 {
		t.Errorf("%+v, want items %q", d, want)
	}
}

// A value without a feature is listed once, by its path.
func TestUnused(t *testing.T) {
	_, r, err := read(t, "log.dsjson", `{"EventId":"x","_label_cost":-1,"a":[1,2],"p":[0.5,0.5],"c":{"u":[{"age":4,"more":1}],`+
		`"_multi":[{"_tag":"a","j":{"price":1}},{"_tag":"b","j":{"price":2}}]}}`, &importer.Mapping{Format: "dsjson"})
	fatal.If(t, err)
	expect.Equal(t, r.Unused, []string{"u.more"})
}

// A number that is NA is missing, as it is for fits.
func TestMissingNumbers(t *testing.T) {
	list, r, err := read(t, "log.csv", "decision_id,item,chosen,price\na,x,1,NA\na,y,0,2\n", &importer.Mapping{})
	if err != nil || len(list[0].Request.Items[0].Features) != 0 || r.Features[0].Missing != 1 ||
		r.Features[0].Found != 1 {
		t.Errorf("%+v, %+v, %v", list, r, err)
	}
}

// Lines of JSON may bring a new name each. Few of the names are kept.
func TestManyNames(t *testing.T) {
	expect.Equal(t, importer.Seen(3000), 2000, "names")
}

// A page may list a very large number of items: a comparison of each with all others would take minutes here.
func TestManyItems(t *testing.T) {
	ids := make([]string, 100_000)
	for i := range ids {
		ids[i] = "sku " + strconv.Itoa(i)
	}
	line := fmt.Sprintf(`{"items":["%s"],"click":"%s"}`+"\n", strings.Join(ids, `","`), ids[7])
	r, err := importer.Recognize(t.Context(), file(t, "log.jsonl", []byte(line)))
	if err != nil || r.Mapping.Columns.Item != "items" || r.Mapping.Columns.Chosen != "click" {
		t.Errorf("%+v, %v", r, err)
	}
	line = strings.Replace(line, ids[8], ids[9], 1)
	if r, err = importer.Recognize(t.Context(), file(t, "log.jsonl", []byte(line))); err != nil ||
		r.Mapping.Columns.Item == "items" {
		t.Errorf("%+v, %v", r, err)
	}
}

// Columns of lists in Parquet, which are not read, are named.
func TestNestedColumns(t *testing.T) {
	var b bytes.Buffer
	err := parquet.Write(&b, []struct {
		ID     string   `parquet:"decision_id"`
		Item   string   `parquet:"item"`
		Chosen bool     `parquet:"chosen"`
		Tags   []string `parquet:"tags"`
	}{{"a", "x", true, []string{"t"}}, {"a", "y", false, nil}})
	fatal.If(t, err)
	r, err := importer.Recognize(t.Context(), file(t, "log.parquet", b.Bytes()))
	if err != nil || !slices.Contains(r.Notes, "Columns of lists and groups are not read: tags.") {
		t.Errorf("%+v, %v", r, err)
	}
	b.Reset()
	fatal.If(t, parquet.Write(&b, []struct {
		ID    string   `parquet:"decision_id"`
		Items []string `parquet:"items"`
		Click string   `parquet:"click"`
	}{{"a", []string{"x", "y"}, "x"}, {"b", []string{"x", "z"}, ""}}))
	r, err = importer.Recognize(t.Context(), file(t, "lists.parquet", b.Bytes()))
	if err != nil || len(r.Needs) < 2 || !strings.HasPrefix(r.Needs[len(r.Needs)-1], "the table as JSON Lines, if the items are in") {
		t.Errorf("%q, %v", r.Needs, err)
	}
	b.Reset()
	fatal.If(t, parquet.Write(&b, []struct {
		ID   string   `parquet:"decision_id"`
		Item string   `parquet:"item"`
		Tags []string `parquet:"tags"`
	}{{"a", "x", []string{"t"}}, {"a", "y", nil}}))
	r, err = importer.Recognize(t.Context(), file(t, "untaken.parquet", b.Bytes()))
	if err != nil || len(r.Needs) != 1 || strings.Contains(r.Needs[0], "JSON") {
		t.Errorf("%q, %v", r.Needs, err)
	}
}
