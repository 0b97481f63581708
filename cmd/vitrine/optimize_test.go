package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"vitrine/assortment/assortmenttest"
	"vitrine/internal/fatal"
)

// Every error names the line where there is one, the item and the key.
func TestRequestsThatAreRefused(t *testing.T) {
	items := func(members string) string { return `{"items":[{"id":"z","utility":0},{` + members + `}]}` }
	for text, want := range map[string]string{
		"":                            `x: empty: want a JSON object with items`,
		" \n":                         `x: empty: want a JSON object with items`,
		"[]":                          `x:1: the request = an array: want an object`,
		"{}":                          `x: items is missing`,
		`{"items":[]} {}`:             `x:1: text after the request`,
		`{"items":[]`:                 `x:1: the request ends early`,
		`{"items":`:                   `x:1: the request ends early`,
		`{"items":[],`:                `x:1: the request ends early`,
		`{"item":[]}`:                 `x:1: unknown key "item": must be one of items, min_size, `,
		`{"items":{}}`:                `x:1: items = an object: want an array`,
		`{"items":null}`:              `x:1: items = null: want an array`,
		"{\n\"items\":[\n5]}":         `x:3: item 1: 5: want an object`,
		`{"items":[],"items":[]}`:     `x:1: duplicate key "items"`,
		`{"items":[],"max_size":1.5}`: `x:1: max_size = 1.5: want a whole number`,
		`{"items":[],"max_size":99999999999999999999}`:                `x:1: max_size = 99999999999999999999: want a whole number`,
		`{"items":[],"at_most":[]}`:                                   `x:1: at_most = an array: want an object`,
		`{"items":[],"at_most":{"g":"1"}}`:                            `x:1: g = "1": want a whole number`,
		`{"items":[],"include":["a",1]}`:                              `x:1: include = 1: want a string`,
		`{"items":[],"capacity":"big"}`:                               `x:1: capacity = "big": want a whole number`,
		`{"items":[],"min_revenue":-1}`:                               `x:1: min_revenue = -1: must be from 0 to`,
		items(`"id":"a"`):                                             `x:1: item "a": utility is missing`,
		items(`"utility":1`):                                          `x:1: item 2: id is missing`,
		items(`"id":"","utility":1`):                                  `x:1: item 2: id = "": must not be empty`,
		items(`"id":7`):                                               `x:1: item 2: id = 7: want a string`,
		items(`"utility":"NaN","id":"a"`):                             `x:1: item "a": utility = "NaN": want a number`,
		items(`"utility":NaN,"id":"a"`):                               `x:1: item 2: utility: invalid character 'N' at start of value`,
		items(`"utility":null,"id":"a"`):                              `x:1: item "a": utility = null: want a number`,
		items(`"utility":1e999,"id":"a"`):                             `x:1: item "a": utility = 1e999: must be from -700 to 700`,
		items(`"utility":-700.1,"id":"a"`):                            `x:1: item "a": utility = -700.1: must be from -700 to 700`,
		items(`"id":"a","utility":1,"revenue":-1`):                    `x:1: item "a": revenue = -1: must be 0 or from 1e-100 to 1e+100`,
		items(`"id":"a","utility":1,"revenue":1e101`):                 `x:1: item "a": revenue = 1e101: must be 0 or from 1e-100 to 1e+100`,
		items(`"id":"a","utility":1,"weight":-1`):                     `x:1: item "a": weight = -1: must not be negative`,
		items(`"id":"a","utility":1,"weight":1.5`):                    `x:1: item "a": weight = 1.5: want a whole number`,
		items(`"id":"a","utility":1,"group":3`):                       `x:1: item "a": group = 3: want a string`,
		items(`"id":"a","utility":1,"price":3`):                       `x:1: item "a": unknown key "price": must be one of id, utility, revenue, group, brand, weight`,
		items(`"id":"a","utility":1,"utility":2`):                     `x:1: item "a": duplicate key "utility"`,
		items(`"id":"a","utility":[{}]`):                              `x:1: item "a": utility = an array: want a number`,
		items(`"id":"a","utility":"` + strings.Repeat("é", 60) + `"`): `x:1: item "a": utility = "ééééééééééééééééééé…: want a number`,
	} {
		_, err := decodeJSON("x", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
		var refused *refusal
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v is no refusal", text, err)
		}
	}
}

