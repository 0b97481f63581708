package importer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/importer"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// The decision of three items with prices 10, 20 and 30: z and x were shown to a user of age 30, and z was taken, in
// every form of line.
func TestSessions(t *testing.T) {
	want := page.Imported{
		Request: &api.Request{
			Decision: "a",
			User:     api.Values{api.Number("age", 30)},
			Items: []api.Item{
				{ID: "x", Features: api.Values{api.Number("price", 10)}},
				{ID: "y", Features: api.Values{api.Number("price", 20)}},
				{ID: "z", Features: api.Values{api.Number("price", 30)}},
			},
		},
		Shown: []string{"z", "x"}, Choices: []api.Choice{{Item: "z"}}, Time: 2e17,
	}
	columns := importer.Columns{Decision: "id", Time: "t", Item: "items", Shown: "shown", Chosen: "click"}
	nested := importer.Columns{Decision: "id", Time: "t", Item: "items.sku", Shown: "items.at", Chosen: "items.click"}
	for name, c := range map[string]struct {
		text    string
		columns importer.Columns
		mapping importer.Mapping
	}{
		"an id": {"id,t,age,items,price,shown,click\na,2e8,30,x|y|z,10|20|30,z|x,z\n", columns, importer.Mapping{
			List: "|"}},
		"JSON in CSV": {"id,t,age,items,price,shown,click\na,2e8,30,\"[\"\"x\"\",\"\"y\"\",\"\"z\"\"]\",\"[10,20,30]\",\"[\"\"z\"\", \"\"x\"\"]\",z\n", columns, importer.Mapping{}},
		"Python in CSV": {"id;t;age;items;price;shown;click\na;2e8;30;['x', 'y', 'z'];[10. 20. 30.];['z', " +
			"'x'];['z']\n", columns, importer.Mapping{Delimiter: ";"}},
		"flags": {"id,t,age,items,price,shown,click\na,2e8,30,x|y|z,10|20|30,z|x,0|0|1\n", columns, importer.Mapping{
			List: "|"}},
		"JSON Lines": {`{"id":"a","t":2e8,"age":30,"items":["x","y","z"],"price":[10,20,30],"shown":["z","x"],"click":"z"}`, columns, importer.Mapping{}},
		"objects":    {"\n" + `{"id":"a","t":2e8,"age":30,"items":[{"sku":"x","price":10,"at":2},{"sku":"y","price":20,"at":null},{"sku":"z","price":30,"at":1,"click":true}]}`, nested, importer.Mapping{Features: map[string]string{"price": "items.price"}}},
	} {
		c.mapping.Format, c.mapping.Columns = "sessions", c.columns
		got, r, err := read(t, "log", c.text, &c.mapping)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff([]*page.Imported{&want}, got); diff != "" || len(r.Unused) > 0 {
			t.Errorf("%s: unused %q (-want +got):\n%s", name, r.Unused, diff)
		}
	}
	// Items with their outcomes, in a file without a header: y was taken.
	got, _, err := read(t, "log", "7\tU\t11/15/2019 10:22:32 AM\tx-0 y-1\n", &importer.Mapping{
		Format: "sessions", Delimiter: "\t", List: " ", Header: []string{"id", "user", "t", "items"},
		Columns: importer.Columns{Decision: "id", Time: "t", Item: "items", Chosen: "items"},
	})
	if err != nil || first(got[0]) != "y" || len(got[0].Shown) != 2 || got[0].Time != 1573813352e9 {
		t.Errorf("%+v, %v", got[0], err)
	}
	for want, text := range map[string]string{
		`line 2: decision a has item "x" twice`:                     "id,t,items,shown,click\na,2e8,x|x,x,\n",
		`line 3: column id is empty: it identifies the decision`:    "id,t,items,shown,click\na,2e8,x|y,x,\n,3e8,x|y,x,\n",
		`line 2: column t: "then" is not a time`:                    "id,t,items,shown,click\na,then,x|y,x,\n",
		`line 1: there is no column "click": the columns are id, t`: "id,t,items,shown\n",
		`line 1: there is no column "units": the columns are id, t`: "id,t,items,shown,click\n",
		`no line has a value of "worth", which the mapping names`:   `{"id":"a","t":2e8,"items":["x"],"shown":["x"],"click":"x"}`,
		`line 2: /shown/0: "w" is not among the items`:              "id,t,items,shown,click\na,2e8,x|y,w,\n",
		"line 2: column worth has 1 values for 2 items":             "id,t,items,shown,click,worth\na,2e8,x|y,x,,7\n",
		"line 2: column units has 3 values for 2 items":             "id,t,items,shown,click,units\na,2e8,x|y,x,x,2|0|1\n",
	} {
		columns := columns
		if strings.Contains(want, "worth") {
			columns.Revenue = "worth"
		}
		if strings.Contains(want, "units") {
			columns.Units = "units"
		}
		expect.Part(read(t, "log", text, &importer.Mapping{Format: "sessions", List: "|",
			Columns: columns}))(t, "log: "+want, want)
	}
}

