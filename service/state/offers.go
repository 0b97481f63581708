package state

import (
	"vitrine/service/learner"
	"vitrine/service/offer"
)

// recentOffers holds the last open decisions decoded from the log, so that an early outcome neither reads nor decodes
// its offer again. They are not part of the state. Callers must not change them.
type recentOffers struct {
	slots  []keptOffer // by the entry modulo their number; nil before the first
	Bytes  int
	oldest uint64 // no earlier entry is there
}

type keptOffer struct {
	entry uint64
	offer *offer.Offer // nil of a free slot
}

const (
	maxOffers     = 1 << 14 // entries between the oldest and the last one
	maxOfferBytes = 8 << 20
	maxKeptSlots  = 64 // candidates of an offer, which are not among its bytes
)

// add keeps the offer of an entry, which is later than all before. The oldest ones leave room for it.
func (s *recentOffers) add(entry uint64, o *offer.Offer) {
	if s.slots == nil {
		s.slots, s.oldest = make([]keptOffer, maxOffers), entry
	}
	size := learner.RoundBytes(o)
	for s.oldest < entry && (entry-s.oldest >= maxOffers || s.Bytes+size > maxOfferBytes) {
		s.drop(s.oldest)
		s.oldest++
	}
	s.slots[entry%maxOffers] = keptOffer{entry, o}
	s.Bytes += size
}

// of returns the offer of an entry, nil if it is not there.
func (s *recentOffers) of(entry uint64) *offer.Offer {
	if s.slots == nil {
		return nil
	}
	if at := s.slots[entry%maxOffers]; at.entry == entry {
		return at.offer
	}
	return nil
}

// drop frees the offer of an entry, if it is there.
func (s *recentOffers) drop(entry uint64) {
	if o := s.of(entry); o != nil {
		s.Bytes -= learner.RoundBytes(o)
		s.slots[entry%maxOffers] = keptOffer{}
	}
}
