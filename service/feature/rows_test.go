package feature_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/feature"
)

// read returns the schema of JSON features.
func read(text string) (*feature.Schema, error) {
	var features []api.Feature
	if err := json.Unmarshal([]byte(text), &features, json.RejectUnknownMembers(true)); err != nil {
		return nil, api.JSONError(err)
	}
	return feature.New(features)
}

func schema(t testing.TB, text string) *feature.Schema {
	t.Helper()
	s := fatal.Or(read(text))(t)
	return s
}

func row(t *testing.T, s *feature.Schema, user, item []api.Value) []float64 {
	t.Helper()
	x := make([]float64, s.Width())
	fatal.Or(s.Rows(x, user, []api.Item{{ID: "i", Features: item}}))(t)
	return x
}

// Every kind's columns equal its equation. Buckets and signs are from another implementation of FNV-1a and SplitMix64's
// finaliser, in Python:
//
//	def h(name, v):
//	    z = 14695981039346656037
//	    for b in (name + "\0" + v).encode(): z = (z ^ b) * 1099511628211 % 2**64
//	    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 % 2**64
//	    z = (z ^ z >> 27) * 0x94d049bb133111eb % 2**64
//	    return z ^ z >> 31
func TestRows(t *testing.T) {
	num := func(v float64) api.Value { return api.Number("", v) }
	text := func(v string) api.Value { return api.Text("", v) }
	half := 1 / math.Sqrt(2)
	for _, c := range []struct {
		what, features string
		user, item     []api.Value
		want           []float64
	}{
		{"number", `[{"name":"price","kind":"number","center":2,"scale":4}]`, nil, []api.Value{num(4)}, []float64{0.5}},
		{"plain number", `[{"name":"price","kind":"number"}]`, nil, []api.Value{num(-4)}, []float64{-4}},
		{"default", `[{"name":"price","kind":"number","default":3}]`, nil, []api.Value{{}}, []float64{3}},
		{"one of values", `[{"name":"brand","kind":"category","values":["a","b"]}]`, nil, []api.Value{text("b")},
			[]float64{0, 1}},
		{"another value", `[{"name":"brand","kind":"category","values":["a","b"],"allow_other":true}]`, nil,
			[]api.Value{text("z")}, []float64{0, 0, 1}},
		{"default value", `[{"name":"brand","kind":"category","values":["a","b"],"default":"a"}]`, nil, []api.Value{{}},
			[]float64{1, 0}},
		{"hashed", `[{"name":"brand","kind":"category","columns":11}]`, nil, []api.Value{text("acme")}, hashed},
		{"hashed empty", `[{"name":"brand","kind":"category","columns":11}]`, nil, []api.Value{text("")}, empty},
		{"text", `[{"name":"title","kind":"text","columns":6}]`, nil, []api.Value{text("Red shoes, red!")}, words},
		{"no words", `[{"name":"title","kind":"text","columns":2}]`, nil, []api.Value{text("!")}, []float64{0, 0}},
		{
			"cross", `[{"name":"age","kind":"category","from":"shopper","values":["young","old"]},{"name":"price","kind":"number"},{"name":"x","kind":"cross","of":["age","price"]}]`,
			[]api.Value{text("old")}, []api.Value{num(3)}, []float64{0, 1, 3, 0, 3},
		},
		{
			"square", `[{"name":"price","kind":"number"},{"name":"x","kind":"cross","of":["price","price"]}]`, nil,
			[]api.Value{num(half)}, []float64{half, half * half},
		},
	} {
		s := schema(t, c.features)
		expect.Equal(t, row(t, s, c.user, c.item), c.want, c.what)
	}
}

// Computed as h("brand", "acme") mod 11 and so on, see TestRows.
var (
	hashed = oneHot(11, 6)
	empty  = oneHot(11, 5)
	words  = []float64{0, -1 / math.Sqrt(5), 0, 2 / math.Sqrt(5), 0, 0}
)

func oneHot(n, k int) []float64 {
	x := make([]float64, n)
	x[k] = 1
	return x
}

