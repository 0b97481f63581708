package engine

import (
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// Offers are [offers] of one size.
type Offers struct {
	offers
	one *offer.Offer
}

const (
	MaxOffers     = maxOffers
	MaxOfferBytes = maxOfferBytes
)

func NewOffers(numbers int) *Offers {
	return &Offers{one: &offer.Offer{Offered: &eventlog.Offered{Features: make([]float64, numbers)}}}
}

// OfferBytes returns the bytes of the offers that an engine keeps.
func (e *Engine) OfferBytes() int {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.offers.bytes
}

func (s *Offers) Add(entry uint64)      { s.add(entry, s.one) }
func (s *Offers) Has(entry uint64) bool { return s.of(entry) != nil }
func (s *Offers) Drop(entry uint64)     { s.drop(entry) }
func (s *Offers) Bytes() int            { return s.bytes }
