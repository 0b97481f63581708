package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"vitrine/assortment/assortmenttest"
	"vitrine/choice"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/hint"
)

// A list of groups in Parquet is refused: its rules would be ignored.
func TestListOfGroups(t *testing.T) {
	t.Chdir(t.TempDir())
	var b bytes.Buffer
	w := parquet.NewGenericWriter[struct {
		ID      string   `parquet:"id"`
		Utility float64  `parquet:"utility"`
		Groups  []string `parquet:"groups,list"`
	}](&b)
	fatal.If(t, w.Close())
	write(t, "items.parquet", b.String())
	if _, errs, code := vitrineRun(t, "optimize", "items.parquet"); code == 0 || !strings.Contains(errs, `column "groups" is a list`) {
		t.Errorf("%d, %s", code, errs)
	}
}

// Every error names the item or the key.
func TestRequestsThatAreRefused(t *testing.T) {
	items := func(members string) string { return `{"items":[{"id":"z","utility":0},{` + members + `}]}` }
	for text, want := range map[string]string{
		"":                                  `empty: want a JSON object with items`,
		" \n":                               `empty: want a JSON object with items`,
		"[]":                                `wrong type: have a list, want an object`,
		"{}":                                `items is missing`,
		`{"items":null}`:                    `items is missing`,
		`{"items":[]} {}`:                   `not JSON: `,
		`{"items":[]`:                       `the JSON ends early`,
		`{"item":[]}`:                       `/item: unknown key "item": did you mean "items"?`,
		`{"items":{}}`:                      `/items: wrong type: have an object, want a list`,
		`{"items":[],"items":[]}`:           `/items: duplicate key`,
		`{"items":[],"max_size":1.5}`:       `/max_size: `,
		`{"items":[],"limits":{"g":1}}`:     `/limits: wrong type: have an object, want a list`,
		`{"items":[],"limits":[{"max":1}]}`: `limits/0: must have either a group or items`,
		`{"items":[],"limits":[{"group":"g","items":[],"max":1}]}`: `limits/0: must have either a group or items`,
		`{"items":[],"limits":[{"group":"g","min":-1}]}`:           `/limits/0/min: -1: must not be negative`,
		`{"items":[],"limits":[{"feature":"brand","max":1}]}`:      `limits/0: items have groups only`,
		`{"items":[],"include":["a",1]}`:                           `/include/1: wrong type`,
		`{"items":[],"min_revenue":-1}`:                            `min_revenue = -1: must be from 0 to`,
		items(`"id":"a"`):                                          `item "a": utility is missing`,
		items(`"utility":1`):                                       `item 2: id is missing`,
		items(`"id":"a","utility":null`):                           `item "a": utility is missing`,
		items(`"id":7`):                                            `/items/1/id: wrong type: have a number, want a string`,
		items(`"utility":NaN,"id":"a"`):                            `/items/1/utility: not JSON: `,
		items(`"utility":1e999,"id":"a"`):                          `/items/1/utility: must be a number, and not that large`,
		items(`"utility":-700.1,"id":"a"`):                         `item "a": utility = -700.1: must be from -700 to 700`,
		items(`"id":"a","utility":1,"revenue":-1`):                 `item "a": revenue = -1: must be 0 or from 1e-100 to 1e+100`,
		items(`"id":"a","utility":1,"space":-1`):                   `item "a": space = -1: must not be negative`,
		items(`"id":"a","utility":1,"price":3`):                    `/items/1/price: unknown key "price": must be one of id, utility, revenue, groups, space`,
		items(`"id":"z","utility":1`):                              `items 1 and 2 both have the id "z": every item needs its own`,
	} {
		r, err := decodeJSON([]byte(text))
		if err == nil {
			_, err = r.family(func(string) {})
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) || hint.Of(err) == "" {
			t.Errorf("%s\n got %v, hint %q\nwant %s", text, err, hint.Of(err), want)
		}
	}
}

// readItems reads a table of items.
func readItems(t testing.TB, text []byte) (*request, error) {
	path := filepath.Join(t.TempDir(), "items")
	fatal.If(t, os.WriteFile(path, text, 0o600))
	f := fatal.Or(os.Open(path))(t)
	defer f.Close()
	return readTable(f, nil)
}

// A table in another encoding is refused when it is read, before an answer must be written in it.
func TestTablesInOtherEncodings(t *testing.T) {
	for text, want := range map[string]string{
		"id,utility\na,1\ngr\xfcn,1\n":     `line 3: column id: "gr\xfcn" is not UTF-8: convert the file`,
		"id,utility,groups\na,1,gr\xfcn\n": `line 2: column groups: "gr\xfcn" is not UTF-8: convert the file`,
	} {
		expect.Message(readItems(t, []byte(text)))(t, want, text)
	}
}

