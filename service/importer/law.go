package importer

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"

	"vitrine/service/offer"
)

// drawOf returns the way to draw a page of a name.
func drawOf(name string) (uint8, bool) {
	for kind, n := range offer.DrawNames {
		if n == name {
			return kind, true
		}
	}
	return 0, false
}

// of returns the law of a decision, given the policy's own page; nil if the law does not need it.
func (l *Law) of(page []string, items []foundItem) (*offer.Draw, error) {
	kind, _ := drawOf(l.Draw)
	own, err := places(page, items)
	slices.Sort(own)
	d := &offer.Draw{Kind: kind, Epsilon: l.Share, Size: min(l.Size, len(items)), Page: own}
	if kind == offer.DrawSlots {
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

// drawOfItems returns the law by which the item of each slot was drawn by itself, given the probability and the slot of each
// item. Slots are numbered in the order in which they come.
func drawOfItems(p []float64, slots []string) (*offer.Draw, error) {
	d := &offer.Draw{Kind: offer.DrawItems, Epsilon: 1, Probability: p}
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

// law says in an export how a page was drawn.
type law struct {
	Draw        string    `json:"draw"`
	Share       float64   `json:"share"`
	Size        int       `json:"size"`
	Page        []string  `json:"page"`
	Swaps       string    `json:"swaps"` // base64
	Probability []float64 `json:"probability"`
	Slot        []uint32  `json:"slot"`
}

// draw returns the law for a decision with the given items.
func (l *law) draw(items []foundItem) (*offer.Draw, error) {
	kind, ok := drawOf(l.Draw)
	if !ok {
		return nil, fmt.Errorf("draw is %q: want sets, slots, pages or items", l.Draw)
	}
	d := &offer.Draw{Kind: kind, Epsilon: l.Share, Size: l.Size, Probability: l.Probability, Slot: l.Slot}
	page, err := places(l.Page, items)
	if err != nil {
		return nil, err
	}
	if d.Page = page; l.Swaps != "" && !slices.IsSorted(d.Page) {
		return nil, errors.New("swaps belong to a page in the order of the items: list it so")
	}
	slices.Sort(d.Page)
	if l.Swaps != "" {
		if d.Swaps, err = base64.StdEncoding.DecodeString(l.Swaps); err != nil {
			return nil, fmt.Errorf("swaps: %w", err)
		}
	}
	return d, nil
}

// places returns where the items of a page are.
func places(page []string, items []foundItem) (list []uint32, err error) {
	for _, id := range page {
		i := slices.IndexFunc(items, func(o foundItem) bool { return o.id == id })
		if i < 0 {
			return nil, fmt.Errorf("page has %q, which is not among the items", id)
		}
		list = append(list, uint32(i))
	}
	return list, nil
}
