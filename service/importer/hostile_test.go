package importer_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/importer"
	"vitrine/service/importer/items"
)

// Reading takes time and memory in proportion to the file, even if all of it is one decision, or one list of items. Each
// of these files took minutes, or all memory, where a pair of loops or a table of all members and objects met it.
func TestHostileFiles(t *testing.T) {
	importer.SetMaxRows(t, 150_000)
	const many = 100_000
	list := func(line string) string { return strings.TrimSuffix(numbers(line, many), ",") }
	items := filepath.Join(t.TempDir(), "item_context.csv")
	fatal.If(t, os.WriteFile(items, []byte("item_id,price\n"+list("i%d,1\n")), 0o600))
	nested := importer.Columns{Item: "items.sku", Chosen: "items.click"}
	lists := importer.Columns{Item: "items", Chosen: "click"}
	for name, c := range map[string]struct {
		text    string
		mapping importer.Mapping
		want    string // of the error; "" if the decision is left out
	}{
		"items of Open Bandit": {"item_id,click,propensity_score\ni7,1,.5\n", importer.Mapping{Format: "obp",
			Items: items}, "has more than 1000 elements: the placement takes at most 1000 items"},
		"rows of Open Bandit": {"decision_id,item_id,click,propensity_score\n" + list("a,i%d,1,.5\n"),
			importer.Mapping{Format: "obp", Items: items}, ""},
		"items taken": {"decision_id,item,chosen\n" + list("a,i%d,1\n"), importer.Mapping{Format: "csv"}, ""},
		"events": {"decision_id,item,kind\n" + list("a,i%[1]d,shown\na,i%[1]d,bought\n"), importer.Mapping{
			Format: "csv", Events: &importer.Events{Column: "kind", Shown: "shown", Chosen: "bought"}},
			"decision \"a\" has more than 150000 rows: does column decision_id identify decisions?"},
		"choices": {`{"decision_id":"a","items":[{"id":"x"}],"shown":["x"],"choices":[` + list(`{"item":"i%d"},`) + `]}`,
			importer.Mapping{Format: "jsonl"}, ""},
		"members": {`{"items":[` + list(`{"sku":"i%[1]d","m%[1]d":1},`) + `]}`, importer.Mapping{Format: "sessions",
			Columns: nested}, "its lists of objects have "},
		"lists": {`{"items":[` + list(`"i%d",`) + `],"click":"i1",` + list(`"m%d":[1],`) + `}`, importer.Mapping{
			Format: "sessions", Columns: lists}, ""},
		"depth": {strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), importer.Mapping{Format: "sessions",
			Columns: lists}, "lists and objects are nested more than 99 deep"},
	} {
		_, r, err := read(t, "log", c.text, &c.mapping)
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 500 {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case r.Skipped["show more than 1000 items"] != 1:
			t.Errorf("%s: %+v", name, r.Skipped)
		}
	}
}

// A small compressed file may hold a line that would fill all memory.
func TestLongLines(t *testing.T) {
	for name, start := range map[string]string{
		"a quote": "decision_id,item,chosen\n\"", "a member": `{"decision_id":"`, "an item": `{"id":"`,
		"an event": `{"Timestamp":"`,
	} {
		path := filepath.Join(t.TempDir(), "log.csv.gz")
		f := fatal.Or(os.Create(path))(t)
		w := gzip.NewWriter(f)
		fatal.Or(w.Write([]byte(start)))(t)
		for range 65 {
			fatal.Or(w.Write(bytes.Repeat([]byte("x"), 1<<20)))(t)
		}
		fatal.If(t, w.Close())
		fatal.If(t, f.Close())
		m := &importer.Mapping{Format: "csv"}
		if name == "an event" {
			m.Format = "dsjson"
		}
		l, err := importer.Open(t.Context(), path, m)
		if err == nil {
			defer l.Close()
			_, err = l.Survey(t.Context())
		}
		if name == "an item" {
			err = items.Read(path, fatal.Or(items.ReadMapping("", nil))(t),
				func(*api.CatalogueItem) error { return nil })
		}
		if err == nil || !strings.Contains(err.Error(), "a line is longer than 67108864 bytes: end each record with "+
			"a line break") || strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}

func numbers(line string, n int) string {
	var b strings.Builder
	for k := range n {
		fmt.Fprintf(&b, line, k)
	}
	return b.String()
}
