package assortment

import (
	"fmt"

	"vitrine"
)

// Floor returns the family c without the items that earn less than minimum,
//
//	{S in c : r_i ≥ minimum for all i in S}
//
// Revenues belong to a request, so the family returned is for one request: set Feasible
// of its [vitrine.Context] to it. Making it costs O(N) more than making c; using it
// costs the same.
//
// It is exact for the families of this package and returns an error for others. It also
// returns an error if the floor leaves no set, because a demanded item is below it or
// too few items are above.
func Floor(c vitrine.Constraint, revenue []float64, minimum float64) (vitrine.Constraint, error) {
	if k, ok := c.(AtMost); ok {
		l, err := NewLaminar(Rules{Items: len(revenue), Max: max(int(k), 0)})
		if err != nil {
			return nil, err
		}
		c = l
	}
	family, ok := c.(narrower)
	if !ok {
		return nil, fmt.Errorf("a floor on the revenue needs a family of package assortment, not %T", c)
	}
	if n := family.Items(); n != len(revenue) {
		return nil, fmt.Errorf("%d revenues for a family of %d items", len(revenue), n)
	}
	var below []int
	for i, r := range revenue {
		if !(r >= minimum) {
			below = append(below, i)
		}
	}
	narrowed, err := family.without(below)
	if err != nil {
		return nil, fmt.Errorf("without the items of revenue below %v: %w", minimum, err)
	}
	return narrowed, nil
}

// narrower is a family from which items can be removed.
type narrower interface {
	vitrine.Constraint
	Items() int
	without(items []int) (vitrine.Constraint, error)
}
