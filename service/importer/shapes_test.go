package importer_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/importer"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// One rule for all formats decides which of several items taken counts: all, the first on the page, each by itself, or
// none of the decision.
func TestSeveralItemsTaken(t *testing.T) {
	const context = `"c":{"_multi":[{"_tag":"x"},{"_tag":"y"},{"_tag":"z"}]}`
	items := file(t, "item_context.csv", []byte("item_id\nx\ny\nz\n"))
	for _, c := range []struct {
		name, text string
		mapping    importer.Mapping
	}{
		{"log.csv", "decision_id,item,chosen,shown\na,x,1,2\na,y,0,0\na,z,1,1\n", importer.Mapping{}},
		{"log.jsonl", `{"decision_id":"a","items":[{"id":"x"},{"id":"y"},{"id":"z"}],"shown":["z","x"],"choice":["x","z"]}`, importer.Mapping{}},
		{"log.dsjson", `{"EventId":"a",` + context +
			`,"_outcomes":[{"_label_cost":-1,"_a":[2],"_p":[1]},{"_label_cost":-7,"_a":[0],"_p":[1]}]}`,
			importer.Mapping{Rewards: "choice"}},
		{"log.csv", "decision_id,item_id,click,propensity_score\na,z,1,.5\na,x,1,.5\n",
			importer.Mapping{Format: "obp", Items: items}},
	} {
		for rule, want := range map[string][]string{"": {"a z x"}, "first": {"a z"}, "skip": nil,
			"each": {"a z", "a..2 x"}} {
			c.mapping.Several = rule
			list, r, err := read(t, c.name, c.text, &c.mapping)
			if err != nil {
				t.Errorf("%s, %s: %v", c.name, rule, err)
				continue
			}
			var got []string
			for _, d := range list {
				got = append(got, d.Request.Decision+" "+taken(d))
			}
			if skipped := r.Skipped["have several items taken"]; !slices.Equal(got, want) || r.Decisions != 1 ||
				r.Several+skipped != 1 || (skipped == 1) != (rule == "skip") || r.Drawn != 0 {
				t.Errorf("%s, %s: %v, %+v, want %v", c.name, rule, got, r, want)
			}
		}
	}
	_, r, err := read(t, "log.dsjson", `{"EventId":"a",`+context+
		`,"_outcomes":[{"_label_cost":-1,"_a":[2],"_p":[1]},{"_label_cost":-0.5,"_a":[0],"_p":[1]}]}`, &importer.Mapping{})
	if err != nil || r.Several != 1 || r.Drawn != 1 {
		t.Errorf("shares: %+v, %v", r, err)
	}
}

// Numbers with commas, dates with spaces and the tags of an item are no lists of items.
func TestNumbersAreNoLists(t *testing.T) {
	var thousands, german, dates, latin, tags strings.Builder
	tags.WriteString("decision_id,item,chosen,shown,tags\n")
	latin.WriteString("decision_id,item,chosen,shown,brand\n")
	thousands.WriteString("decision_id,item,chosen,shown,price\n")
	german.WriteString("decision_id;sku;chosen;shown;price\n")
	dates.WriteString("decision_id,item,chosen,shown,time\n")
	for k := range 40 {
		fmt.Fprintf(&thousands, "d%d,sku%d,%d,%d,\"%d,%03d.50\"\n", k/2, k%7, k%2, k%2+1, 1+k, 3*k)
		fmt.Fprintf(&german, "d%d;sku%d;%d;%d;€1.%03d,%02d\n", k/2, k%7, k%2, k%2+1, 1+k, 2*k)
		fmt.Fprintf(&tags, "d%d,sku%d,%d,%d,red%d|size%d\n", k/2, k%7, k%2, k%2+1, k%3, k%5)
		fmt.Fprintf(&latin, "d%d,sku%d,%d,%d,caf\xe9%d\n", k/2, k%7, k%2, k%2+1, k%3)
		fmt.Fprintf(&dates, "d%d,sku%d,%d,%d,%02d/01/2026 08:%02d\n", k/2, k%7, k%2, k%2+1, 1+k/2, k/2)
	}
	for _, text := range []string{thousands.String(), german.String(), dates.String(), tags.String()} {
		r := fatal.Or(importer.Recognize(t.Context(), file(t, "log.csv", []byte(text))))(t)
		if !strings.HasPrefix(r.What, "a table in CSV") || !strings.Contains("item sku", r.Mapping.Columns.Item) || r.Needs != nil {
			t.Errorf("%.40s: %s, %+v, %v", text, r.What, r.Mapping.Columns, r.Needs)
		}
	}
	// Another encoding is named, not a lack of features.
	path := file(t, "log.csv", []byte(latin.String()))
	r := fatal.Or(importer.Recognize(t.Context(), path))(t)
	log := fatal.Or(importer.Open(t.Context(), path, r.Mapping))(t)
	_, _, err := r.Propose(fatal.Or(log.Survey(t.Context()))(t))
	if fatal.If(t, log.Close()); err == nil || err.Error() != "feature brand is not UTF-8: convert the file" {
		t.Error(err)
	}
}

