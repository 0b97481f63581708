package importer_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/importer"
	"vitrine/service/page"
	"vitrine/service/setup"
)

const placement = `{"max_size":2,"log_items":"all","features":[{"name":"price","kind":"number","default":1},{"name":"brand","kind":"category","columns":4,"default":"none"},{"name":"age","kind":"number","from":"shopper","default":0}],"policy":{"name":"ucb-mnl"}}`

// Any bytes are read as a log, or an error names it; decisions that are read can be imported or are refused.
func FuzzRead(f *testing.F) {
	for format, texts := range map[string][]string{
		"csv": {"decision_id,item,chosen\na,x,1\nb,x,1\na,y,1\n",
			"decision_id,item,chosen,shown,price,propensity,law\na,x,1,1,2,.5,\na,y,0,0,3,.5,\n", "decision_id;item\n", "\ufeffdecision_id,item,chosen\n\"a\n"},
		"obp": {"decision_id,item_id,click,propensity_score\na,x,1,.5\nb,y,1,.5\na,y,0,.5\n"},
		"personalizer": {`{"_label_cost":-0.25,"_label_probability":1,"_label_probability":1,"EventId":"x y","DeferredAction":true,"o":[{"v":0.25,"ActionTaken":true}],"a":[2,1],"p":[0.5,0.5],"c":{"FromUrl":[{"age":4},{"u":{"v":[1,"w"]}}],"_multi":[{"_tag":"a","i":{"constant":1,"id":"a"},"j":[{"price":1},{}]},{"T":{"x":1}}]}}`,
			`{"_label_cost":-1,"_outcomes":[{"_a":0,"_p":1}],"c":{"_multi":[{"_slot_id":0}]}}`},
		"jsonl": {`{"decision_id":"x","time":"2026-01-01T00:00:00Z","items":[{"id":"a","features":{"price":1},"revenue":2},{"id":"b"}],"shopper":{"age":3},"shown":["a"],"propensity":0.55,"sampling_law":{"draw":"swaps","share":0.9,"size":1,"page":["b"],"swaps":"AQ=="},"status":"chosen","choice":"a"}`, `{"items":[{"id":"a","row":[1]}]}`},
		"dsjson": {`{"EventId":"x","Timestamp":"2026-01-02T03:04:05Z","_label_cost":-1,"a":[2,1],"p":[0.5,0.5],"c":{"u":[{"age":4}],"_multi":[{"_tag":"a","j":{"price":1}},{"_tag":"b","_revenue":3}]}}`,
			`{"EventId":"x","c":{"_multi":[{},{}]},"_outcomes":[{"_label_cost":-1,"_a":[0],"_p":[0.3]},{"_label_cost":0,"_a":[1],"_p":[0.6]}],"_vitrine":{"choice":"1","propensity":0.2}}`, `{"RewardValue":1}`},
	} {
		for _, text := range texts {
			f.Add(format, []byte(text))
		}
	}
	var table bytes.Buffer
	w := parquet.NewGenericWriter[struct {
		ID     string  `parquet:"decision_id"`
		Item   string  `parquet:"item"`
		Chosen int64   `parquet:"chosen"`
		Price  float64 `parquet:"price"`
	}](&table)
	w.Close()
	f.Add("parquet", table.Bytes())
	c := fatal.Or(setup.Parse([]byte(placement)))(f)
	f.Fuzz(func(t *testing.T, format string, data []byte) {
		switch format {
		case "csv", "jsonl", "dsjson", "parquet", "personalizer", "obp":
		default:
			return
		}
		if len(data) > 1<<16 {
			return
		}
		path := filepath.Join(t.TempDir(), "log")
		fatal.If(t, os.WriteFile(path, data, 0o600))
		n := 0
		items := filepath.Join(t.TempDir(), "items.csv")
		fatal.If(t, os.WriteFile(items, []byte("item_id,price\nx,1\ny,2\n"), 0o600))
		report, err := importer.Read(t.Context(), path, &importer.Mapping{Format: format, Items: items,
			Several: "first"}, c, func(d *page.Imported) error {
			n++
			return engine.CheckImport("home", c, d)
		})
		switch {
		case err != nil && len(err.Error()) > 5000:
			t.Fatalf("an error of %d bytes", len(err.Error()))
		case err == nil && report.Decisions < n:
			t.Fatalf("%d decisions are reported, %d were read", report.Decisions, n)
		}
	})
}

// Any bytes of a temporary file give a row or an error.
func FuzzRow(f *testing.F) {
	f.Add(importer.Row([]string{"a", "", "c"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if fields, err := importer.ReadRow(data, 3); err == nil && len(fields) > 3 {
			t.Errorf("%d fields of 3 columns", len(fields))
		}
	})
}
