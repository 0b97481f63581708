// Package fitted fits models to simulated logs, for measuring the value of such models.
package fitted

import (
	"context"
	"fmt"

	"vitrine"
	"vitrine/choice"
)

// Linear fits a linear utility with an intercept to a log, as vitrine fit does. All requests must contain the same
// number of items.
func Linear(log []vitrine.Round) (*choice.Result, error) {
	items, width := log[0].Context.Features.Dims()
	names, variables := make([]string, items), make([]string, width)
	for i := range names {
		names[i] = fmt.Sprint("item", i)
	}
	for j := range variables {
		variables[j] = fmt.Sprint("x", j)
	}
	b := choice.NewBuilder(names, variables, true)
	for _, r := range log {
		c := choice.Case{Alternatives: r.Offer.Assortment, Chosen: int(r.Choice) - 1}
		for _, i := range r.Offer.Assortment {
			c.X = append(c.X, r.Context.Features.RawRowView(i)...)
		}
		if err := b.Add(c); err != nil {
			return nil, err
		}
	}
	data, err := b.Data()
	if err != nil {
		return nil, err
	}
	spec := &choice.Spec{Utility: choice.Utility{Generic: variables,
		Terms: []choice.Term{{Name: "intercept", Variable: "1"}}}}
	return choice.Fit(context.Background(), spec, data, choice.Options{Workers: 1})
}
