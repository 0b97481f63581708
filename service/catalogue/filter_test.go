package catalogue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	_ "vitrine/internal/rapidseed"
	"vitrine/service/api"
)

// isOpen implements the availability rule independently.
func isOpen(item *api.CatalogueItem, now time.Time) bool {
	return (item.Available == nil || *item.Available) && (item.ValidFrom == nil || !now.Before(*item.ValidFrom)) &&
		(item.ValidUntil == nil || now.Before(*item.ValidUntil))
}

// conditions maps each filter to its meaning.
var conditions = map[string]func(*api.CatalogueItem) bool{
	`season == "summer"`: func(i *api.CatalogueItem) bool { return i.Attributes["season"] == "summer" },
	`season != "summer"`: func(i *api.CatalogueItem) bool { return i.Attributes["season"] != "summer" },
	`price <= 4 and 2 < price`: func(i *api.CatalogueItem) bool {
		p := i.Features[0].Number
		return p <= 4 && p > 2
	},
	`rating >= 3 || "sale" in groups`: func(i *api.CatalogueItem) bool {
		r, ok := i.Attributes["rating"].(float64)
		return ok && r >= 3 || slices.Contains(i.Groups, "sale")
	},
	`not (rating in [1, 2.0, -3])`: func(i *api.CatalogueItem) bool {
		return i.Attributes["rating"] != 1.0 && i.Attributes["rating"] != 2.0
	},
	`fragile`:              func(i *api.CatalogueItem) bool { return i.Attributes["fragile"] == true },
	`fragile == false`:     func(i *api.CatalogueItem) bool { return i.Attributes["fragile"] == false },
	`season > "summer"`:    func(i *api.CatalogueItem) bool { return i.Attributes["season"] == "winter" },
	`id in ["sku1","x"]`:   func(i *api.CatalogueItem) bool { return i.ID == "sku1" },
	`revenue < 1 and true`: func(i *api.CatalogueItem) bool { return i.Revenue != nil && *i.Revenue < 1 },
	`brand == "none"`:      func(i *api.CatalogueItem) bool { return valueOf(i, "brand") == "none" }, // the default
	`space > 0.5`:          func(i *api.CatalogueItem) bool { return i.Space == nil || *i.Space > 0.5 },
	`rating > 2`: func(i *api.CatalogueItem) bool {
		r, ok := i.Attributes["rating"].(float64)
		return ok && r > 2
	},
}

// An error about missing candidates names the first ones and counts them all.
func TestManyUnknown(t *testing.T) {
	ids := make([]string, 100_000)
	for i := range ids {
		ids[i] = fmt.Sprint("sku", i)
	}
	got, err := selected(New(schemaOf(t, shop)), ids, "", 0)
	if err != nil || got.Missing != len(ids) || len(got.Unknown) != maxNamed || got.Unknown[99] != "sku99" ||
		len(got.Slots) > 0 {
		t.Errorf("%d unknown, %d named: %v", got.Missing, len(got.Unknown), err)
	}
}

func TestBadFilters(t *testing.T) {
	c := New(schemaOf(t, shop))
	apply(t, c, 1, []string{record(t, &api.CatalogueItem{ID: "a", Features: api.Values{api.Number("price", 1)},
		Attributes: map[string]any{"season": "summer"}}, c.Split().Schema())}, nil)
	for text, want := range map[string]string{
		`colour == "red"`:                    `no item has the attribute "colour": there are season, price, brand, id, revenue, space, groups`,
		`age > 3`:                            `no item has the attribute "age"`,
		`price <`:                            `unexpected token EOF (1:7): want a condition such as`,
		`price + 1 > 2`:                      `price + 1: want the name of an attribute or a feature`,
		`not season == "x"`:                  `not season compares the result of not: write not (season == "x")`,
		`price == season`:                    `price == season: one side of == must be a number, a string, true or false`,
		`season < true`:                      `season <: only numbers and strings have an order`,
		`season in groups`:                   `season in groups: want the name of a group in quotes`,
		`groups == "sale"`:                   `groups: want "name" in groups`,
		`season in price`:                    `season in price: want a list such as [1, 2], or groups, after in`,
		`season in [price]`:                  `price: must be a number`,
		`3`:                                  `3: is not a comparison, in, and, or, or not`,
		`len(season) > 2`:                    `len(season): want the name`,
		strings.Repeat("a", 5000):            `has 5000 bytes, at most 4000`,
		`map(groups, #) == 3`:                `want the name`,
		`season matches "s.*"`:               `is not a comparison`,
		`price > 1 ? true : false`:           `is not a comparison`,
		strings.Repeat("(", 1500):            `want a condition`,
		strings.Repeat("not ", 900) + "true": "",
	} {
		_, err := selected(c, nil, text, 0)
		if want == "" {
			expect.Error(t, err, nil, text)
			continue
		}
		expect.Part(err)(t, want, text)
	}
}

func FuzzFilter(f *testing.F) {
	c := New(schemaOf(f, shop))
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 100 {
		apply(f, c, uint64(i+1), []string{record(f, draw(rng, fmt.Sprint("sku", i)), c.Split().Schema())}, nil)
	}
	for text := range conditions {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { _, _ = selected(c, nil, text, 0) })
}