// The user's features are in every row.
func TestRowsOfManyItems(t *testing.T) {
	s := schema(t, `[{"name":"price","kind":"number"},{"name":"age","kind":"number","from":"shopper"},{"name":"x","kind":"cross","of":["age","price"]}]`)
	x := make([]float64, 2*s.Width())
	items := []api.Item{{ID: "a", Features: []api.Value{api.Number("", 2)}},
		{ID: "b", Features: []api.Value{api.Number("", 5)}}}
	fatal.Or(s.Rows(x, []api.Value{api.Number("", 3)}, items))(t)
	expect.Equal(t, x, []float64{2, 3, 6, 5, 3, 15}, "rows")
	items[1].Features[0].Number = 1e19
	_, err := s.Rows(x, nil, items)
	if want := "/items/1/features/price: 1e+19: is 1e+19 after scaling"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a number that no learner takes: %v, want %s", err, want)
	}
}

func TestBadFeatures(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"number"}`:                                                   `/name: must have from 1 to 100 bytes`,
		`{"name":"first","kind":"number"}`:                                    `/name: "first" is a duplicate`,
		`{"name":"x","kind":"numbr"}`:                                         `/kind: "numbr": unknown: did you mean "number"?`,
		`{"name":"x","kind":"number","columns":3}`:                            `/columns: is not a field of kind "number"`,
		`{"name":"x","kind":"number","scale":-1}`:                             `/scale: -1: must be positive`,
		`{"name":"x","kind":"number","scale":0}`:                              `/scale: 0: must be positive`,
		`{"name":"x","kind":"number","from":"shop"}`:                          `/from: "shop": unknown: must be one of item, shopper`,
		`{"name":"x","kind":"number","default":"a"}`:                          `/default: "a": want a number`,
		`{"name":"x","kind":"number","default":[]}`:                           `/default: must be a number or a string`,
		`{"name":"x","kind":"number","default":1e19}`:                         `/default: 1e+19: is 1e+19 after scaling`,
		`{"name":"x","kind":"category","default":3}`:                          `/default: 3: want a string`,
		`{"name":"x","kind":"category","values":[]}`:                          `/values: a category has either at least one value or columns`,
		`{"name":"x","kind":"category","values":["a","a"]}`:                   `/values/1: "a" is a duplicate`,
		`{"name":"x","kind":"category","values":["a"],"columns":2}`:           `/values: a category has either at least one value or columns`,
		`{"name":"x","kind":"category","allow_other":true}`:                   `/allow_other: is only for a category with values`,
		`{"name":"x","kind":"category","values":["a"],"default":"b"}`:         `/default: "b": is not one of the feature's values`,
		`{"name":"x","kind":"text","columns":-2}`:                             `/columns: -2: must be from 1 to 4096`,
		`{"name":"x","kind":"text","columns":4096}`:                           `: the row has more than 4096 columns`,
		`{"name":"x","kind":"cross","of":["first"]}`:                          `/of: must name two features`,
		`{"name":"x","kind":"cross","of":["first","later"]}`:                  `/of/1: "later" is not an earlier feature`,
		`{"name":"x","kind":"cross","of":["first","first"],"from":"shopper"}`: `/from: is not a field of kind "cross"`,
	} {
		_, err := read(`[{"name":"first","kind":"number"},` + text + `]`)
		if want = "/features/1" + want; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
	expect.Fails(read(`[]`))(t, api.ErrInvalid, "no features")
}

// Category returns the item's value or the default.
func TestCategory(t *testing.T) {
	s := schema(t, `[{"name":"age","kind":"category","from":"shopper"},{"name":"brand","kind":"category","default":"zen"},{"name":"price","kind":"number"}]`)
	for _, c := range []struct {
		v    api.Value
		want string
	}{{api.Text("", "acme"), "acme"}, {api.Value{}, "zen"}} {
		expect.Equal(t, s.Category(&api.Item{Features: []api.Value{c.v, {}}}, "brand"), c.want, "category")
	}
	for name, want := range map[string]bool{"brand": true, "age": false, "price": false, "colour": false} {
		expect.Equal(t, s.IsCategory(name), want, name, "is a category of items", !want)
	}
}

func BenchmarkRows(b *testing.B) {
	const items, numbers = 100, 10
	var text []string
	for j := range numbers {
		text = append(text, fmt.Sprintf(`{"name":"x%d","kind":"number"}`, j))
	}
	s := fatal.Or(read("[" + strings.Join(text, ",") + "]"))(b)
	requested := make([]api.Item, items)
	for i := range requested {
		for j := range numbers {
			requested[i].Features = append(requested[i].Features, api.Number("", float64(i+j)/7))
		}
	}
	rows := make([]float64, items*numbers)
	for b.Loop() {
		fatal.Or(s.Rows(rows, nil, requested))(b)
	}
}
