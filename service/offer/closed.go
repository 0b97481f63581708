package offer

import "vitrine/service/eventlog"

// Closed is an offer with its outcome.
type Closed struct {
	*Offer
	Entry     uint64                 // of the offer
	Time      int64                  // of the offer
	Choice    int                    // a position on the page, from 1 on, or 0
	Basket    eventlog.Basket        // all items taken, from the choice on; nil for one unit of one item at its revenue, and for no item
	Measured  []eventlog.Measurement // for the metrics of an experiment
	Predicted bool                   // whether the placement's learner made estimates for it
}

// Takes returns the items taken, by increasing places.
func (c *Closed) Takes() eventlog.Basket {
	switch {
	case c.Basket != nil:
		return c.Basket
	case c.Choice == 0:
		return nil
	}
	return eventlog.Basket{{Place: int32(c.Choice), Quantity: 1, Value: c.Earned()}}
}

// Earned returns the page's earnings: the choice's revenue, or the basket's values.
func (c *Closed) Earned() float64 {
	switch {
	case c.Basket != nil:
		return c.Basket.Earned()
	case c.Choice == 0:
		return 0
	}
	return Revenue(c.Revenue, int(c.Shown[c.Choice-1]))
}

// PerUnit returns the earnings of an average unit. Compare predictions with PerUnit, because the policy predicts the revenue
// from a single shopper.
func (c *Closed) PerUnit() float64 {
	if c.Basket == nil {
		return c.Earned()
	}
	return c.Earned() / float64(c.Units())
}

// Units returns how many units were taken from the page.
func (c *Closed) Units() (n int) {
	if c.Basket == nil {
		return min(c.Choice, 1)
	}
	for _, t := range c.Basket {
		n += int(t.Quantity)
	}
	return n
}

// PageBound returns the largest revenue on the page, which is known before the outcome.
func (c *Closed) PageBound() (bound float64) {
	for _, i := range c.Shown {
		bound = max(bound, Revenue(c.Revenue, int(i)))
	}
	return bound
}

// Bound is the largest revenue on the page, or a basket's earnings if these are larger. A basket's bound is not known
// in advance: a confidence sequence's bound grows with the first baskets.
func (c *Closed) Bound() float64 {
	if c.Basket == nil {
		return c.PageBound()
	}
	return max(c.PageBound(), c.Earned())
}
