package feature

import "vitrine/service/api"

// Past says how often a shopper has seen and bought an item.
type Past struct {
	ID           string
	Seen, Bought uint32
}

// Values of [api.Feature.History], which filters also know as names.
const (
	PastSeen   = "seen"
	PastBought = "bought"
)

// Count returns the number of times the item was seen or bought.
func (p *Past) Count(what string) float64 {
	if what == PastBought {
		return float64(p.Bought)
	}
	return float64(p.Seen)
}

// counts checks a feature that counts a shopper's past. Its default is 0.
func (c *column) counts(field string, f *api.Feature) error {
	switch {
	case f.History == "":
		return nil
	case f.From != "item":
		return api.Fieldf(field+"/history", "counts items: the feature must be from the item")
	case f.Default != nil && f.Default != 0.:
		return api.Fieldf(field+"/default", "%v: is 0 for items that the shopper does not know", f.Default)
	}
	f.Default = 0.
	return api.OneOf(field+"/history", f.History, PastSeen, PastBought)
}

// HasHistory reports whether rows count views or purchases.
func (s *Schema) HasHistory() bool {
	for i := range s.columns {
		if s.columns[i].History != "" {
			return true
		}
	}
	return false
}

// History returns [PastSeen] or [PastBought] for a feature that counts views or purchases, and otherwise "".
func (s *Schema) History(name string) string {
	if i := s.find(name); i >= 0 {
		return s.columns[i].History
	}
	return ""
}

// Remember stores an item's counts in its row. An item that was neither seen nor bought keeps the values that it has.
func (s *Schema) Remember(row []float64, p *Past) {
	for i := range s.columns {
		c := &s.columns[i]
		if n := p.Count(c.History); c.History != "" && n > 0 {
			row[c.from] = min(max((c.clipped(n)-c.Center)/c.scale, -c.most), c.most)
		}
	}
}