// A list of one value needs no separator to be the item's.
func TestListsOfOne(t *testing.T) {
	m := &importer.Mapping{Format: "sessions", List: "|", Columns: importer.Columns{Decision: "id", Item: "items",
		Chosen: "click", Revenue: "revenue"}}
	got, r, err := read(t, "log.csv", "id,items,click,price,revenue,age\na,x|y,x,1|2,3|4,30\nb,x,x,7,5,40\n", m)
	fatal.If(t, err)
	want := api.Item{ID: "x", Features: api.Values{api.Number("price", 7)}, Revenue: new(5.0)}
	if diff := cmp.Diff(want, got[1].Request.Items[0]); diff != "" || r.Features[0].Missing != 0 {
		t.Errorf("%+v, -want +got:\n%s", r.Features, diff)
	}
}

// Decisions in the text and the JSON of Vowpal Wabbit: b was shown with probability 0.25 and taken.
func TestVW(t *testing.T) {
	want := []*page.Imported{{
		Request: &api.Request{
			Decision: "e1",
			User:     api.Values{api.Number("age", 30)},
			Items: []api.Item{
				{ID: "a", Features: api.Values{api.Number("price", 10)}},
				{ID: "b", Features: api.Values{api.Number("price", 20)}},
			},
		},
		Shown: []string{"b"}, Choices: []api.Choice{{Item: "b"}}, Propensity: 0.25,
	}}
	price := map[string]string{"price": "i.price", "age": "u.age"}
	for name, c := range map[string]struct {
		format, text string
		mapping      importer.Mapping
	}{
		"text":    {"vw", "shared e1|u age:30\na|i price:10\n0:-1:0.25 b|i price:20\n\n", importer.Mapping{}},
		"a scale": {"vw", "shared 'e1 |u:2 age:15\n'a |i price:10 |j new\n2:-1:0.25 'b |i price:20", importer.Mapping{}},
		"losses": {"vw", "shared e1|u age:30\na|i price:10\n2:0:0.25 b|i price:20\n\n\n", importer.Mapping{
			Loss: true}},
		"a label outside": {"vwjson", `{"_tag":"e1","u":{"age":30},"_label_Action":2,"_label_Cost":-1,"_label_Probability":0.25,"_multi":[{"_tag":"a","i":{"price":10}},{"_tag":"b","i":{"price":20}}]}`, importer.Mapping{}},
		"an index":        {"vwjson", `{"_tag":"e1","u":{"age":30},"_labelIndex":1,"_label_Action":1,"_label_Cost":0,"_label_Probability":0.25,"_multi":[{"_tag":"a","i":{"price":10}},{"_tag":"b","i":{"price":20}}]}`, importer.Mapping{Loss: true}},
		"a label inside":  {"vwjson", `{"_tag":"e1","u":{"age":30},"_multi":[{"_tag":"a","i":{"price":10}},{"_tag":"b","i":{"price":20},"_label":"1:-1:0.25"}]}`, importer.Mapping{}},
		"twice":           {"vwjson", `{"_tag":"e0","_tag":"e1","u":{"age":30},"_multi":[{}],"_multi":[{"_tag":"a","i":{"price":10}},{"_tag":"b","i":{"price":20},"_label":"1:-1:0.25"}]}`, importer.Mapping{}},
		"an object":       {"vwjson", `{"_tag":"e1","u":{"age":30},"_multi":[{"_tag":"a","i":{"price":10}},{"_tag":"b","i":{"price":20},"_label":{"Action":1,"Cost":-1,"Probability":0.25}}]}`, importer.Mapping{}},
	} {
		c.mapping.Format, c.mapping.Features = c.format, price
		got, _, err := read(t, "log", c.text, &c.mapping)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		expect.Equal(t, got, want, name)
	}
	// An empty tag is no id: the decision's text makes it.
	got, _, err := read(t, "log", `{"_tag":"","_label":"1:0:0.4"}`+"\n"+`{"_tag":"","_label":"2:0:0.4"}`,
		&importer.Mapping{Format: "vwjson", Actions: 2})
	if err != nil || strings.HasPrefix(got[1].Request.Decision, got[0].Request.Decision) {
		t.Errorf("%+v, %v", got, err)
	}
	// Actions without lines, and slots.
	got, r, err := read(t, "log", "1:-1:0.4 | age:3\n3:0:0.2 x| age:4 b\n| age:5\n",
		&importer.Mapping{Format: "vw", Actions: 3})
	if err != nil || len(got) != 2 || len(got[0].Request.Items) != 3 || first(got[0]) != "1" ||
		got[1].Request.Decision != "x" || got[1].Shown[0] != "3" || got[1].Propensity != 0.2 ||
		r.Skipped["have no label"] != 1 {
		t.Errorf("%+v, %+v, %v", got, r, err)
	}
	got, _, err = read(t, "log", "ccb shared |u age:3\nccb action |i price:1\nccb action |i price:2\nccb action "+
		"|i price:3\nccb slot 2:0:0.5,0:0.3,1:0.2 |\nccb slot 0:-1:0.6,1:0.4 |\n",
		&importer.Mapping{Format: "vw", Features: price})
	if err != nil || strings.Join(got[0].Shown, "") != "31" || first(got[0]) != "1" {
		t.Errorf("%+v, %v", got, err)
	}
	got, _, err = read(t, "log", "ccb shared |\nccb action |\nccb action |\nccb slot 0:0:0.5,1:0.5 |\nccb slot "+
		"1:1:1 |\n", &importer.Mapping{Format: "vw", Loss: true})
	if err != nil || first(got[0]) != "1" {
		t.Errorf("losses of slots: %+v, %v", got, err)
	}
	_, r, err = read(t, "log", "slates shared 0.8 | s\nslates action 0 | a\nslates slot 0:0.8 |\n\nshared "+
		"|\n1:-1:0.5 | a\n | b\n", &importer.Mapping{Format: "vw"})
	if err != nil || r.Decisions != 2 ||
		r.Skipped["have one reward for a page of slots, and not for an item (slates)"] != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	for want, text := range map[string]string{
		`line 1: "1 2 3" has no features`:                        "1 2 3",
		`line 1: the label "1:2" is not action:cost:probability`: "1:2 | a",
		`line 2: slot 0: the propensity is 2: must be in (0, 1]`: "shared |\n1:0:2 | a",
		`line 1: "ccb ": want ccb shared`:                        "ccb |",
	} {
		expect.Part(read(t, "log", text, &importer.Mapping{Format: "vw"}))(t, "log: "+want, want)
	}
}