// A table in JSON Lines holds the same decisions as the table in CSV, and Recognize knows it. A null is an empty cell.
func TestRowsOfJSON(t *testing.T) {
	const csv = "decision_id,item,chosen,shown,price,revenue,kind\na,x,1,2,10,1.5,new\na,y,0,0,,2,\na,z,0,1,30,3,old\n" +
		"b,x,0,1,11,1.5,new\nb,z,1,2,31,3,old\n"
	const lines = `
{"decision_id":"a","item":"x","chosen":1,"shown":2,"price":10,"revenue":1.5,"kind":"new"}
{"decision_id":"a","item":"y","chosen":false,"shown":0,"price":null,"revenue":2}
{"item":"z","decision_id":"a","chosen":0,"shown":1,"price":30,"revenue":3,"kind":"old"}
{"decision_id":"b","item":"x","chosen":0,"shown":1,"price":11,"revenue":1.5,"kind":"new"}
{"decision_id":"b","item":"z","chosen":true,"shown":2,"price":31,"revenue":3,"kind":"old"}
`
	want, _, err := read(t, "log.csv", csv, &importer.Mapping{})
	fatal.If(t, err)
	got, _, err := read(t, "log.jsonl", lines, &importer.Mapping{})
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(page.Imported{})); diff != "" || err != nil || len(got) != 2 {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	path := file(t, "log.jsonl", []byte(lines))
	r := fatal.Or(importer.Recognize(t.Context(), path))(t)
	if r.What != "a table in JSON Lines" || r.Needs != nil || r.Mapping.Format != "jsonl" ||
		r.Mapping.Columns.Revenue != "revenue" {
		t.Errorf("%+v, %+v", r, r.Mapping)
	}
	// An empty cell makes the proposed feature optional, in each format.
	for name, text := range map[string]string{"log.jsonl": lines, "log.csv": csv} {
		path := file(t, name, []byte(text))
		r := fatal.Or(importer.Recognize(t.Context(), path))(t)
		log := fatal.Or(importer.Open(t.Context(), path, r.Mapping))(t)
		proposed, _, err := r.Propose(fatal.Or(log.Survey(t.Context()))(t))
		if err := errors.Join(err, log.Close()); err != nil ||
			!strings.Contains(string(proposed), `"default": "none", "kind": "category", "name": "kind"`) {
			t.Errorf("%s: %s, %v", name, proposed, err)
		}
	}
}

// An item without a revenue does not count as 1 among others that have one.
func TestEmptyRevenue(t *testing.T) {
	const rows = "decision_id,item,chosen,revenue\na,x,1,49.9\na,y,0,\n"
	_, _, err := read(t, "log.csv", rows, &importer.Mapping{})
	expect.Part(err)(t, "line 3: column revenue is empty: every item needs its revenue")
	if list, _, err := read(t, "log.csv", strings.Replace(rows, "revenue", "paid", 1), &importer.Mapping{}); err != nil ||
		list[0].Request.Items[0].Revenue != nil {
		t.Errorf("without the column: %v", err)
	}
}

// A column of a usual name may mean something else: the mapping says so, and Recognize writes such a mapping.
func TestUsualNames(t *testing.T) {
	const rows = "decision_id,item,chosen,shown,revenue,propensity\n" +
		"a,x,1,0,49.9,0.5\na,y,0,1,0,0.2\nb,x,0,0,0,0.1\nb,z,0,1,0,0.9\n"
	r := fatal.Or(importer.Recognize(t.Context(), file(t, "log.csv", []byte(rows))))(t)
	want := importer.Columns{Decision: "decision_id", Item: "item", Chosen: "chosen", Shown: "-", Revenue: "-",
		Propensity: "-"}
	if diff := cmp.Diff(want, r.Mapping.Columns); diff != "" || len(r.Notes) != 3 {
		t.Errorf("%q, -want +got:\n%s", r.Notes, diff)
	}
	durations := fatal.Or(importer.Recognize(t.Context(), file(t, "log.csv", []byte("decision_id,item,chosen,time\na,x,1,30\na,y,0,12.5\n"))))(t)
	expect.Equal(t, durations.Mapping.Columns.Time, "-")
	list, _, err := read(t, "log.csv", rows, r.Mapping)
	if fatal.If(t, err); len(list[0].Shown) != 2 || list[0].Request.Items[0].Revenue != nil || list[0].Propensity != 0 {
		t.Errorf("%+v", list[0])
	}
	list, _, err = read(t, "log.csv", "decision_id,item,chosen,shown,revenue,propensity\na,x,1,1,49.9,0.5\na,y,0,0,0,0.5\n",
		&importer.Mapping{Columns: importer.Columns{Value: "revenue"}, Law: &importer.Law{Draw: "items",
			Propensity: "propensity"}})
	if fatal.If(t, err); list[0].Draw == nil || list[0].Propensity != 0 || list[0].Request.Items[0].Revenue != nil {
		t.Errorf("%+v", list[0])
	}
}