// A table in another encoding is refused where it is read, before an answer
// would have to be written in it.
func TestTablesInOtherEncodings(t *testing.T) {
	for text, want := range map[string]string{
		"id,utility\na,1\ngr\xfcn,1\n":       `x:3: item 2: id = grn: want text in UTF-8`,
		"id,utility,group\na,1,gr\xfcn\n":    `x:2: item "a": group = grn: want text in UTF-8`,
		"id,utility,group\ngrün,1,gr\xfcn\n": `x:2: item "grün": group = grn: want text in UTF-8`,
	} {
		if _, err := decodeCSV("x", []byte(text), false); err == nil || err.Error() != want {
			t.Errorf("%q\n got %v\nwant %s", text, err, want)
		}
	}
}

// Escapes in keys and ids are read as JSON has them.
func TestEscapes(t *testing.T) {
	r, err := decodeJSON("x", []byte(`{"\u0069tems":[{"\u0069d":"a\"\u00e9","utility":1e0,"group":"g\/h"}]}`))
	if err != nil || r.ids[0] != `a"é` || r.groups[0] != "g/h" || r.utility[0] != 1 || r.revenue[0] != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Requests that are read are answered or refused, and the answer is feasible and
// the best of all.
func FuzzRequest(f *testing.F) {
	for _, text := range []string{
		`{"items":[{"id":"a","utility":1.2,"revenue":3.0,"group":"shoes","weight":2}],"max_size":5,"min_size":0,"at_most":{"shoes":2},"at_least":{},"include":["a"],"exclude":["b"],"capacity":10}`,
		`{"items":[{"id":"a","utility":1},{"id":"b","utility":-2,"group":"x/y"},{"id":"c","utility":3,"group":"x"}],"at_least":{"x":1},"at_most":{"x/y":0},"min_revenue":0.5}`,
		`{"items":[{"id":"a","utility":NaN}]}`, `{"items":[{"id":"\ud800","utility":1}]}`, "{\"items\":[{\"id\":\"a\"", "[[[", "",
	} {
		f.Add([]byte(text), false)
	}
	f.Add([]byte("id,utility,revenue,group,space\na,1,2,x/y,3\nb,-1,,,\n"), true)
	f.Add([]byte("id,utility\n\"a\nb\",1e5\n"), true)
	f.Fuzz(func(t *testing.T, text []byte, table bool) {
		if len(text) > 1<<12 {
			return
		}
		decode := decodeJSON
		if table {
			decode = func(name string, text []byte) (*request, error) { return decodeCSV(name, text, false) }
		}
		r, err := decode("fuzz", text)
		var out, words bytes.Buffer
		if err == nil && len(r.ids) <= 8 {
			err = optimizeCmd{}.answer(terminal{&out, &words}, r, &demand{})
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fuzz:") {
				t.Errorf("error %q does not begin with the input's name", err)
			}
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
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", &out, err)
		}
		family := fatal.Or(r.family(func(string) {}))(t)
		sum := got.Outside
		for _, id := range got.Assortment {
			sum += got.Choice[id]
		}
		best := assortmenttest.Best(assortmenttest.Sets(family, len(r.ids)), r.utility, r.revenue)
		if math.Abs(sum-1) > 1e-12 || got.Revenue < best*(1-1e-12) || len(got.Choice) != len(got.Assortment) || got.Iterations < 1 {
			t.Errorf("%s: probabilities sum to %v, the best set earns %v", &out, sum, best)
		}
	})
}

// The bounds of an outer group hold for a deeply nested group.
func TestGroupsWithinGroups(t *testing.T) {
	const depth = 200_000
	name := "g" + strings.Repeat("/g", depth)
	items := `{"items":[{"id":"a","utility":1,"group":"` + name + `"},{"id":"b","utility":1,"group":"gg"}],"at_most":{"g":0`
	for n := range 20 {
		items += fmt.Sprintf(`,"g%s":1`, strings.Repeat("/g", n+1))
	}
	r := fatal.Or(decodeJSON("x", []byte(items+`,"gg":1}}`)))(t)
	groups := fatal.Or(r.boundGroups(func(string) {}))(t)
	for _, g := range groups {
		want := []int{0}
		if g.Name == `group "gg"` {
			want = []int{1}
		}
		if !slices.Equal(g.Items, want) {
			t.Errorf("%s holds %v, want %v", g.Name, g.Items, want)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	var text bytes.Buffer
	text.WriteString(`{"items":[`)
	for i := range 10_000 {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"id":"item-%d","utility":%v,"revenue":%v,"group":"g%d","weight":%d}`, i, math.Sin(float64(i)), i%17, i%100, i%7)
	}
	text.WriteString(`]}`)
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := decodeJSON("x", text.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}
