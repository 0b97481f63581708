package feature_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/feature"
)

// learning returns the schema of a category with the given fields, as a placement would build it.
func learning(t testing.TB, fields string) *feature.Schema {
	t.Helper()
	var features []api.Feature
	fatal.If(t, json.Unmarshal([]byte(`[{"name":"brand","kind":"category"`+fields+
		`},{"name":"place","kind":"category","from":"shopper","default":"home","columns":8}]`), &features))
	feature.Complete(features)
	s := fatal.Or(feature.New(features))(t)
	return s
}

func branded(brands ...string) (items []api.Item) {
	for i, b := range brands {
		items = append(items, api.Item{ID: fmt.Sprint(i), Features: api.Values{api.Text("brand", b)}})
	}
	return items
}

// met returns the schema after it has learned from requests for items of the brands.
func met(t testing.TB, s *feature.Schema, brands ...string) *feature.Schema {
	t.Helper()
	for _, seen := range s.Unseen(nil, branded(brands...)) {
		var err error
		if s, err = s.Learn(seen); err != nil {
			t.Fatal(err)
		}
	}
	if rest := s.Unseen(nil, branded(brands...)); len(s.Learned()[0].Values) < s.Categories()[0].OwnColumns &&
		rest != nil {
		t.Errorf("%v is new after it was learned", rest)
	}
	return s
}

// columns returns the nonzero columns of brands.
func columns(t testing.TB, s *feature.Schema, brands ...string) (at []int) {
	t.Helper()
	rows := make([]float64, len(brands)*s.Width())
	fatal.Or(s.Rows(rows, nil, branded(brands...)))(t)
	width := s.Width() - 8
	for i := range brands {
		row := rows[i*s.Width():][:width]
		k := slices.Index(row, 1)
		for j, v := range row {
			if (j == k) != (v == 1) || v != 0 && v != 1 {
				t.Fatalf("%q is %v", brands[i], row)
			}
		}
		at = append(at, k)
	}
	return at
}

// The first values of a category get columns of their own, in order; the others share the rest.
func TestFirstValuesHaveColumns(t *testing.T) {
	s := met(t, learning(t, ""), "a", "b", "a", "c", "d")
	s = met(t, s, "h", "b", "g", "f", "e")
	if have, want := columns(t, s, "a", "b", "c", "d", "h", "g", "f", "e"), []int{0, 1, 2, 3, 4, 5, 6,
		7}; !slices.Equal(have, want) {
		t.Errorf("8 brands are in the columns %v, want %v", have, want)
	}
	if c := s.Categories()[0]; c != (api.Category{Feature: "brand", Learned: 8, OwnColumns: 12, SharedColumns: 4}) {
		t.Errorf("%+v", c)
	}
	want := []feature.Seen{{Feature: "brand", Values: []string{"a", "b", "c", "d", "h", "g", "f", "e"}},
		{Feature: "place", Values: []string{"home"}}}
	expect.Equal(t, s.Learned(), want, "learned")
	s = met(t, s, "i", "j", "k", "l", "m", "n")
	for k, at := range columns(t, s, "a", "i", "l", "m", "n", "o", strings.Repeat("p", 201)) {
		expect.Equal(t, k < 3, at < 12, "value", k, "is in column", at)
	}
	if seen := s.Unseen(nil, branded("x")); seen != nil {
		t.Errorf("a full category has room for %v", seen)
	}
}

// Schemas are immutable; learning gives another schema with the same columns for known values.
func TestSchemasDoNotChange(t *testing.T) {
	s := learning(t, "")
	learned := met(t, s, "a")
	met(t, learned, "b", "c")
	again := met(t, learned, "d")
	expect.Equal(t, len(s.Learned())+len(learned.Learned()[0].Values), 1, s.Learned(), "and", learned.Learned())
	expect.List(t, columns(t, again, "a", "d"), []int{0, 1}, "columns")
}