// A column of a usual name keeps its role if a few cells are unreadable, or foreign: the reader names the line.
func TestGarbledCells(t *testing.T) {
	rows := "decision_id;item;chosen;shown;time;revenue;propensity\na;x;1;1;2026-01-02;49.9;0.5\na;y;0;2;2026-01-02;5;0.5\n" +
		"b;x;0;1;2026-01-03;49.9;0.2\nb;z;0;2;2026-01-03;4;0.2\n"
	for k := range 8 {
		rows += fmt.Sprintf("c%d;p;1;1;2026-02-01;7;0.1\nc%[1]d;q;0;2;2026-02-01;8;0.1\n", k)
	}
	for _, c := range [][3]string{
		{"z;0;2;2026-01-03;4", "z;0;2;2026-01-03;-4", "line 5: column revenue: -4: must be from 0 to 1e+12"},
		{"b;z;0;2;2026-01-03;4;0.2", "b;z;0;2;2026-01-03;4;0,2", `line 5: column propensity: the propensity "0,2" is not a finite`},
		{"z;0;2;2026-01-03;4", "z;0;2;2026-01-03;€4", `line 5: column revenue: "€4" is not a finite number`},
		{"49.9", "1.049,90", `line 2: column revenue: "1.049,90" is not a finite number`},
		{"2026-01-03", "28.03.2026", `line 4: column time: "28.03.2026" is not a time`},
		{"z;0;2;2026-01-03", "z;0;2;soon", `line 5: column time: "soon" is not a time`},
		{"y;0;2", "y;0;2nd", `line 3: column shown: "2nd" is no position`},
		{"y;0", "y;maybe", `line 3: column chosen: "maybe" is neither 0 nor 1`},
		{"0.2", "20", "line 4: column propensity: the propensity is 20: must be in (0, 1]"},
		{"b;z", "b;", "line 5: column item is empty"},
		{"b;x;0;1;2026-01-03;49.9;0.2\nb;z", "b;;0;1;2026-01-03;49.9;0.2\nb;", "line 4: column item is empty"},
		{"b;z", ";z", "line 5: column decision_id is empty"},
	} {
		path := file(t, "log.csv", []byte(strings.ReplaceAll(rows, c[0], c[1])))
		r := fatal.Or(importer.Recognize(t.Context(), path))(t)
		if r.Needs != nil || len(r.Notes) > 0 {
			t.Errorf("%s: needs %q, notes %q", c[1], r.Needs, r.Notes)
			continue
		}
		log, err := importer.Open(t.Context(), path, r.Mapping)
		if err == nil {
			_, err = log.Survey(t.Context())
			fatal.If(t, log.Close())
		}
		expect.Part(err)(t, c[2], c[1])
	}
	// Rows that are in the file twice are named.
	twice := fatal.Or(importer.Recognize(t.Context(), file(t, "log.csv", []byte(rows+rows[strings.Index(rows, "\n")+1:]))))(t)
	if len(twice.Needs) != 1 || !strings.Contains(twice.Needs[0], `("x", for example in line 22). If rows are in the file twice`) {
		t.Errorf("%q", twice.Needs)
	}
}

// The values of a column decide its role, even if its name is the usual one, and a note names the first that does not
// fit. A pattern is a value of every row, values in turn, or after @ the value of the eighth row.
func TestValuesDecideRoles(t *testing.T) {
	for _, c := range []struct {
		names, patterns string
		column          func(c importer.Columns) string
		want, note      string
	}{
		{"time,date", "08:15,2026-01-02", func(c importer.Columns) string { return c.Time }, "date",
			`time is not taken for the time (line 2: "08:15").`},
		{"time", "08:15", func(c importer.Columns) string { return c.Time }, "-", `time is not taken for the time (line 2: "08:15").`},
		{"Time", "2026-01-02@soon", func(c importer.Columns) string { return c.Time }, "",
			`Time is not taken for the time (line 9: "soon").`},
		{"propensity,pscore", "high,0.5", func(c importer.Columns) string { return c.Propensity }, "pscore",
			`propensity is not taken for the propensity (line 2: "high").`},
		{"propensity", "25", func(c importer.Columns) string { return c.Propensity }, "-",
			`propensity is not taken for the propensity (line 2: "25").`},
		{"pscore", "0.5@0,5", func(c importer.Columns) string { return c.Propensity }, "",
			`pscore is not taken for the propensity (line 9: "0,5").`},
		{"p", "0.5|NA", func(c importer.Columns) string { return c.Propensity }, "p", ""},
		{"shown,p", "1|0,1|NA", func(c importer.Columns) string { return c.Propensity }, "p", ""},
		{"propensity", "0.5|0.5|0.5|0.5|0.5|0.5|0.5|5", func(c importer.Columns) string { return c.Propensity }, "-",
			`propensity is not taken for the propensity (line 9: "5").`},
		{"revenue,margin", "low|high,4", func(c importer.Columns) string { return c.Revenue }, "margin",
			`revenue is not taken for the revenue (line 2: "low").`},
		{"revenue", "4|3|-3", func(c importer.Columns) string { return c.Revenue }, "-",
			`revenue is not taken for the revenue (line 4: "-3").`},
		{"margin", "4@-3", func(c importer.Columns) string { return c.Revenue }, "",
			`margin is not taken for the revenue (line 9: "-3").`},
		{"shown", "top|left", func(c importer.Columns) string { return c.Shown }, "-",
			`shown is not taken for the position (line 2: "top").`},
		{"position", "1|2@2nd", func(c importer.Columns) string { return c.Shown }, "",
			`position is not taken for the position (line 9: "2nd").`},
		{"clicked,chosen", "1|0,sku8", func(c importer.Columns) string { return c.Chosen }, "clicked",
			`chosen is not taken for the outcome (line 2: "sku8").`},
		{"clicked,purchased,chosen", "1|0,0,1|0@?", func(c importer.Columns) string { return c.Chosen }, "clicked",
			"clicked says what was taken. The log also contains purchased: name another column as chosen if that is the outcome."},
		{"item,sku", "shoe|hat@,a|b", func(c importer.Columns) string { return c.Item }, "sku", ""},
		{"request_id,decision_id", "@,@", func(c importer.Columns) string { return c.Decision }, "page_id", ""},
	} {
		names, patterns := strings.Split(c.names, ","), strings.Split(c.patterns, ",")
		if c.patterns == "0.5@0,5" {
			patterns = []string{c.patterns}
		}
		text := "page_id;" + c.names
		for name, pattern := range map[string]string{"product": "x|y", "click": "1|0"} {
			if !strings.Contains(c.names, name) && !(name == "product" && strings.Contains(c.names, "item")) {
				names, patterns, text = append(names, name), append(patterns, pattern), text+";"+name
			}
		}
		text = strings.ReplaceAll(text, ",", ";")
		for k := range 40 {
			text += fmt.Sprintf("\nd%d", k/2)
			for j := range names {
				usual, eighth, is := strings.Cut(patterns[j], "@")
				if values := strings.Split(usual, "|"); !is || k != 7 {
					eighth = values[k%len(values)]
				}
				text += ";" + eighth
			}
		}
		path := file(t, "log.csv", []byte(text+"\n"))
		r := fatal.Or(importer.Recognize(t.Context(), path))(t)
		if got := c.column(r.Mapping.Columns); got != c.want || r.Needs != nil || c.note != "" && !slices.Contains(r.Notes, c.note) ||
			c.note == "" && strings.Contains(strings.Join(r.Notes, ""), "not taken for") ||
			strings.Contains(strings.Join(r.Notes, ""), "what each item would earn") {
			t.Errorf("%s %s: %q, notes %q, needs %q", c.names, c.patterns, got, r.Notes, r.Needs)
		}
		log := fatal.Or(importer.Open(t.Context(), path, r.Mapping))(t)
		_, err := log.Survey(t.Context())
		fatal.If(t, log.Close())
		fatal.If(t, err)
	}
	// In lines, a usual name inside an object is another column.
	lines := ""
	for k := range 20 {
		lines += fmt.Sprintf(`{"id":"s%d","ts":1767366245,"items":["a","b"],"click":"a","context":{"time":"noon"},"user":{"propensity":"high"}%s}`+"\n",
			k, []string{"", `,"propensity":0.5`}[k%2])
	}
	path := file(t, "log.jsonl", []byte(lines))
	r := fatal.Or(importer.Recognize(t.Context(), path))(t)
	expect.Equal(t, r.Mapping.Columns, importer.Columns{Item: "items", Chosen: "click", Time: "ts"})
	if !slices.Contains(r.Notes, "propensity is missing on some pages, and it is not used.") {
		t.Errorf("%q", r.Notes)
	}
	log := fatal.Or(importer.Open(t.Context(), path, r.Mapping))(t)
	_, err := log.Survey(t.Context())
	fatal.If(t, log.Close())
	fatal.If(t, err)
	// A line for each page may name one of its items.
	path = file(t, "log.csv", []byte("session,slate,item,chosen\n0,sku2|sku1|sku8,shoes,sku8\n1,sku3|sku1|sku7,hats,sku3\n"))
	r = fatal.Or(importer.Recognize(t.Context(), path))(t)
	expect.Equal(t, r.Mapping.Columns, importer.Columns{Decision: "session", Item: "slate", Chosen: "chosen"})
}

