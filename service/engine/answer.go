package engine

import (
	"slices"

	"vitrine/service/api"
	"vitrine/service/offer"
)

// Answer is the answer to a request.
type Answer struct {
	Decision      string
	Placement     string
	Shown         []string  // ids in display order
	Probability   []float64 // p(i|S) of each, estimated; nil if the policy has no estimate
	Outside       float64   // p(0|S)
	Revenue       float64   // the expected revenue R(S)
	Propensity    float64   // of the set, in (0, 1]; 0 if it has no closed form
	PolicyVersion uint64    // the last entry of the log that the policy had learned from
	By            uint8     // offer.ByPolicy, offer.ByChance, offer.ByBaseline or offer.ByImport
	Repeated      bool      // the request was answered before, and this is that answer

	Deferred bool     // as the request asks: the outcome can come after [Engine.Activate]
	Certain  bool     // for a request with slots: whether the policy's set was not drawn
	Own      []string // the policy's set if it was not drawn, and chance showed another one
	Slots    []string // the ids of its slots, in the order of Shown; nil if they have none

	Variant string // of an experiment; "" without one

	CatalogueVersion     uint64   // the last entry that had changed the catalogue; 0 if no candidate may be from one
	Unknown, Unavailable []string // the first candidates that the catalogue does not have, and the first that may not be shown now
	Missing              int      // the number of both
	Payload              []string // the stored payloads of what is shown, "" where there is none; nil if the request does not ask for them
}

// answerOf returns the answer to a decision's caller, who may change it.
func answerOf(placement string, o *offer.Offer) *Answer {
	shown := o.IDs()
	a := &Answer{
		Decision: o.Decision, Placement: placement,
		Shown: shown, Probability: o.Probability, Outside: o.Outside, Revenue: o.Expected,
		Propensity: o.Propensity, PolicyVersion: o.PolicyVersion, By: o.Mode,
		Deferred: o.Deferred, Certain: o.Certain, Own: slices.Clone(o.Own), Slots: offer.SlotIDs(o.Note), Variant: o.Variant, Payload: slices.Clone(o.Payload),
	}
	if c := o.Catalogue; c != nil {
		a.CatalogueVersion, a.Unknown, a.Unavailable, a.Missing = c.Version, c.Unknown, c.Unavailable, c.Missing
	}
	return a
}

// Decision is the state of a decision.
type Decision struct {
	Answer *Answer
	Time   int64
	Status string // "open", "chosen", "expired", "deferred", "withdrawn", "evicted" or "late"
	Choice string // the item that was taken, "" for none

	Earned      float64 // by the choice, with its corrections
	Corrections []api.Correction
}