// Slates reward a page: their items are not counted as passed over.
func TestSlates(t *testing.T) {
	_, r, err := read(t, "log.dsjson", `{"_label_cost":-1,"EventId":"a","_outcomes":[{"_a":1,"_p":0.5},{"_a":[0],"_p":[0.25]}],"c":{"_multi":[{"_slot_id":0},{"_slot_id":0},{"_slot_id":1}],"_slots":[{},{}]}}`+"\n"+
		`{"EventId":"b","_label_cost":0,"a":[1],"p":[1],"c":{"_multi":[{"f":1}]}}`, &importer.Mapping{})
	if err != nil || r.Decisions != 2 ||
		r.Skipped["have one reward for a page of slots, and not for an item (slates)"] != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Any lines are read, or an error names one.
func FuzzLines(f *testing.F) {
	for _, text := range []string{
		"shared e1|u:2 age:30\na|i price:10 c=d\n0:-1:0.25 b|i price:20\n\n1:0:.5 | a", "ccb shared |\nccb action " +
			"|i a:b\nccb slot 0:1:0.5,1:0.5 |", "slates shared 0.8 |\n",
		`{"_tag":"e1","u":{"age":[30]},"_labelIndex":1,"_label_Cost":-1,"_label_Probability":0.25,"_multi":[{"i":{"price":10}},{"_label":"1:2:.5"}]}`, `{"_label":{"Action":1,"Cost":0,"Probability":1},"a":1}`,
		`{"id":"a","t":2e8,"age":30,"items":[{"sku":"x","price":[10]},{"sku":"z","click":true}],"click":["z"]}`,
		"id,items,click\na,x|y,[1]\nb,['x' 'y'],0|1\n",
	} {
		f.Add(text, uint8(0))
		f.Add(text, uint8(2))
	}
	c := fatal.Or(setup.Parse([]byte(placement)))(f)
	f.Fuzz(func(t *testing.T, text string, actions uint8) {
		if len(text) > 1<<14 {
			return
		}
		path := filepath.Join(t.TempDir(), "log")
		fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
		for _, m := range []importer.Mapping{
			{Format: "vw", Actions: int(actions)}, {Format: "vwjson", Actions: int(actions)},
			{Format: "sessions", List: "|", Columns: importer.Columns{Item: "items", Chosen: "click"}},
			{Format: "sessions", Columns: importer.Columns{Item: "items.sku", Chosen: "items.click",
				Shown: "items.at"}},
			{Format: "sessions", List: " ", Header: []string{"items"},
				Columns: importer.Columns{Item: "items", Chosen: "items"}},
		} {
			n := 0
			report, err := importer.Read(t.Context(), path, &m, c, func(d *page.Imported) error {
				n++
				return engine.CheckImport("home", c, d)
			})
			if err != nil && len(err.Error()) > 5000 || err == nil && report.Decisions < n {
				t.Fatalf("%+v: %d decisions, %+v, %v", m, n, report, err)
			}
		}
	})
}

// Events of the kinds in the mapping show and take items; an item may be shown again.
func TestEvents(t *testing.T) {
	const text = "page,kind,item,price\na,view,x,1\na,view,y,2\na,view,x,1\na,cart,x,1\na,click,y,2\na,click,y,2\nb,view,x,1\nc,view,x,1\nc,click,z,9\nd,click,x,1\n"
	m := &importer.Mapping{Columns: importer.Columns{Decision: "page"},
		Events: &importer.Events{Column: "kind", Shown: "view", Chosen: "click"}}
	list, r, err := read(t, "log.csv", text, m)
	if err != nil || len(list) != 2 || strings.Join(list[0].Shown, "") != "xy" || first(list[0]) != "y" ||
		first(list[1]) != "" || r.Skipped["have an item taken that was not shown"] != 2 {
		t.Errorf("%+v, %+v, %v", list, r, err)
	}
	m.Events.Column = "type"
	expect.Part(read(t, "log.csv", text, m))(t, `events.column: there is no column "type": the columns are page, kind`)
}

// A proposed mapping is the same after it was written to a file.
func roundTrip(t *testing.T, m *importer.Mapping) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mapping.toml")
	fatal.If(t, os.WriteFile(path, []byte(m.Text()), 0o600))
	got, err := importer.ReadMapping(path)
	fatal.If(t, err, "in", m.Text())
	expect.Equal(t, got, m, cmpopts.IgnoreUnexported(importer.Mapping{}), cmpopts.EquateEmpty())
}

