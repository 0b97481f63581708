package feature_test

import (
	"fmt"

	"vitrine/service/api"
	"vitrine/service/feature"
)

// A price in units of 10 around 20, and a colour with a column for each value.
func Example() {
	schema, err := feature.New([]api.Feature{
		{Name: "price", Kind: "number", Center: 20, Scale: new(10.0)},
		{Name: "colour", Kind: "category", Values: []string{"red", "blue"}},
	})
	if err != nil {
		panic(err)
	}
	values := make(api.Values, schema.NumItem())
	for _, v := range []api.Value{api.Number("price", 35), api.Text("colour", "blue")} {
		slot, _ := schema.Item(v.Name)
		values[slot] = v
	}
	row := make([]float64, schema.Width())
	if _, err := schema.Rows(row, nil, []api.Item{{ID: "scarf", Features: values}}); err != nil {
		panic(err)
	}
	fmt.Println(row)
	// Output: [1.5 0 1]
}
