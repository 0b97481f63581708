package state

import (
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// Offers are the recent offers, of one size.
type Offers struct {
	recentOffers
	one *offer.Offer
}

const (
	MaxOffers     = maxOffers
	MaxOfferBytes = maxOfferBytes
)

func NewOffers(numbers int) *Offers {
	return &Offers{one: &offer.Offer{Offered: &eventlog.Offered{Features: make([]float64, numbers)}}}
}

func (s *Offers) Add(entry uint64)      { s.add(entry, s.one) }
func (s *Offers) Has(entry uint64) bool { return s.of(entry) != nil }
func (s *Offers) Drop(entry uint64)     { s.drop(entry) }
func (s *Offers) Size() int             { return s.Bytes }