// A column with a few numbers in another form is no silent category: a note names the first. NA stands for no number.
func TestForeignNumbers(t *testing.T) {
	for cells, want := range map[string]string{
		"€ 10|€ 1,553.56": `price is not taken for a number, because of "€ 10" in decision d0`,
		"1.553,56|12":     `price is not taken for a number, because of "1.553,56" in decision d0`,
		"5|6|7|8|9|5|6|7|8|9|5|6|7|8|9|12,5|3 €": `price is not taken for a number, because of "12,5" in decision d7`,
		"5|6|NA|8": "", "S|M|36|38": "", "a1|a2": "", "NA|NA|NA|7|NA|NA|NA|9": "Not features: price, shop_id, which tell the outcome.",
		"5|NA": "Not features: price, which have one value.", "1|2|3|4|x": "",
		"1|2|3|4|5|6|7|8|9|1|2|3|4|5|6|7|8|9|1|so": `price is not taken for a number, because of "so" in decision d9`,
	} {
		text, list := "decision_id,item,chosen,price,shop_id\n", strings.Split(cells, "|")
		for k := range 40 {
			text += fmt.Sprintf("d%d,sku%d,%d,%q,%[4]q\n", k/2, k%7, k%2*k/2%2, list[k%len(list)])
		}
		path := file(t, "log.csv", []byte(text))
		r := fatal.Or(importer.Recognize(t.Context(), path))(t)
		log := fatal.Or(importer.Open(t.Context(), path, r.Mapping))(t)
		placement, notes, err := r.Propose(fatal.Or(log.Survey(t.Context()))(t))
		fatal.If(t, log.Close())
		fatal.If(t, err)
		if got := strings.Join(notes, "\n"); strings.Contains(got, "price") != (want != "") || !strings.Contains(got, want) ||
			strings.Contains(got, "shop_id is") {
			t.Errorf("%s: %q", cells, notes)
		}
		if cells == "5|6|NA|8" && !strings.Contains(string(placement), `"default": 6.33, "kind": "number", "name": "price"`) {
			t.Errorf("%s: %s", cells, placement)
		}
	}
}

