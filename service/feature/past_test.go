package feature_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/feature"
)

// Counts filled into a row equal the values of an item with these counts, scaled and within their bounds. An item
// without a past keeps its values.
func TestRemember(t *testing.T) {
	s := fatal.Or(feature.New([]api.Feature{
		{Name: "x", Kind: "number"}, {Name: "seen", Kind: "number", History: "seen", Center: 2, Scale: new(4.0),
			Max: new(10.0)}, {Name: "owned", Kind: "number", History: "bought"},
	}))(t)
	row := func(seen, owned api.Value) []float64 {
		t.Helper()
		row := make([]float64, s.Width())
		fatal.Or(s.Rows(row, nil, []api.Item{{ID: "a", Features: api.Values{api.Number("", 0.5), seen, owned}}}))(t)
		return row
	}
	if !s.HasHistory() || s.History("owned") != "bought" || s.History("x") != "" || s.History("none") != "" {
		t.Error("the schema does not know its counts")
	}
	for _, p := range []feature.Past{{}, {Seen: 1}, {Seen: 3, Bought: 2}, {Seen: 1000, Bought: 1}, {Bought: 1}} {
		have := row(api.Value{}, api.Value{})
		if s.Remember(have, &p); !cmp.Equal(have, row(api.Number("", float64(p.Seen)),
			api.Number("", float64(p.Bought)))) {
			t.Errorf("%+v: %v", p, have)
		}
	}
	given := row(api.Number("", 3), api.Number("", 5))
	want := row(api.Number("", 7), api.Number("", 5))
	if s.Remember(given, &feature.Past{Seen: 7}); !cmp.Equal(given, want) {
		t.Errorf("%v, want %v", given, want)
	}
}

func TestBadCounts(t *testing.T) {
	for want, f := range map[string]api.Feature{
		`/features/1/history: "sold": unknown: must be one of`: {
			Name: "b", Kind: "number", History: "sold"},
		"/features/1/history: counts items": {
			Name: "b", Kind: "number", History: "seen", From: "shopper"},
		`/features/1/history: is not a field of kind "text"`: {
			Name: "b", Kind: "text", History: "seen"},
		"/features/1/default: 1: is 0 for items that the shopper does not know": {
			Name: "b", Kind: "number", History: "seen", Default: 1.},
		`/features/1/of/1: "a" counts what each shopper has seen`: {
			Name: "b", Kind: "cross", Of: []string{"x", "a"}},
	} {
		features := []api.Feature{{Name: "a", Kind: "number", History: "seen"}, f}
		if f.Kind == "cross" {
			features = []api.Feature{{Name: "x", Kind: "number"}, {Name: "a", Kind: "number", History: "seen"}, f}
			want = strings.Replace(want, "/1/", "/2/", 1)
		}
		expect.Part(feature.New(features))(t, want)
	}
}
