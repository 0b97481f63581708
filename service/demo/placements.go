package demo

import (
	"fmt"

	"vitrine/service/api"
)

// The placements of the demonstration, which the same shoppers visit.
const (
	auto   = "auto"   // learns utilities of any form
	linear = "linear" // the same learner, restricted to lines
	chance = "chance" // random sets, without learning
)

// names lists the placements in the order in which they are made: the first one owns the catalogue.
var names = []string{auto, linear, chance}

// size is the number of products in a window.
const size = 4

// Compare is the share of shoppers who see random windows. Only by comparison can the desk say how much the learners earn.
const Compare = 0.02

// Placements returns the configurations of the demonstration's placements, by name. A share of the shoppers, compare, sees random
// windows.
func Placements(seed uint64, compare float64) map[string]*api.Placement {
	line := map[string]any{"kind": "linear", "intercept": true}
	recent := map[string]any{"kind": "linear", "intercept": true, "memory_rounds": 200.0} // tastes that move
	all := map[string]*api.Placement{
		auto: {Policy: map[string]any{"name": "auto"}, LogItems: "all"},
		linear: {Policy: map[string]any{"name": "bma-mnl", "experts": []any{
			line, recent}}, CatalogueOf: auto, LogItems: "all"},
		chance: {Policy: map[string]any{"name": "uniform"}, CatalogueOf: auto},
	}
	for name, p := range all {
		if name != chance && compare > 0 {
			p.Mode, p.ExploreShare = api.Explore, &compare
		}
		p.MaxSize, p.Seed, p.Currency, p.AttributionWindow = size, seed, "EUR", "1m"
		p.Features = []api.Feature{
			{Name: "round", Kind: "number"}, {Name: "warm", Kind: "number"}, {Name: "busy", Kind: "number"},
			{Name: "price", Kind: "number", Center: priceCenter, Scale: new(float64(priceScale))},
			{Name: "kind", Kind: "category", From: "shopper", Values: kinds},
		}
	}
	return all
}

func items(products []product) []api.CatalogueItem {
	list := make([]api.CatalogueItem, len(products))
	for i, p := range products {
		list[i] = api.CatalogueItem{
			ID: p.ID, Revenue: &products[i].Price, Payload: fmt.Appendf(nil,
				`{"title":%q,"price":%v,"image":"demo/pictures/%s.svg"}`, p.Title, p.Price, p.ID),
			Features: api.Values{api.Number("round", p.Round), api.Number("warm", p.Warm), api.Number("busy", p.Busy),
				api.Number("price", p.Price)},
		}
	}
	return list
}
