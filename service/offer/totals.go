package offer

import (
	"vitrine/internal/fields"
	"vitrine/internal/precise"
	"vitrine/service/api"
)

// Totals sums closed decisions, as [api.Totals], and takes corrections.
type Totals struct {
	Rounds, Purchases uint64
	Revenue, Squares  precise.Sum
}

// Add adds the decisions of another group.
func (g *Totals) Add(o *Totals) {
	g.Rounds += o.Rounds
	g.Purchases += o.Purchases
	g.Revenue.Join(o.Revenue)
	g.Squares.Join(o.Squares)
}

// Count adds a decision.
func (g *Totals) Count(c *Closed) {
	x := c.Earned()
	g.Rounds++
	if c.Choice > 0 {
		g.Purchases++
	}
	g.Revenue.Add(x)
	g.Squares.Join(precise.Square(x))
}

// Less takes the decisions of a part out.
func (g *Totals) Less(part *Totals) {
	g.Rounds -= part.Rounds
	g.Purchases -= part.Purchases
	g.Revenue.Join(part.Revenue.Minus())
	g.Squares.Join(part.Squares.Minus())
}

// Resquare replaces the square of a decision's earnings.
func (g *Totals) Resquare(before, after float64) {
	g.Squares.Join(precise.Square(after))
	g.Squares.Join(precise.Square(before).Minus())
}

// Report returns the totals in the precision of the API.
func (g *Totals) Report() api.Totals {
	return api.Totals{Rounds: g.Rounds, Purchases: g.Purchases, Revenue: g.Revenue.Value(),
		Squares: max(0, g.Squares.Value())}
}

// GroupFields encodes or decodes groups, in a number known to both sides.
func GroupFields(f *fields.Fields, list []Totals) {
	for i := range list {
		list[i].Fields(f)
	}
}

// Fields passes over the totals.
func (g *Totals) Fields(f *fields.Fields) {
	f.Uvarint(&g.Rounds, &g.Purchases)
	f.Float(g.Revenue.Parts())
	f.Float(g.Squares.Parts())
}