// A column that a mapping names has no other role, and every log names the decision, its items and what was taken. A
// propensity that some pages lack is one all the same.
func TestRoles(t *testing.T) {
	list, _, err := read(t, "log.csv", "shown,units,revenue\na,x,0\na,y,1\n",
		&importer.Mapping{Columns: importer.Columns{Decision: "shown", Item: "units", Chosen: "revenue"}})
	if fatal.If(t, err); len(list) != 1 || len(list[0].Shown) != 2 || list[0].Request.Items[0].Revenue != nil {
		t.Errorf("%+v", list)
	}
	for _, columns := range []string{`decision = "-"`, `item = "-"`, `chosen = "-"`} {
		expect.Part(importer.ReadMapping(file(t, "map.toml", []byte("[columns]\n"+columns))))(t, `cannot be "-"`, columns)
	}
	r := fatal.Or(importer.Recognize(t.Context(), file(t, "log.csv", []byte("decision_id,item,chosen,propensity\na,x,1,0.5\n"+
		"a,y,0,0.5\nb,x,0,\nb,z,0,\n"))))(t)
	expect.Equal(t, r.Mapping.Columns.Propensity, "")
	expect.Equal(t, len(r.Notes), 1)
	// Rows of items that were not shown may lack it.
	const shown = "decision_id,item,chosen,shown,p\na,x,0,0,NA\na,y,1,1,0.5\na,z,0,2,0.5\nb,x,0,1,0.2\nb,y,0,2,0.2\nb,z,0,0,\n"
	r = fatal.Or(importer.Recognize(t.Context(), file(t, "log.csv", []byte(strings.Replace(shown, "NA", "", 1)))))(t)
	expect.Equal(t, r.Mapping.Columns.Propensity, "p")
	list, _, err = read(t, "log.csv", shown, r.Mapping)
	if fatal.If(t, err); list[0].Propensity != 0.5 || list[1].Propensity != 0.2 {
		t.Errorf("%+v", list)
	}
}

// A log may say how many units were taken, and what they earned, as an outcome of the service does.
func TestUnitsTaken(t *testing.T) {
	const rows = "decision_id,item,chosen,shown,units\na,x,1,2,3\na,y,0,0,0\na,z,1,1,\n"
	const values = "decision_id,item,chosen,shown,units,paid\na,x,1,2,3,2.5\na,y,0,0,,-1\na,z,1,1,,\n"
	line := `{"decision_id":"a","items":[{"id":"x"},{"id":"y"},{"id":"z"}],"shown":["z","x"],"choice":"z","choices":[{"item":"x","quantity":3,"value":2.5},{"item":"z"}]}`
	for _, c := range []struct {
		name, text, value string
		want              []api.Choice
	}{
		{"log.csv", rows, "", []api.Choice{{Item: "z"}, {Item: "x", Quantity: new(3)}}},
		{"log.csv", values, "paid", []api.Choice{{Item: "z"}, {Item: "x", Quantity: new(3), Value: new(2.5)}}},
		{"log.csv", strings.Replace(values, "paid", "units_value", 1), "",
			[]api.Choice{{Item: "z"}, {Item: "x", Quantity: new(3), Value: new(2.5)}}},
		{"log.jsonl", line, "", []api.Choice{{Item: "z"}, {Item: "x", Quantity: new(3), Value: new(2.5)}}},
	} {
		list, _, err := read(t, c.name, c.text, &importer.Mapping{Columns: importer.Columns{Value: c.value}})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		expect.Equal(t, list[0].Choices, c.want, c.name)
	}
	// Of events, the rows that take items tell.
	list, _, err := read(t, "log.csv", "decision_id,kind,item,units,paid\na,view,x,1,\na,view,y,1,\na,buy,y,3,27\n",
		&importer.Mapping{Columns: importer.Columns{Value: "paid"}, Events: &importer.Events{Column: "kind", Shown: "view",
			Chosen: "buy"}})
	fatal.If(t, err)
	expect.Equal(t, list[0].Choices, []api.Choice{{Item: "y", Quantity: new(3), Value: new(27.0)}})
	for _, units := range []string{"0", "1.5", "1001", "-1", "many"} {
		_, _, err := read(t, "log.csv", strings.Replace(rows, "2,3", "2,"+units, 1), &importer.Mapping{})
		if want := fmt.Sprintf("line 2: column units: %q is not a number of units from 1 to 1000", units); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s units: %v, want %s", units, err, want)
		}
	}
	expect.Part(read(t, "log.csv", strings.Replace(rows, "y,0,0,0", "y,0,0,7", 1), &importer.Mapping{}))(t,
		`line 3: column units: "7" of an item that was not taken: `)
	for value, want := range map[string]string{"-1": "-1: must be from 0 to 1e+12", "NaN": `"NaN" is not a number`,
		"much": `"much" is not a number`, "4006381333931": "4006381333931: must be from 0 to 1e+12; send an amount of money, " +
			"not an id or a timestamp"} {
		expect.Part(read(t, "log.csv", strings.Replace(values, ",2.5", ","+value, 1),
			&importer.Mapping{Columns: importer.Columns{Value: "paid"}}))(t, "line 2: column paid: "+want)
	}
}

// A column of units above 0 for items that were not taken is something else, such as the size of a pack.
func TestUnitsOfPacks(t *testing.T) {
	path := file(t, "log.csv", []byte("decision_id,item,chosen,units,units_value\na,x,1,6,2\na,y,0,12,\nb,x,0,6,\nb,y,1,12,3\n"))
	r := fatal.Or(importer.Recognize(t.Context(), path))(t)
	if c := r.Mapping.Columns; c.Units != "-" || c.Value != "-" {
		t.Errorf("units is %q, and units_value %q", c.Units, c.Value)
	}
	list, _, err := read(t, "log.csv", "decision_id,item,chosen,units,units_value\na,x,1,6,2\na,y,0,12,\n", r.Mapping)
	fatal.If(t, err)
	expect.Equal(t, list[0].Choices, []api.Choice{{Item: "x"}})
	sold := fatal.Or(importer.Recognize(t.Context(), file(t, "sold.csv", []byte("decision_id,item,chosen,units\na,x,1,6\na,y,0,0\n"))))(t)
	expect.Equal(t, sold.Mapping.Columns.Units, "")
}