// Values get their own columns only as long as some columns remain for the others.
func TestNamesAreFewerThanBuckets(t *testing.T) {
	eight := 8
	expect.Part(feature.New([]api.Feature{{Name: "brand", Kind: "category", From: "item", Columns: 8,
		OwnColumns: &eight}}))(t, "8: must be from 0 to 7, less than columns")
}

func TestLearnRefuses(t *testing.T) {
	s := learning(t, `,"columns":4,"own_columns":2`)
	for want, seen := range map[string]feature.Seen{
		`feature "colour" has values`:    {Feature: "colour", Values: []string{"a"}},
		`has the value "c", and has lea`: {Feature: "brand", Values: []string{"a", "b", "c"}},
		`has learned 0 of 2 values`:      {Feature: "brand", Values: []string{strings.Repeat("a", 201)}},
	} {
		expect.Part(s.Learn(seen))(t, want)
	}
	twice, err := s.Learn(feature.Seen{Feature: "brand", Values: []string{"a", "a", "b", "a"}})
	if err != nil || len(twice.Learned()[0].Values) != 2 {
		t.Errorf("learned twice: %v, %v", twice, err)
	}
	if fresh := twice.Fresh(feature.Seen{Feature: "brand", Values: []string{"c"}}); fresh.Values != nil {
		t.Errorf("a full category would learn %v", fresh)
	}
	if fresh := s.Fresh(feature.Seen{Feature: "colour", Values: []string{"c"}}); fresh.Values != nil {
		t.Errorf("no category would learn %v", fresh)
	}
}

// Collisions count values that share a column, but not values with their own column or repetitions of a value.
func TestCollisionsAreCounted(t *testing.T) {
	s := met(t, learning(t, `,"columns":3,"own_columns":2`), "a", "b")
	for range 3 {
		columns(t, s, "a", "b", "c")
	}
	expect.Equal(t, s.Categories()[0].Collisions, 0, "collisions of one value")
	columns(t, s, "d", "c", "d", "e")
	expect.Equal(t, s.Categories()[0].Collisions, 3, "collisions")
	if c := learning(t, `,"own_columns":0`).Categories()[0]; c.OwnColumns != 0 || c.SharedColumns != 16 {
		t.Errorf("without names: %+v", c)
	}
}

// Learned names survive a change of other features; a change of their own feature resets them.
func TestInherit(t *testing.T) {
	s := met(t, learning(t, ""), "a", "b")
	if same := learning(t, "").Inherit(s); len(same.Learned()) != 2 || !slices.Equal(columns(t, same, "b"), []int{1}) {
		t.Errorf("inherited %v", same.Learned())
	}
	for _, fields := range []string{`,"own_columns":3`, `,"columns":17`, `,"values":["x"]`} {
		if other := learning(t, fields).Inherit(s); len(other.Learned()) != 1 {
			t.Errorf("%s: inherited %v", fields, other.Learned())
		}
	}
}

// A row reveals its learned value.
func TestNamedOfLearnedValues(t *testing.T) {
	s := met(t, learning(t, `,"columns":4,"own_columns":2`), "a", `q"`)
	for brand, want := range map[string]string{"a": `"a"`, `q"`: `"q\""`, "z": "[0,0,"} {
		row := make([]float64, s.Width())
		fatal.Or(s.Rows(row, nil, branded(brand)))(t)
		s.Named(row, false, func(_ string, v jsontext.Value) {
			if !strings.HasPrefix(string(v), want) {
				t.Errorf("%q is %s, want %s", brand, v, want)
			}
		})
	}
}

// A text that is not UTF-8 gets no column of its own: its event in the log could not be sent as JSON.
func TestTextThatIsNotUTF8(t *testing.T) {
	s := met(t, learning(t, ""), "caf\xe9", "acme", "café")
	expect.Equal(t, fmt.Sprint(s.Learned()[0].Values), "[acme café]", "learned")
}
