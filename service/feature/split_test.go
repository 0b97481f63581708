package feature_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
)

// The items' columns, completed for a user, equal the rows bit for bit in any order of features. The user's linear map
// gives the same rows up to rounding.
func TestSplitGivesTheRows(t *testing.T) {
	for _, text := range []string{
		`[{"name":"price","kind":"number","center":2,"scale":3},{"name":"brand","kind":"category","values":["a","b"],"allow_other":true}]`,
		`[{"name":"age","kind":"number","from":"shopper","scale":10},{"name":"price","kind":"number"},{"name":"both","kind":"cross","of":["price","age"]}]`,
		`[{"name":"price","kind":"number"},{"name":"where","kind":"category","from":"shopper","columns":3},{"name":"brand","kind":"category","columns":4},
		  {"name":"item","kind":"cross","of":["price","brand"]},{"name":"left","kind":"cross","of":["where","brand"]},{"name":"right","kind":"cross","of":["brand","where"]},
		  {"name":"age","kind":"number","from":"shopper"},{"name":"user","kind":"cross","of":["where","age"]},{"name":"words","kind":"text","columns":5}]`,
	} {
		s := schema(t, text)
		p, d := s.Split(), s.Width()
		rng := rand.New(rand.NewPCG(3, 4))
		value := func(name string) api.Value {
			switch name {
			case "price", "age":
				return api.Number(name, 40*rng.NormFloat64())
			}
			return api.Text(name, []string{"a", "b", "c d", "e"}[rng.IntN(4)])
		}
		var items []api.Item
		for range 20 {
			var values api.Values
			for k := range s.NumItem() {
				values = append(values, value(s.ItemName(k)))
			}
			items = append(items, api.Item{ID: "i", Features: values})
		}
		var user api.Values
		for _, name := range []string{"where", "age"} {
			if slot, ok := s.User(name); ok {
				for len(user) <= slot {
					user = append(user, api.Value{})
				}
				user[slot] = value(name)
			}
		}
		want := make([]float64, len(items)*d)
		clipped := fatal.Or(s.Rows(want, user, items))(t)
		columns, ofUser, row := make([]float64, len(items)*p.Width()), make([]float64, d), make([]float64, d)
		mine := fatal.Or(p.Items(columns, items))(t)
		its, err := p.User(ofUser, user)
		if err != nil || mine+its != clipped {
			t.Fatalf("%d and %d values are clipped (%v), want %d", mine, its, err, clipped)
		}
		m := p.Map(nil, ofUser)
		for i := range items {
			item := columns[i*p.Width() : (i+1)*p.Width()]
			if !p.Complete(row, ofUser, item) {
				t.Fatalf("row %d is not finite", i)
			}
			for j, v := range row {
				if math.Float64bits(v) != math.Float64bits(want[i*d+j]) {
					t.Fatalf("%s: column %d of item %d is %v, want %v", text, j, i, v, want[i*d+j])
				}
				sum := ofUser[j]
				for k, a := range item {
					sum += m[j*p.Width()+k] * a
				}
				if math.Abs(sum-v) > 1e-12*max(1, math.Abs(v)) {
					t.Fatalf("%s: the map gives %v for column %d, want %v", text, sum, j, v)
				}
			}
		}
	}
}

// Errors name misfit values just as errors in a request do.
func TestSplitNamesWhatDoesNotFit(t *testing.T) {
	p := schema(t, `[{"name":"price","kind":"number"},{"name":"age","kind":"number","from":"shopper"},{"name":"both","kind":"cross","of":["price","age"]}]`).Split()
	for _, c := range []struct {
		item api.Value
		want string
	}{
		{api.Text("price", "x"), `/items/0/features/price: "x": want a number`},
		{api.Value{}, "/items/0/features/price: is missing, and the feature has no default"},
	} {
		expect.Message(p.Items(make([]float64, 1), []api.Item{{Features: api.Values{c.item}}}))(t, c.want)
	}
	square := schema(t, `[{"name":"price","kind":"number"},{"name":"square","kind":"cross","of":["price","price"]}]`).Split()
	_, err := square.Items(make([]float64, 2), []api.Item{{Features: api.Values{api.Number("price", 9e12)}}})
	expect.Message(err)(t,
		`/items/0: feature "square" has the column 8.1e+25: it must be finite and at most 1e+15 in size: scale it`, "the square of 9e12")
	row := make([]float64, 3)
	expect.Message(p.User(row, nil))(t, "/shopper/age: is missing, and the feature has no default",
		"a missing feature of the user")
	if _, err := p.User(row, api.Values{api.Number("age", 9e12)}); err != nil {
		t.Error(err)
	}
	if p.Complete(make([]float64, 3), row, []float64{9e12}) {
		t.Error("a cross of 8.1e25 passes")
	}
}