// In sessions, too, "-" ignores a column.
func TestSessionsIgnoreColumns(t *testing.T) {
	list, _, err := read(t, "log.csv", "id,items,click,units\na,x|y,x,6|12\n", &importer.Mapping{Format: "sessions", List: "|",
		Columns: importer.Columns{Decision: "id", Item: "items", Chosen: "click", Units: "-", Time: "-", Shown: "-", Value: "-",
			Revenue: "-", Propensity: "-"}})
	fatal.If(t, err)
	expect.Equal(t, taken(list[0]), "x")
}

// first is the first item taken in a decision, "" for none.
func first(d *page.Imported) string { id, _, _ := strings.Cut(taken(d), " "); return id }

// taken are the items taken in a decision.
func taken(d *page.Imported) string {
	var ids []string
	for _, c := range d.Choices {
		ids = append(ids, c.Item)
	}
	return strings.Join(ids, " ")
}

// Rewards of a log are shares of a choice, as in the service: the share of decisions in which the item is taken is the
// mean reward. A negative one is 0, and one above 1 is no share.
func TestRewardsOfALog(t *testing.T) {
	const line = `{"EventId":"e%d","_label_cost":%v,"a":[1],"p":[1],"c":{"_multi":[{"_tag":"x"}]}}` + "\n"
	for reward, share := range map[float64]float64{0.05: 0.05, 0.6: 0.6, 1: 1, 0: 0, -0.4: 0} {
		var text strings.Builder
		const n = 2000
		for k := range n {
			fmt.Fprintf(&text, line, k, -reward)
		}
		list, _, err := read(t, "log.dsjson", text.String(), &importer.Mapping{})
		fatal.If(t, err)
		taken := 0
		for _, d := range list {
			if first(d) == "x" {
				taken++
			}
		}
		if se := math.Sqrt(share * (1 - share) / n); math.Abs(float64(taken)/n-share) > 4*se {
			t.Errorf("reward %v: %d of %d taken", reward, taken, n)
		}
	}
	expect.Part(read(t, "log.dsjson", fmt.Sprintf(line, 1, -1.5), &importer.Mapping{}))(t,
		`line 1: slot 0: the reward is 1.5, more than 1: set rewards = "choice" in the mapping`)
	list, _, err := read(t, "log.dsjson", fmt.Sprintf(line, 1, -1.5)+fmt.Sprintf(line, 2, 3),
		&importer.Mapping{Rewards: "choice"})
	if err != nil || first(list[0]) != "x" || first(list[1]) != "" {
		t.Errorf("%+v, %v", list, err)
	}
}

// Lines by Personalizer and its client libraries that cannot be learned from are counted by their reasons.
func TestLinesWithoutARound(t *testing.T) {
	const c = `"c":{"FromUrl":[],"_multi":[{"_tag":"x"},{"_tag":"y"}]},"a":[2,1],"p":[0.9,0.1]`
	for _, line := range []struct{ why, text string }{
		{"", `{"_label_cost":0,"DeferredAction":true,"o":[{"EventId":"e","DeferredAction":false}],` + c + `}`},
		{"", `{"_label_cost":-0.0,"DeferredAction":true,"o":[{"EventId":"e","ActionTaken":true}],` + c + `}`},
		{"", `{"_label_cost":-1,"_original_label_cost":-1,"o":[{"v":1}],` + c + `}`},
		{"were deferred and not activated", `{"_label_cost":-1,"_skipLearn":true,"o":[{"v":1,"ActionTaken":false}],` +
			c + `}`},
		{"were deferred and not activated", `{"_label_cost":0,"_deferred":true,"DeferredAction":true,` + c + `}`},
		{"are of Personalizer's Apprentice mode: their reward is not that of the action in the log",
			`{"_label_cost":0,"_original_label_cost":-1,` + c + `}`},
		{"have no context", `{"RewardValue":1.0,"EnqueuedTimeUtc":"2021-02-04T16:31:29Z","EventId":"e"}`},
		{"have no label", `{` + c + `}`},
		{"have one reward for a page of slots, and not for an item (slates)",
			`{"_label_cost":-1.5,"_outcomes":[{"_a":[0,1],"_p":[1,0]}],"c":{"_multi":[{"T":{"a":"f"},"_slot_id":0},{"_slot_id":0}],"_slots":[{}]}}`},
		{"have one reward for a page of slots, and not for an item (slates)",
			`{"_label_cost":1.0,"_outcomes":[{"_a":0,"_p":1.0}],"c":{"_multi":[{"T":1}],"_slots":[{}]}}`},
	} {
		list, r, err := read(t, "log.dsjson", line.text, &importer.Mapping{Format: "personalizer"})
		if err != nil || (line.why == "") != (len(list) == 1) || line.why != "" && r.Skipped[line.why] != 1 {
			t.Errorf("%s: %+v, %+v, %v", line.text, list, r, err)
		}
	}
}

