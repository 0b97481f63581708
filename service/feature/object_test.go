package feature_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/expect"
	"vitrine/service/api"
)

// summed is the scaled z of the tokens of a feature "o"; TestRows defines h. It splits names from values according to
// the definition.
func summed(buckets int, tokens map[string]float64) []float64 {
	z := make([]float64, buckets)
	for v, x := range tokens {
		h := uint64(14695981039346656037)
		for _, b := range []byte("o\x00" + v) {
			h = (h ^ uint64(b)) * 1099511628211
		}
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
		if h>>63 == 1 {
			x = -x
		}
		z[h%uint64(buckets)] += x
	}
	for b := range z {
		z[b] /= math.Sqrt(max(1, float64(len(tokens))))
	}
	return z
}

// An object's columns equal the definition.
func TestObject(t *testing.T) {
	s := schema(t, `[{"name":"o","kind":"object","columns":13}]`)
	for _, c := range []struct {
		text   string
		tokens map[string]float64
	}{
		{`{}`, nil},
		{`[]`, nil},
		{`[{},{"a":null}]`, nil},
		{`{"brand":"acme"}`, map[string]float64{"brand=acme": 1}},
		{`{"price":2.5}`, map[string]float64{"price": math.Asinh(2.5) / 2}},
		{`{"price":1000}`, map[string]float64{"price": math.Asinh(1000) / 2}},
		{`{"price":1000,"brand":"acme","size":null}`,
			map[string]float64{"price": math.Asinh(1000) / 2, "brand=acme": 1}},
		{`{"price":-0.01}`, map[string]float64{"price": math.Asinh(-0.01) / 2}},
		{`{"price":1e308}`, map[string]float64{"price": 8}},
		{`{"sale":true,"new":false}`, map[string]float64{"sale=true": 1, "new=false": 1}},
		{`[{"a":"x"},{"b":{"c":"y","d":{"e":3}}}]`, map[string]float64{"a=x": 1, "b.c=y": 1, "b.d.e": math.Asinh(3) / 2}},
		{`{"tags":["x","y"],"size":[1,2]}`, map[string]float64{"tags=x": 1, "tags=y": 1, "size.0": math.Asinh(1) / 2,
			"size.1": math.Asinh(2) / 2}},
		{`{"l":[{"a":"x"},["y",{"b":"z"}],4]}`,
			map[string]float64{"l.a=x": 1, "l=y": 1, "l.b=z": 1, "l.2": math.Asinh(4) / 2}},
		{`{"n\u0061me":"caf\u00e9"}`, map[string]float64{"name=café": 1}},
	} {
		got := row(t, s, nil, []api.Value{api.Object("", c.text)})
		expect.Equal(t, got, summed(13, c.tokens), c.text, cmpopts.EquateApprox(0, 1e-15))
	}
	expect.Equal(t, row(t, s, nil, []api.Value{{}}), make([]float64, 13), "missing")
}

func TestObjectsThatAreRefused(t *testing.T) {
	s := schema(t, `[{"name":"o","kind":"object"},{"name":"x","kind":"text","default":""}]`)
	many := `{"a":[` + strings.Repeat("1,", 1000) + `1]}`
	for text, want := range map[string]string{
		`"a"`:                           "want an object or a list of objects",
		`3`:                             "want an object or a list of objects",
		`["a"]`:                         "want an object or a list of objects",
		`[[{}]]`:                        "want an object or a list of objects",
		``:                              "want an object or a list of objects",
		`{"a":1,"a":2}`:                 "duplicate key",
		`{"a":1e999}`:                   "1e999: out of range",
		`{"a":`:                         "ends early",
		`{"a":x}`:                       "not JSON",
		`{} {}`:                         "more than one value",
		many:                            "more than 1000 values",
		strings.Repeat(`{"a":`, 17):     "nested more than 16 deep",
		strings.Repeat(`[{"a":`, 10000): "nested more than 16 deep",
	} {
		_, err := s.Rows(make([]float64, s.Width()), nil,
			[]api.Item{{ID: "i", Features: []api.Value{api.Object("", text), {}}}})
		if err == nil || !strings.HasPrefix(err.Error(), "/items/0/features/o: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text[:min(len(text), 40)], err, want)
		}
	}
	deep := strings.Repeat(`{"a":`, 16) + `1` + strings.Repeat(`}`, 16)
	for text, values := range map[string][]api.Value{
		"":                      {api.Object("", deep), {}},
		"want an object":        {api.Text("", "{}"), {}},
		"want a number or a st": {{}, api.Object("", "{}")},
	} {
		_, err := s.Rows(make([]float64, s.Width()), nil, []api.Item{{ID: "i", Features: values}})
		if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	for _, features := range []string{
		`[{"name":"o","kind":"object","default":"x"}]`, `[{"name":"o","kind":"object","scale":2}]`,
		`[{"name":"o","kind":"object","buckets":` + strconv.Itoa(1<<20) + `}]`,
	} {
		expect.Refused(read(features))(t, features, "is taken")
	}
}

// For any object, the columns are finite, bounded and reproducible.
func FuzzObject(f *testing.F) {
	for _, text := range []string{`{}`, `[{"a":[1,"x",{"b":true}]}]`, `{"a":1e308,"b":-1e308}`, `[`,
		`{"a":{"a":{"a":null}}}`} {
		f.Add(text)
	}
	s := schema(f, `[{"name":"o","kind":"object","columns":7}]`)
	f.Fuzz(func(t *testing.T, text string) {
		x := make([]float64, 7)
		items := []api.Item{{ID: "i", Features: []api.Value{api.Object("", text)}}}
		if _, err := s.Rows(x, nil, items); err != nil {
			return
		}
		most := 0.0
		for _, v := range x {
			most = max(most, math.Abs(v))
		}
		again := make([]float64, 7)
		if _, err := s.Rows(again, nil, items); err != nil || !cmp.Equal(x, again) || !(most <= 8*math.Sqrt(1000)) {
			t.Fatalf("%s: %v, again %v, %v", text, x, again, err)
		}
	})
}
