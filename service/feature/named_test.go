package feature_test

import (
	"math"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	_ "vitrine/internal/rapidseed"
	"vitrine/service/api"
)

const exported = `[
	{"name":"plain","kind":"number"},
	{"name":"scaled","kind":"number","center":3,"scale":7},
	{"name":"brand","kind":"category","values":["a\"b","é"],"allow_other":true},
	{"name":"colour","kind":"category","columns":2},
	{"name":"age","kind":"number","from":"shopper"},
	{"name":"plain by age","kind":"cross","of":["plain","age"]}]`

// Named returns the values that the row was made from, as far as the row preserves them.
func TestNamedIsTheRequest(t *testing.T) {
	s := schema(t, exported)
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Float64Range(-90, 90)
		// within 10 scales
		plain, scaled, age := number.Draw(t, "plain"), rapid.Float64Range(-67, 73).Draw(t, "scaled"), number.Draw(t,
			"age")
		brand := rapid.SampledFrom([]string{`a"b`, "é", "other"}).Draw(t, "brand")
		colour := rapid.SampledFrom([]string{"red", "blue"}).Draw(t, "colour")
		row := make([]float64, s.Width())
		fatal.Or(s.Rows(row, []api.Value{api.Number("", age)}, []api.Item{{ID: "i", Features: []api.Value{
			api.Number("", plain), api.Number("", scaled), api.Text("", brand), api.Text("", colour),
		}}}))(t)
		have := map[string]any{}
		for _, user := range []bool{false, true} {
			s.Named(row, user, func(name string, v jsontext.Value) {
				var value any
				fatal.If(t, json.Unmarshal(v, &value), name, v)
				expect.Equal(t, user, name == "age", name, "of the user")
				have[name] = value
			})
		}
		if len(have) != 5 || have["plain"] != plain || have["age"] != age {
			t.Errorf("%v of plain %v, age %v", have, plain, age)
		}
		if v := have["scaled"].(float64); math.Abs(v-scaled) > 1e-13 {
			t.Errorf("scaled %v of %v", v, scaled)
		}
		if v := have["brand"]; v != brand && !(v == nil && brand == "other") {
			t.Errorf("brand %v of %s", v, brand)
		}
		if v := have["colour"].([]any); len(v) != 2 || v[0].(float64)+v[1].(float64) != 1 {
			t.Errorf("colour %v", v)
		}
	})
	defer func() {
		if recover() == nil {
			t.Error("a row of another width is named")
		}
	}()
	s.Named(nil, false, nil)
}

// JSON cannot express infinities.
func TestNamedIsFinite(t *testing.T) {
	s := schema(t, `[{"name":"x","kind":"number","center":1.7e308,"scale":1e304}]`)
	s.Named([]float64{1e4}, false, func(_ string, v jsontext.Value) {
		if !v.IsValid() || string(v) != "1.7976931348623157e+308" && string(v) != "1.7976931348623157e308" {
			t.Errorf("%s", v)
		}
	})
}
