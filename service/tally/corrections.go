package tally

import (
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// Corrected changes the sums for a late outcome or a correction, where the decision has been counted: in its era, and at its
// time. The calibration and the last decisions stay: they compare what was predicted and earned within the attribution window.
func (t *Tally) Corrected(c *eventlog.Corrected, lead Lead, maxItems int) {
	if c.Correction == "" {
		t.Counts.Late++
	} else {
		t.Counts.Corrected++
	}
	t.Items.corrected(c, maxItems)
	t.Series.corrected(c, lead)
	if c.Mode == offer.ByImport {
		return
	}
	correct(&t.Counts.Arms[c.Mode-offer.ByPolicy], c)
	if era := t.Eras.of(c.Entry); era != nil {
		correct(&era.groups[c.Mode-offer.ByPolicy], c)
	}
}

// correct changes the group of a corrected decision.
func correct(g *api.Totals, c *eventlog.Corrected) {
	if c.Counts {
		g.Rounds++
	}
	g.Purchases = count(g.Purchases, c.Taken())
	g.Revenue += c.Value
	after := c.Before + c.Value
	g.Squares = max(0, g.Squares+float64(after*after)-float64(c.Before*c.Before))
}

// count adds 1, 0 or -1 to a number, which does not fall below 0.
func count(n uint64, by int) uint64 { return uint64(max(0, int64(n)+int64(by))) }

// corrected changes the counts of the item and its place. A decision that counts from now on has shown its items.
func (t *Items) corrected(c *eventlog.Corrected, maxItems int) {
	if c.Counts {
		t.show(c.Shown, c.Entry, int(c.Choice), c.Value, maxItems)
		return
	}
	if c.Choice == 0 {
		return
	}
	item := t.sold[c.Shown[c.Choice-1]]
	if item == nil { // it was dropped
		item = &t.Others
	}
	of := []*Sold{item}
	if k := int(c.Choice) - 1; k < len(t.Places) {
		of = append(of, &t.Places[k])
	}
	for _, s := range of {
		s.Taken = count(s.Taken, c.Taken())
		s.Revenue += c.Value
	}
}

// corrected changes the sums at the time of the decision. Its lead is that of what it has earned now, around the present centre.
func (s *Series) corrected(c *eventlog.Corrected, lead Lead) {
	b := s.at(c.Made)
	if b == nil || c.Mode == offer.ByImport {
		return
	}
	if c.Counts {
		b.abandoned = count(b.abandoned, -1)
	}
	correct(&b.arms[c.Mode-offer.ByPolicy], c)
	centre := s.centre()
	after, ok := lead(closedAt(c, c.Before+c.Value), centre)
	switch before, _ := lead(closedAt(c, c.Before), centre); {
	case !ok:
	case c.Counts:
		b.leads++
		b.lead += after
		b.squares += float64(after * after)
	default:
		b.lead += after - before
		b.squares = max(0, b.squares+float64(after*after)-float64(before*before))
	}
	if c.Mode == offer.ByPolicy {
		if c.Counts {
			s.policy.rounds++
		}
		s.policy.revenue += c.Value
	}
}

// closedAt returns the corrected decision as one that has earned x.
func closedAt(c *eventlog.Corrected, x float64) *offer.Closed {
	o := &eventlog.Offered{Decision: c.Decision, Mode: c.Mode, Shown: []int32{0}, Revenue: []float64{x}}
	return &offer.Closed{Offer: &offer.Offer{Offered: o}, Entry: c.Entry, Time: c.Made, Choice: 1}
}
