package api_test

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"vitrine/service/api"
)

// The JSON of a request, and of an outcome in which nothing was taken.
func Example() {
	for _, v := range []any{
		&api.Request{User: api.Values{api.Text("city", "Bern")},
			Items: []api.Item{{ID: "tea", Features: api.Values{api.Number("price", 4.5)}}}},
		&api.Outcome{},
	} {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(text))
	}
	// Output:
	// {"items":[{"id":"tea","features":{"price":4.5}}],"shopper":{"city":"Bern"}}
	// {"choice":null}
}