func TestMappingText(t *testing.T) {
	roundTrip(t, &importer.Mapping{
		Format: "sessions", Delimiter: "\t", Header: []string{"a \"b\"", "ü\\"}, List: " ", Items: "/x/y z.csv",
		Actions: 3, Loss: true, Several: "first", Rewards: "choice",
		Columns: importer.Columns{Decision: "d", Time: "t", Item: "i.id", Shown: "s", Chosen: "c", Revenue: "r",
			Propensity: "p"}, Events: &importer.Events{Column: "e", Shown: "s'", Chosen: "\x01"},
		Features: map[string]string{"price": "price €", "a.b": "c", "x y": "z"},
		Law:      &importer.Law{Draw: "pages", Share: 0.25, Size: 3, Page: "own"},
	})
	roundTrip(t, &importer.Mapping{Format: "csv", Law: &importer.Law{Draw: "items", Propensity: "p", Slot: "s"}})
}

// Any log is recognized or an error says why not; the mapping of a recognized one can be written.
func FuzzRecognize(f *testing.F) {
	for _, text := range []string{
		"request_id,sku,pos,click,p,price\na,x,1,1,0.5,2\na,y,2,0,0.5,3\nb,x,1,0,0.5,2\nb,z,0,0,0.5,1\n",
		"srch;hotel;klick\n1;7;0\n1;8;1\n",
		"7\tU\t11/15/2019 10:22:32 AM\tx1-0 y2-1\n8\tU\t11/15/2019 10:22:33 AM\tx1-0 y2-1\n",
		"session,ts,items,clicked\na,2e8,1|2|3,2\nb,3,1|3,\n", "page,event,item\na,view,x\na,view,y\na,click,y\n",
		"shared |u a\n0:1:.5 |i b\n |i c\n\n", "1:0:.5 | a\n2:1:.5 | b\n",
		"timestamp,item_id,position,click,propensity_score\n", "[{}]",
		`{"id":"a","items":[{"sku":"x","click":true},{"sku":"y","click":false}]}`,
		`{"EventId":"x","_label_cost":-1,"a":[2,1],"p":[0.5,0.5],"c":{"u":[{"age":4}],"_multi":[{"_tag":"a","j":{"price":1}},{"_tag":"b"}]}}`, `{"_label":"1:0:.5","a":1}`, `{"_multi":[{},{"_label":"1:0:.5"}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<13 {
			return
		}
		path := filepath.Join(t.TempDir(), "log")
		fatal.If(t, os.WriteFile(path, data, 0o600))
		r, err := importer.Recognize(t.Context(), path)
		if err != nil || r.Needs != nil {
			return
		}
		l, err := importer.Open(t.Context(), path, r.Mapping)
		if err != nil {
			return
		}
		defer l.Close()
		v, err := l.Survey(t.Context())
		if err != nil || v.Decisions == 0 {
			return
		}
		text, _, err := r.Propose(v)
		if err != nil {
			return
		}
		roundTrip(t, r.Mapping)
		c := fatal.Or(setup.Parse(text))(t)
		_, _ = l.Read(t.Context(), "", c, func(d *page.Imported) error { return engine.CheckImport("home", c, d) })
	})
}