// The same items and rules are one request, in any form.
func TestForms(t *testing.T) {
	want := fatal.Or(decodeJSON([]byte(`{"\u0069tems":[{"\u0069d":"a\"\u00e9","utility":1e0,"groups":["g\/h","x"],"space":2}]}`)))(t)
	for _, text := range []string{
		"id,utility,groups,space\n\"a\"\"é\",1,g/h | x,2\n",
		`{"id":"a\"é","utility":1,"groups":["g/h","x"],"space":2}`,
		`{"id":"a\"é","utility":1,"groups":"g/h|x","space":2}`,
	} {
		got := fatal.Or(readItems(t, []byte(text)))(t)
		for i := range got.Items {
			got.Items[i].at = ""
		}
		expect.Equal(t, got, want, text, cmp.AllowUnexported(request{}, item{}))
	}
}

// Requests that are read are answered or refused, and the answer is feasible and
// the best of all.
func FuzzRequest(f *testing.F) {
	for _, text := range []string{
		`{"items":[{"id":"a","utility":1.2,"revenue":3.0,"groups":["shoes"],"space":2}],"max_size":5,"min_size":0,"limits":[{"group":"shoes","max":2}],"include":["a"],"exclude":["b"],"capacity":10}`,
		`{"items":[{"id":"a","utility":1},{"id":"b","utility":-2,"groups":["x/y","z"]},{"id":"c","utility":3,"groups":["x"]}],"limits":[{"group":"x","min":1},{"group":"x/y","max":0},{"items":["a"],"max":1}],"min_revenue":0.5}`,
		`{"items":[{"id":"a","utility":NaN}]}`, `{"items":[{"id":"\ud800","utility":1}]}`, "{\"items\":[{\"id\":\"a\"",
		"[[[", "",
	} {
		f.Add([]byte(text), false)
	}
	f.Add([]byte("id,utility,revenue,groups,space\na,1,2,x/y|z,3\nb,-1,,,\n"), true)
	f.Add([]byte("id,utility\n\"a\nb\",1e5\n"), true)
	f.Fuzz(func(t *testing.T, text []byte, isTable bool) {
		if len(text) > 1<<12 {
			return
		}
		decode := decodeJSON
		if isTable {
			decode = func(text []byte) (*request, error) { return readItems(t, text) }
		}
		r, err := decode(text)
		var out, words bytes.Buffer
		if err == nil && len(r.Items) <= 8 {
			err = answer(terminal{&out, &words}, "fuzz", r, &demand{})
		}
		if err != nil {
			return
		}
		if out.Len() == 0 {
			return
		}
		var got struct {
			Assortment []string           `json:"assortment"`
			Revenue    float64            `json:"expected_revenue"`
			Outside    float64            `json:"outside_probability"`
			Choice     map[string]float64 `json:"choice_probability"`
			Iterations int                `json:"iterations"`
		}
		fatal.If(t, json.Unmarshal(out.Bytes(), &got), &out)
		family := fatal.Or(r.family(func(string) {}))(t)
		sum := got.Outside
		for _, id := range got.Assortment {
			sum += got.Choice[id]
		}
		best := assortmenttest.Best(assortmenttest.Sets(family, len(r.Items)), r.utility, r.revenue)
		if math.Abs(sum-1) > 1e-12 || got.Revenue < best*(1-1e-12) || len(got.Choice) != len(got.Assortment) ||
			got.Iterations < 1 {
			t.Errorf("%s: probabilities sum to %v, the best set earns %v", &out, sum, best)
		}
	})
}

// The bounds of an outer group hold for a deeply nested group.
func TestGroupsWithinGroups(t *testing.T) {
	const depth = 200_000
	name := "g" + strings.Repeat("/g", depth)
	rules := `{"group":"g","max":0},{"group":"gg","max":1}`
	for n := range 20 {
		rules += fmt.Sprintf(`,{"group":"g%s","max":1}`, strings.Repeat("/g", n+1))
	}
	r := fatal.Or(decodeJSON([]byte(`{"items":[{"id":"a","utility":1,"groups":["` + name +
		`","g/x"]},{"id":"b","utility":1,"groups":["gg"]}],"limits":[` + rules + `]}`)))(t)
	groups := fatal.Or(r.groups(map[string]int{}, func(string) {}))(t)
	for _, g := range groups {
		want := []int{0}
		if g.Name == `group "gg"` {
			want = []int{1}
		}
		expect.List(t, g.Items, want, g.Name, "holds")
	}
}

func BenchmarkDecode(b *testing.B) {
	var text bytes.Buffer
	text.WriteString(`{"items":[`)
	for i := range 10_000 {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"id":"item-%d","utility":%v,"revenue":%v,"groups":["g%d"],"space":%d}`, i,
			math.Sin(float64(i)), i%17, i%100, i%7)
	}
	text.WriteString(`]}`)
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		fatal.Or(decodeJSON(text.Bytes()))(b)
	}
}

// The items of a model are separated as the table of its choices was.
func TestItemsAreDelimitedAsChoices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "items.csv")
	fatal.If(t, os.WriteFile(path, []byte("id;price;revenue\na;1;3\n"), 0o600))
	f := fatal.Or(os.Open(path))(t)
	defer f.Close()
	r := fatal.Or(readTable(f, &choice.Result{Spec: &choice.Spec{Data: choice.Layout{Delimiter: ";"}}}))(t)
	expect.Equal(t, *r.Items[0].Revenue, 3, "revenue")
}
