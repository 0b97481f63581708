package offer

import (
	"vitrine/internal/fields"
	"vitrine/service/api"
)

// Closed is an offer with its outcome.
type Closed struct {
	*Offer
	Entry     uint64 // of the offer
	Time      int64  // of the offer
	Choice    int    // a position on the page, from 1 on, or 0
	Predicted bool   // whether the placement's learner made estimates for it
}

// Earned returns the revenue of the choice.
func (c *Closed) Earned() float64 {
	if c.Choice == 0 {
		return 0
	}
	return Revenue(c.Revenue, int(c.Shown[c.Choice-1]))
}

// Group returns the group of this one decision.
func (c *Closed) Group() *api.Totals {
	x := c.Earned()
	g := &api.Totals{Rounds: 1, Revenue: x, Squares: float64(x * x)}
	if c.Choice > 0 {
		g.Purchases = 1
	}
	return g
}

// Bound is the largest revenue on the page.
func (c *Closed) Bound() (bound float64) {
	for _, i := range c.Shown {
		bound = max(bound, Revenue(c.Revenue, int(i)))
	}
	return bound
}

// GroupFields passes over groups, in a number known to both sides.
func GroupFields(f *fields.Fields, list []api.Totals) {
	for i := range list {
		f.Uvarint(&list[i].Rounds, &list[i].Purchases)
		f.Float(&list[i].Revenue, &list[i].Squares)
	}
}
