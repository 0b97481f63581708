package importer_test

import (
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/importer"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/setup"
)

const shop = `{"max_size":2,"log_items":"all","features":[{"name":"price","kind":"number","default":0},{"name":"age","kind":"number","from":"shopper","default":0}],"policy":{"name":"ucb-mnl"}}`

// read returns the decisions of a file.
func read(t *testing.T, name, text string, m *importer.Mapping) (list []*page.Imported, r *importer.Report, err error) {
	t.Helper()
	c := fatal.Or(setup.Parse([]byte(shop)))(t)
	path := filepath.Join(t.TempDir(), name)
	fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
	r, err = importer.Read(t.Context(), path, m, c, func(d *page.Imported) error {
		list = append(list, d)
		return engine.CheckImport("home", c, d)
	})
	return list, r, err
}

// A table without the column of a feature without a default is refused, and the error lists the columns.
func TestNoColumnOfFeature(t *testing.T) {
	c := fatal.Or(setup.Parse([]byte(strings.Replace(shop, `"name":"price","kind":"number","default":0`,
		`"name":"price","kind":"number"`, 1))))(t)
	path := filepath.Join(t.TempDir(), "log.csv")
	fatal.If(t, os.WriteFile(path, []byte("decision_id,item,chosen,Price\na,x,1,2\n"), 0o600))
	if _, err := importer.Read(t.Context(), path, &importer.Mapping{}, c, func(*page.Imported) error { return nil }); err == nil ||
		!strings.HasSuffix(err.Error(), `line 1: feature price: name its column in [features] of the mapping, or give it a `+
			`default: there is no column "price": did you mean "Price"?`) {
		t.Error(err)
	}
}

