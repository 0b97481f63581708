package importer

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"vitrine/service/offer"
)

// of returns the law of a decision, given the policy's own page; nil if the law does not need it.
func (l *Law) of(page, ids []string) (*offer.SamplingLaw, error) {
	kind, _ := offer.DrawKind(l.Draw)
	own, err := offer.Places(page, ids)
	slices.Sort(own)
	d := &offer.SamplingLaw{Kind: kind, Epsilon: l.Share, Size: min(l.Size, len(ids)), Page: own}
	if kind == offer.DrawSwaps {
		d.Size = len(own)
	}
	return d, err
}

// itemPropensity names the column of item probabilities, "" if the law needs no such column.
func (l *Law) itemPropensity() string {
	if l.Draw != "items" {
		return ""
	}
	return cmp.Or(l.Propensity, "item_propensity")
}

// drawOfItems returns the law by which the item of each slot was drawn by itself, given the probability and the slot of
// each item. Slots are numbered in the order in which they come.
func drawOfItems(p []float64, slots []string) (*offer.SamplingLaw, error) {
	d := &offer.SamplingLaw{Kind: offer.DrawItems, Epsilon: 1, Probability: p}
	numbers := map[string]uint32{}
	sum := map[string]float64{}
	for i, slot := range slots {
		if _, ok := numbers[slot]; !ok {
			numbers[slot] = uint32(len(numbers))
		}
		d.Slot = append(d.Slot, numbers[slot])
		sum[slot] += p[i]
	}
	for slot, v := range sum {
		if math.Abs(v-1) > offer.Tolerance {
			return nil, fmt.Errorf("the probabilities of the items of slot %q have the sum %v: must be 1", slot, v)
		}
	}
	d.Size = len(numbers)
	return d, nil
}
