package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"vitrine"
	"vitrine/assortment"
)

// crossing returns the family of the assortments that obey upper bounds on brands and on groups. It
// refuses rules that are not exact with two partitions that cross.
func (r *request) crossing(rules assortment.Rules, warn func(string)) (vitrine.Constraint, error) {
	switch {
	case rules.Min > 0:
		return nil, errors.New("brand_at_most cannot be combined with min_size")
	case len(rules.Include) > 0:
		return nil, errors.New("brand_at_most cannot be combined with include")
	case r.capacity != nil:
		return nil, errors.New("brand_at_most cannot be combined with capacity")
	}
	n := rules.Items
	// Partition 0 has the items without a bound, and the last one those that are never shown.
	category, categoryMax := make([]int, n), []int{n}
	for _, g := range rules.Groups {
		if g.Min > 0 {
			return nil, fmt.Errorf("brand_at_most cannot be combined with at_least, here of %s", g.Name)
		}
		if g.Max == assortment.NoLimit {
			continue
		}
		if g.Max < 0 {
			return nil, fmt.Errorf("%s shows at most %d items: must not be negative", g.Name, g.Max)
		}
		for _, i := range g.Items {
			if category[i] > 0 {
				return nil, fmt.Errorf("%s is in two groups with bounds, here %s: brand_at_most needs groups that are not within each other", r.itemName(i), g.Name)
			}
			category[i] = len(categoryMax)
		}
		categoryMax = append(categoryMax, min(g.Max, n))
	}
	for _, i := range rules.Exclude {
		category[i] = len(categoryMax)
	}
	if r.minRevenue != nil {
		if legal := legalFloor(*r.minRevenue); legal != "" {
			return nil, fmt.Errorf("min_revenue = %v: %s", *r.minRevenue, legal)
		}
		for i, v := range r.revenue {
			if v < *r.minRevenue {
				category[i] = len(categoryMax)
			}
		}
	}
	categoryMax = append(categoryMax, 0)

	number, brandMax := map[string]int{}, []int{n}
	for _, name := range slices.Sorted(maps.Keys(r.brandAtMost)) {
		bound := r.brandAtMost[name]
		if bound < 0 {
			return nil, fmt.Errorf("brand %q shows at most %d items: must not be negative", name, bound)
		}
		if !slices.Contains(r.brand, name) {
			warn(fmt.Sprintf("%s: brand_at_most: no item is of the brand %q%s", r.name, name, r.knownBrands()))
		}
		number[name] = len(brandMax)
		brandMax = append(brandMax, min(bound, n))
	}
	brand := make([]int, n)
	for i, name := range r.brand {
		brand[i] = number[name]
	}
	return assortment.NewCrossing(brand, category, brandMax, categoryMax, rules.Max)
}

func (r *request) knownBrands() string {
	brands := slices.Compact(slices.Sorted(slices.Values(r.brand)))
	if len(brands) > 0 && brands[0] == "" {
		brands = brands[1:]
	}
	if len(brands) == 0 {
		return ": items have no brands"
	}
	return ": there are " + strings.Join(brands[:min(10, len(brands))], ", ")
}