// One decision is the same from every format: three items, of them z and x shown, in this order, and z taken.
func TestFormats(t *testing.T) {
	revenue := func(v float64) *float64 { return &v }
	whole := &page.Imported{
		Request: &api.Request{
			Decision: "a",
			User:     api.Values{api.Number("age", 30)},
			Items: []api.Item{
				{ID: "x", Features: api.Values{api.Number("price", 10)}, Revenue: revenue(1.5)},
				{ID: "y", Features: api.Values{api.Number("price", 20)}, Revenue: revenue(2)},
				{ID: "z", Features: api.Values{api.Number("price", 30)}, Revenue: revenue(3)},
			},
		},
		Shown: []string{"z", "x"}, Choices: []api.Choice{{Item: "z"}}, Time: 1e17, Propensity: 0.25,
	}
	items := filepath.Join(t.TempDir(), "item_context.csv")
	fatal.If(t, os.WriteFile(items, []byte("item_id,revenue,price\nx,1.5,10\ny,2,20\nz,3,30\n"), 0o600))
	type row struct {
		ID         string  `parquet:"decision_id"`
		Time       string  `parquet:"time"`
		Item       string  `parquet:"item"`
		Shown      int64   `parquet:"shown"`
		Chosen     bool    `parquet:"chosen"`
		Revenue    float64 `parquet:"revenue"`
		Propensity float64 `parquet:"propensity"`
		Price      float32 `parquet:"price"`
		Age        int32   `parquet:"age"`
	}
	var table strings.Builder
	w := parquet.NewGenericWriter[row](&table)
	const at = "1973-03-03T09:46:40Z"
	fatal.Or(w.Write([]row{{"a", at, "x", 2, false, 1.5, 0.25, 10, 30}, {"a", at, "y", 0, false, 2, 0.25, 20, 30},
		{"a", at, "z", 1, true, 3, 0.25, 30, 30}}))(t)
	fatal.If(t, w.Close())
	const context = `"c":{"user":{"age":30},"_multi":[{"_tag":"x","_revenue":1.5,"item":{"price":10}},{"_tag":"y","_revenue":2,"item":{"price":20}},{"_tag":"z","_revenue":3,"item":{"price":30}}]}`
	for _, c := range []struct {
		name, text string
		mapping    importer.Mapping
		change     func(d *page.Imported) // facts that the format lacks
	}{
		{name: "log.csv", text: "decision_id,time,item,shown,chosen,revenue,propensity,price,age\na,100000000,x,2,0,1.5,.25,10,30\na,1e8,y,0,0,2,.25,20,30\na,1e8,z,1,1,3,.25,30,30\n"},
		{
			name: "log.csv", text: "id;sku;got;place;worth;cost;age\na;x;;2;1.5;10;30\na;y;;;2;20;30\na;z;true;1;3;30;30\n",
			mapping: importer.Mapping{Delimiter: ";", Columns: importer.Columns{Decision: "id", Item: "sku",
				Chosen: "got", Shown: "place", Revenue: "worth"}, Features: map[string]string{"price": "cost"}},
			change: func(d *page.Imported) { d.Time, d.Propensity = 0, 0 },
		},
		{name: "log.parquet", text: table.String()},
		{
			name: "log.jsonl",
			text: "\ufeff" + `{"decision_id":"a","time":"` + at +
				`","items":[{"id":"x","features":{"price":10},"revenue":1.5},{"id":"y","features":{"price":20},"revenue":2},{"id":"z","features":{"price":30},"revenue":3}],"shopper":{"age":30},"shown":["z","x"],"propensity":0.25,"status":"chosen","choice":"z"}`,
		},
		{ // slots count from 0
			name: "log.dsjson",
			text: `{"EventId":"a","Timestamp":"` + at + `",` + context +
				`,"_outcomes":[{"_label_cost":-3,"_a":[2,0],"_p":[0.5,0.5]},{"_label_cost":0,"_a":[0],"_p":[1]}],"_vitrine":{"choice":"z","propensity":0.25}}`,
		},
		{ // actions count from 1, and the reward came later
			name: "log.dsjson",
			text: `{"EventId":"a","Timestamp":"` + at +
				`","_label_cost":0,"a":[3,1,2],"p":[0.25,0.5,0.25],"o":[{"v":1}],` + context + `}`,
			change: func(d *page.Imported) {
				d.Shown = []string{"z"}
				d.Draw = &offer.SamplingLaw{Kind: offer.DrawItems, Epsilon: 1, Size: 1,
					Probability: []float64{0.5, 0.25, 0.25}, Slot: []uint32{0, 0, 0}}
			},
			mapping: importer.Mapping{Format: "personalizer"},
		},
		{ // propensities of items, which determine no page's
			name: "log.csv", text: "decision_id,timestamp,item_id,position,click,propensity_score,age\na," + at +
				",z,1,1,.5,30\na," + at + ",x,2,0,.5,30\n",
			mapping: importer.Mapping{Format: "obp", Items: items},
			change:  func(d *page.Imported) { d.Propensity = 0 },
		},
		{ // without ids every row is a decision
			name: "log.csv", text: "timestamp,item_id,position,click,propensity_score,age\n" + at + ",z,1,1,.25,30\n",
			mapping: importer.Mapping{Format: "obp", Items: items},
			change: func(d *page.Imported) {
				d.Request.Decision, d.Shown = "import-", []string{"z"}
			},
		},
	} {
		want, request := *whole, *whole.Request
		want.Request = &request
		if c.change != nil {
			c.change(&want)
		}
		got, r, err := read(t, c.name, c.text, &c.mapping)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if id := &got[0].Request.Decision; strings.HasPrefix(*id, "import-") {
			*id = "import-"
		}
		expect.Equal(t, got, []*page.Imported{&want}, c.name, cmpopts.EquateEmpty())
		if r.Decisions != 1 || len(r.Skipped) != 0 || r.Features[0].Found != 3 || r.Features[1].Found != 1 {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// A law does not depend on the order of its page. With two of three items drawn in 0.4 of the decisions, among six
// sets, the policy's page gets 0.4/6 + 0.6, and an item that is not on it 0.4 · 3/6.
func TestLawsInAnyOrder(t *testing.T) {
	const line = `{"decision_id":"a","items":[{"id":"x","features":{"price":1}},{"id":"y","features":{"price":2}},{"id":"z","features":{"price":3}}],"shopper":{"age":3},"shown":[%s],%s"sampling_law":%s,"status":"chosen"}`
	for _, c := range []struct {
		law        string
		kind       uint8
		propensity float64
		inclusion  [3]float64
	}{
		{`{"draw":"sets","share":0.4,"size":2,"page":[%s]}`, offer.DrawSets, 0.4/6 + 0.6, [3]float64{0.8, 0.2, 0.8}},
		{`{"draw":"pages","share":0.3,"size":2,"page":[%s]}`, offer.DrawPages, 0.3/3 + 0.7, [3]float64{0.9, 0.2, 0.9}},
		{`{"draw":"swaps","share":0.4,"size":2,"page":[%s]}`, offer.DrawSwaps, 0.6, [3]float64{0.8, 0.4, 0.8}},
	} {
		for _, page := range []string{`"x","z"`, `"z","x"`} {
			for _, shown := range []string{`"x","z"`, `"z","x"`} {
				list, _, err := read(t, "log.jsonl", fmt.Sprintf(line, shown,
					fmt.Sprintf(`"propensity":%v,`, c.propensity), fmt.Sprintf(c.law, page)), &importer.Mapping{})
				if err != nil {
					t.Errorf("page %s, shown %s: %v", page, shown, err)
					continue
				}
				d := list[0].Draw
				if diff := cmp.Diff([]uint32{0, 2}, d.Page); diff != "" || d.Kind != c.kind {
					t.Errorf("%+v", d)
				}
				for i, want := range c.inclusion {
					if p := d.Law(3).Inclusion(i); math.Abs(p-want) > 1e-12 {
						t.Errorf("page %s, kind %d: item %d has the probability %v, want %v", page, c.kind, i, p, want)
					}
				}
			}
		}
	}
	// A bit for each item of the page and each item: only x may be replaced, by y.
	swaps := base64.StdEncoding.EncodeToString([]byte{0b000010})
	law := `{"draw":"swaps","share":0.4,"size":2,"page":[%s],"swaps":"` + swaps + `"}`
	// Our tables keep the order of their rows, which the law refers to.
	row := `,"` + strings.ReplaceAll(fmt.Sprintf(law, `"z","x"`), `"`, `""`) + "\"\n"
	table := "decision_id,item,shown,chosen,price,sampling_law\na,z,0,0,1" + row + "a,y,1,0,1" + row + "a,x,2,0,1" + row
	many := ""
	for j := range 2100 {
		many += fmt.Sprintf("c%d,", j)
	}
	for name, text := range map[string]string{
		"log.jsonl": fmt.Sprintf(line, `"y","z"`, `"propensity":0.4,`, fmt.Sprintf(law, `"x","z"`)),
		"log.csv":   table,
		"wide.csv": strings.NewReplacer("decision_id", many+"decision_id", "\na,", "\n"+strings.Repeat(",", 2100)+"a,").
			Replace(table),
	} {
		list, _, err := read(t, name, text, &importer.Mapping{})
		fatal.If(t, err)
		for i, want := range []float64{0.6, 0.4, 1} {
			if p := list[0].Draw.Law(3).Inclusion(i); math.Abs(p-want) > 1e-12 {
				t.Errorf("%s: with swaps item %d has the probability %v, want %v", name, i, p, want)
			}
		}
	}
	for want, text := range map[string]string{
		"swaps belong to a page in the order of the items": fmt.Sprintf(law, `"z","x"`),
		`page has "w", which is not among the items`:       `{"draw":"sets","share":1,"size":2,"page":["w"]}`,
		`draw is "any": want sets, swaps, pages or items`:  `{"draw":"any"}`,
		"swaps: illegal base64":                            `{"draw":"swaps","page":["x"],"swaps":"?"}`,
		"the propensity 0.6, not 0.5":                      `{"draw":"swaps","share":0.4,"size":2,"page":["x","z"]}`,
	} {
		if _, _, err := read(t, "log.jsonl", fmt.Sprintf(line, `"x","z"`, `"propensity":0.5,`, text),
			&importer.Mapping{}); err == nil || !strings.Contains(err.Error(), "line 1: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// The law of a mapping covers all decisions. A page of 5 of 3 items would show them all, but only two were shown.
	list, _, err := read(t, "log.csv", "decision_id,item,chosen,shown,price\na,x,1,2,1\na,y,0,1,1\na,z,0,0,1\n",
		&importer.Mapping{Law: &importer.Law{Draw: "pages", Share: 1, Size: 5}})
	expect.Part(err)(t, "/sampling_law")
	if d := list[0].Draw; d.Size != 3 { // no more than there are items
		t.Errorf("%+v", d)
	}
	list, _, err = read(t, "log.csv", "decision_id,item,chosen,shown,price\na,x,1,2,1\na,y,0,1,1\na,z,0,0,1\n",
		&importer.Mapping{Law: &importer.Law{Draw: "sets", Share: 1, Size: 2}})
	if err != nil || math.Abs(list[0].Draw.Law(3).Propensity([]int{0, 1})-1.0/6) > 1e-12 {
		t.Errorf("%+v, %v", list, err)
	}
}

// Errors name the place and the column; decisions that teach nothing are counted.
func TestPlaces(t *testing.T) {
	for want, rows := range map[string]string{
		`line 3: column shown: "2nd" is no position`:                                  "a,x,0,1,1\na,y,1,2nd,1\n",
		`line 3: decision a has item "x" twice`:                                       "a,x,0,1,1\na,x,1,2,1\n",
		`line 2: decision a: item "x" was chosen and not shown`:                       "a,x,1,0,1\n",
		`line 3: decision a: item "b" was chosen and not shown`:                       "a,x,0,1,1\na,b,1,0,1\n",
		`line 2: column chosen: "2" is neither 0 nor 1`:                               "a,x,2,1,1\n",
		`line 3: column decision_id is empty: it identifies the decision`:             "a,x,0,1,1\n,y,1,2,1\n",
		`line 4: decision a has item "x" twice`:                                       "a,x,0,1,1\nb,x,0,1,1\na,x,0,1,1\n",
		`line 2: column propensity: the propensity is 1.5: must be in (0, 1]`:         "a,x,0,1,1.5\n",
		`line 3: column propensity: the propensity is 0.5, and 0.25 further up in de`: "a,x,0,1,0.25\na,y,0,2,0.5\n",
		`line 2 has 4 fields, and the header 5`:                                       "a,x,0,1\n",
	} {
		expect.Part(read(t, "log.csv", "decision_id,item,chosen,shown,propensity\n"+rows,
			&importer.Mapping{}))(t, "log.csv: "+want, want)
	}
	for want, value := range map[string]string{"is missing, and the feature has no default": "",
		"1e+99: is 1e+99 after scaling": "1e99"} {
		c := fatal.Or(setup.Parse([]byte(`{"max_size":3,"features":[{"name":"price","kind":"number"}]}`)))(t)
		_, err := importer.Read(t.Context(), file(t, "log.csv", []byte("decision_id,item,chosen,price\na,x,0,1\na,z,0,1\na,b,1,"+
			value+"\n")), &importer.Mapping{}, c, func(d *page.Imported) error { return engine.CheckImport("home", c, d) })
		if err == nil || !strings.Contains(err.Error(), `log.csv: line 4: item "b": /items/0/features/price: `+want) {
			t.Error(err)
		}
	}
	items := file(t, "items.csv", []byte("item_id\nb\nc\n"))
	for want, rows := range map[string]string{
		`line 3: item_id "a" is not in`:                        "r,c,1,.5\nr,a,0,.5\n",
		"line 3: column propensity_score: the propensity is 7": "r,c,1,.5\nr,b,0,7\n",
	} {
		expect.Part(read(t, "log.csv", "decision_id,item_id,click,propensity_score\n"+rows,
			&importer.Mapping{Format: "obp", Items: items}))(t, want)
	}
	list, r, err := read(t, "log.csv", "decision_id,item,chosen,shown,status,other\na,x,0,1,open,1\nb,x,0,0,,1\nc "+
		"d,x,0,1,,1\n", &importer.Mapping{})
	if err != nil || len(list) != 1 || !strings.HasPrefix(list[0].Request.Decision, "import-") {
		t.Errorf("%+v, %v", list, err)
	}
	want := &importer.Report{
		Decisions: 3, Skipped: map[string]int{"have the status open": 1, "show nothing": 1},
		Features: []importer.Match{{Feature: "price", Column: "price", Missing: 1},
			{Feature: "age", Column: "age", Missing: 1}},
		Unused: []string{"other"},
	}
	expect.Equal(t, r, want)
}

// Open Bandit's propensities are those of pages only if no page of the log has two items.
func TestPropensitiesOfOneItem(t *testing.T) {
	items := file(t, "items.csv", []byte("item_id\nx\ny\n"))
	for rows, want := range map[string]float64{"a,x,1,.5\nb,y,1,.5\n": 0.5, "a,x,1,.5\nb,x,0,.5\nb,y,1,.5\n": 0,
		"a,x,1,.5\nb,x,0,.5\nc,x,0,.5\nb,y,1,.5\n": 0} {
		list, _, err := read(t, "log.csv", "decision_id,item_id,click,propensity_score\n"+rows,
			&importer.Mapping{Format: "obp", Items: items})
		fatal.If(t, err)
		expect.Equal(t, list[0].Propensity, want, rows)
	}
}

// Values beyond a feature's bounds, which are center ± 10 scale by default, are counted: an import cuts them.
func TestClipped(t *testing.T) {
	c := fatal.Or(setup.Parse([]byte(strings.Replace(shop, `"price","kind":"number"`,
		`"price","kind":"number","center":5,"scale":0.1`, 1))))(t)
	path := filepath.Join(t.TempDir(), "log.csv")
	fatal.If(t, os.WriteFile(path, []byte("decision_id,item,chosen,price,age\na,x,1,4,99\na,y,0,6.5,99\na,z,0,,99\n"), 0o600))
	r := fatal.Or(importer.Read(t.Context(), path, &importer.Mapping{}, c, func(*page.Imported) error { return nil }))(t)
	expect.Equal(t, r.Features, []importer.Match{{Feature: "price", Column: "price", Found: 2, Missing: 1, Clipped: 1},
		{Feature: "age", Column: "age", Found: 1}})
}

// A shopper's feature may be written in any row of a decision, in any form of its number, but with one value.
func TestOneShopper(t *testing.T) {
	for _, column := range []string{"age", "user.age"} {
		rows := func(first, second string) string {
			return "decision_id,item,chosen," + column + "\na,x,0," + first + "\na,y,1," + second + "\n"
		}
		for first, second := range map[string]string{"30": "30.0", "NA": "30", "": "30", "30.0": "", "3e1": "NA"} {
			list, _, err := read(t, "log.csv", rows(first, second), &importer.Mapping{})
			fatal.If(t, err)
			expect.Equal(t, list[0].Request.User, api.Values{api.Number("age", 30)}, first, second)
		}
		expect.Part(read(t, "log.csv", rows("30", "31"), &importer.Mapping{}))(t, `log.csv: line 3: column `+column+
			`: it is "31", and "30" further up in decision a: a shopper's feature has one value: make it a feature of items`)
	}
}

// Times are RFC 3339, in other programs' forms, or seconds.
func TestTimes(t *testing.T) {
	for text, want := range map[string]int64{
		"200000000": 2e17, "200000000.5": 2e17 + 5e8, "1970-01-01T00:00:02Z": 2e9, "1970-01-01T01:00:02.5+01:00": 25e8,
		"1970-01-01 00:00:02": 2e9, "1970-01-01 00:00:02.25+00:00": 225e7,
	} {
		list, _, err := read(t, "log.csv", "decision_id,time,item,chosen\na,"+text+",x,1\n", &importer.Mapping{})
		if err != nil || list[0].Time != want {
			t.Errorf("%s: %v, want %d", text, err, want)
		}
	}
	for _, text := range []string{"yesterday", "45000", "-3", "1e11", "2300-01-01T00:00:00Z", "1600-01-01T00:00:00Z"} {
		expect.Part(read(t, "log.csv", "decision_id,time,item,chosen\na,"+text+",x,1\n",
			&importer.Mapping{}))(t, "line 2: column time: ", text)
	}
}