// A table with scattered rows is read as the same table in order: by the time of decisions and their first rows. With
// little memory its rows are in many runs on disk, and no file is left.
func TestUnsortedTables(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	rng := rand.New(rand.NewPCG(1, 1))
	var lines []string
	for k := range 300 {
		for i := range 2 {
			lines = append(lines, fmt.Sprintf("d%d,%d,sku%d,%d,%d\n", (k*77)%300, 1_000_000_000+(k*77)%300, i, i, rng.IntN(50)))
		}
	}
	const header = "decision_id,time,item,chosen,price\n"
	slices.SortStableFunc(lines, func(a, b string) int {
		return strings.Compare(a[:strings.Index(a, ",")], b[:strings.Index(b, ",")])
	})
	byTime := slices.Clone(lines)
	slices.SortStableFunc(byTime, func(a, b string) int {
		return strings.Compare(strings.Split(a, ",")[1], strings.Split(b, ",")[1])
	})
	want, r, err := read(t, "log.csv", header+strings.Join(byTime, ""), &importer.Mapping{})
	if err != nil || len(want) != 300 || r.Sorted {
		t.Fatal(len(want), r, err)
	}
	rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	inOrder := func(d *page.Imported) { slices.Sort(d.Shown) }
	for _, d := range want {
		inOrder(d)
	}
	for _, memory := range []int{64 << 20, 1000} {
		undo := importer.SortIn(memory)
		got, r, err := read(t, "log.csv", header+strings.Join(lines, ""), &importer.Mapping{})
		undo()
		for _, d := range got {
			inOrder(d)
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil || !r.Sorted {
			t.Errorf("in %d bytes: %+v, %v (-want +got):\n%.2000s", memory, r, err, diff)
		}
	}
	// Errors name the line of the file.
	expect.Part(read(t, "log.csv", header+"a,1e8,x,1,5\nb,2e8,x,1,5\na,1e8,y,0,dear\n",
		&importer.Mapping{}))(t, `log.csv: line 4: item "y": column price: "dear"`)
	expect.Part(read(t, "log.csv", header+"a,1e8,x,1,5\nb,2e8,x,1,5\na,1e8,y,3,2\n", &importer.Mapping{}))(t,
		`log.csv: line 4: column chosen`)
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// Times of Parquet follow its types, in any unit, and Spark's; decimals are numbers.
func TestParquetTypes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678000000, time.UTC)
	day := at.Unix() / 86400
	for name, c := range map[string]struct {
		node  parquet.Node
		value parquet.Value
		want  time.Time
	}{
		"milliseconds": {parquet.Timestamp(parquet.Millisecond), parquet.ValueOf(at.UnixMilli()), at},
		"microseconds": {parquet.Timestamp(parquet.Microsecond), parquet.ValueOf(at.UnixMicro()), at},
		"nanoseconds":  {parquet.Timestamp(parquet.Nanosecond), parquet.ValueOf(at.UnixNano()), at},
		"days":         {parquet.Date(), parquet.ValueOf(int32(day)), at.Truncate(24 * time.Hour)},
		"of Spark": {parquet.Leaf(parquet.Int96Type), parquet.ValueOf(deprecated.Int96{
			uint32((at.UnixNano() - day*86400e9) & math.MaxUint32), uint32((at.UnixNano() - day*86400e9) >> 32),
			uint32(day + 2440588),
		}), at},
		"integers": {parquet.Leaf(parquet.Int64Type), parquet.ValueOf(at.UnixMicro()), at},
	} {
		schema := parquet.NewSchema("log", parquet.Group{
			"decision_id": parquet.String(), "time": c.node, "item": parquet.String(),
			"chosen": parquet.Leaf(parquet.BooleanType), "price": parquet.Decimal(2, 10, parquet.Int64Type),
		})
		value := map[string]parquet.Value{"decision_id": parquet.ValueOf("a"), "time": c.value,
			"item": parquet.ValueOf("x"), "chosen": parquet.ValueOf(true), "price": parquet.ValueOf(int64(1995))}
		var cells parquet.Row
		for j, path := range schema.Columns() {
			cells = append(cells, value[path[0]].Level(0, 0, j))
		}
		var b bytes.Buffer
		w := parquet.NewWriter(&b, schema)
		fatal.Or(w.WriteRows([]parquet.Row{cells}))(t)
		fatal.If(t, w.Close())
		list, _, err := read(t, "log.parquet", b.String(), &importer.Mapping{})
		if err != nil || list[0].Time != c.want.UnixNano() || list[0].Request.Items[0].Features[0].Number != 19.95 {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
}

// One column holds the policy's own page, another the probability of each item. The law of a page is by hand.
func TestLawsOfColumns(t *testing.T) {
	// The files list the items shown first; they are imported in the order of their ids.
	const table = "decision_id,item,shown,chosen,greedy,item_propensity,slot\na,c,2,0,1,.7,right\na,a,1,1,2,.2,left\na,d,0,0,,.3,right\na,b,0,0,0,.8,left\n"
	const line = `{"decision_id":"a","items":[{"id":"c","propensity":0.7,"slot":"right"},{"id":"a","propensity":0.2,"slot":"left"},{"id":"d","propensity":0.3,"slot":"right"},{"id":"b","propensity":0.8,"slot":"left"}],"greedy":["c","a"],"shown":["a","c"],"choice":"a"}`
	for _, c := range []struct {
		law        importer.Law
		propensity float64
		inclusion  [4]float64
	}{ // sets of one or two of four items: 10
		{importer.Law{Draw: "sets", Share: 0.5, Size: 2, Page: "greedy"}, 0.5 + 0.5/10, [4]float64{0.7, 0.2, 0.7, 0.2}},
		{importer.Law{Draw: "pages", Share: 0.3, Size: 2, Page: "greedy"}, 0.7 + 0.3/6,
			[4]float64{0.85, 0.15, 0.85, 0.15}},
		{importer.Law{Draw: "swaps", Share: 0.4, Page: "greedy"}, 0.6, [4]float64{0.8, 0.2, 0.8, 0.2}},
		{importer.Law{Draw: "items", Slot: "slot"}, 0.2 * 0.7, [4]float64{0.2, 0.8, 0.7, 0.3}},
	} {
		for name, text := range map[string]string{"log.csv": table, "log.jsonl": line} {
			list, _, err := read(t, name, text, &importer.Mapping{Law: &c.law})
			if err != nil {
				t.Errorf("%+v: %v", c.law, err)
				continue
			}
			law := list[0].Draw.Law(4)
			if p := law.Propensity([]int{0, 2}); math.Abs(p-c.propensity) > 1e-12 {
				t.Errorf("%s, %+v: the propensity is %v, want %v", name, c.law, p, c.propensity)
			}
			for i, want := range c.inclusion {
				if p := law.Inclusion(i); math.Abs(p-want) > 1e-12 {
					t.Errorf("%s, %+v: item %d is shown with %v, want %v", name, c.law, i, p, want)
				}
			}
		}
	}
	// A log of Vowpal Wabbit holds the probability of each action.
	list, _, err := read(t, "log.dsjson",
		`{"_label_cost":0,"a":[2,1,3],"p":[0.899999976,0.0500000007,0.0500000007],"c":{"_multi":[{},{},{}]}}`,
		&importer.Mapping{})
	if err != nil || list[0].Draw.Kind != offer.DrawItems || math.Abs(list[0].Draw.Law(3).Inclusion(0)-0.05) > 1e-6 {
		t.Errorf("%+v, %v", list, err)
	}
	expect.Part(read(t, "log.csv", strings.Replace(table, ",.7,", ",many,", 1), &importer.Mapping{
		Law: &importer.Law{Draw: "items", Slot: "slot"}}))(t, `line 2: column item_propensity: "many" is no probability`)
	for want, law := range map[string]importer.Law{
		`line 2: the probabilities of the items of slot "" have the sum 2: must be 1`: {Draw: "items"},
		`sampling_law.page: there is no column "none"`: {
			Draw: "pages", Size: 2, Share: 0.5, Page: "none"},
		`sampling_law.slot: there is no column "none"`: {Draw: "items", Slot: "none"},
		`/sampling_law: never shows the set ["a" "c"], which was shown`: {
			Draw: "swaps", Share: 1, Page: "other"},
	} {
		text := strings.NewReplacer("slot\n", "slot,other\n", ".2,left\n", ".2,left,\n", ".8,left\n", ".8,left,true\n",
			".7,right\n", ".7,right,0\n", ".3,right\n", ".3,right,1\n").Replace(table)
		expect.Part(read(t, "log.csv", text, &importer.Mapping{Law: &law}))(t, want)
	}
}

// Contradictory mappings are refused, with the wrong key.
func TestBadMappings(t *testing.T) {
	for text, want := range map[string]string{
		"several = \"last\"":                          `several = "last": want one of first, skip, each`,
		"rewards = \"sum\"":                           `rewards = "sum": want one of share, choice`,
		"[sampling_law]\nshare = 1":                   `sampling_law.draw is missing`,
		"[sampling_law]\ndraw = \"swaps\"\nshare = 1": `sampling_law.page is missing: name the column`,
		"[sampling_law]\ndraw = \"swaps\"\nshare = 1\nsize = 2\npage = \"g\"":   `sampling_law.size = 2: belongs to draw = ["sets" "pages"]`,
		"[sampling_law]\ndraw = \"sets\"\nsize = 2":                             `sampling_law.share = 0: must be in (0, 1]`,
		"[sampling_law]\ndraw = \"sets\"\nsize = 2\nshare = 1\nslot = \"s\"":    `sampling_law.slot = s: belongs to draw = ["items"]`,
		"[sampling_law]\ndraw = \"items\"\nshare = 0.5":                         `sampling_law.share = 0.5: belongs to draw`,
		"[sampling_law]\ndraw = \"pages\"\nshare = 0.2\nsize = 0\npage = \"g\"": `sampling_law.size = 0: must be at least 1`,
		"[sampling_law]\ndraw = \"any\"":                                        `sampling_law.draw = "any": want one of sets, pages, swaps, items`,
	} {
		expect.Part(importer.ReadMapping(file(t, "map.toml", []byte(text))))(t, "map.toml: "+want, want)
	}
	_, _, err := read(t, "log.dsjson", "{}", &importer.Mapping{Law: &importer.Law{Draw: "items"}})
	expect.Part(err)(t, `sampling_law.draw = "items" with columns is of tables and jsonl, and the format is dsjson`)
}

// A stream is read like a file: twice.
func TestStream(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	c, err := setup.Parse([]byte(shop))
	fatal.If(t, err)
	in, out, err := os.Pipe()
	fatal.If(t, err)
	stdin := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = stdin }()
	expect.Part(importer.Open(t.Context(), "-", &importer.Mapping{}))(t, "give --format")
	fmt.Fprint(out, "decision_id,item,chosen,price\na,x,1,3\n")
	out.Close()
	log := fatal.Or(importer.Open(t.Context(), "-", &importer.Mapping{Format: "csv"}))(t)
	for range 2 {
		if r, err := log.Read(t.Context(), "home", c, func(*page.Imported) error { return nil }); err != nil ||
			r.Decisions != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	expect.Error(t, log.Close(), nil)
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}
