package offer

import (
	"errors"
	"fmt"
	"slices"
)

// NamedLaw is a [SamplingLaw] in the JSON of exports, which list the policy's own page by its ids.
type NamedLaw struct {
	Draw        string    `json:"draw"` // one of DrawNames
	Share       float64   `json:"share"`
	Size        int       `json:"size"`
	Page        []string  `json:"page"`
	Swaps       []byte    `json:"swaps,omitempty"`
	Probability []float64 `json:"probability,omitzero"`
	Slot        []uint32  `json:"slot,omitzero"`
}

// Named returns the draw for exports, given the ids of the decision's items.
func (l *SamplingLaw) Named(ids []string) *NamedLaw {
	n := &NamedLaw{Draw: DrawNames[l.Kind], Share: l.Epsilon, Size: l.Size, Swaps: l.Swaps, Probability: l.Probability,
		Slot: l.Slot}
	for _, i := range l.Page {
		n.Page = append(n.Page, ids[i])
	}
	return n
}

// Of returns the draw that n names for a decision with these items. [SamplingLaw.Check] validates it for the decision.
func (n *NamedLaw) Of(ids []string) (*SamplingLaw, error) {
	kind, ok := DrawKind(n.Draw)
	if !ok {
		return nil, fmt.Errorf("draw is %q: want sets, swaps, pages or items", n.Draw)
	}
	page, err := Places(n.Page, ids)
	if err != nil {
		return nil, err
	}
	if len(n.Swaps) > 0 && !slices.IsSorted(page) {
		return nil, errors.New("swaps belong to a page in the order of the items: list it so")
	}
	slices.Sort(page)
	d := &SamplingLaw{Kind: kind, Epsilon: n.Share, Size: n.Size, Page: page, Probability: n.Probability, Slot: n.Slot}
	if len(n.Swaps) > 0 {
		d.Swaps = n.Swaps
	}
	return d, nil
}

// DrawKind returns the kind of a name in [DrawNames].
func DrawKind(name string) (uint8, bool) {
	for kind, n := range DrawNames {
		if n == name {
			return kind, true
		}
	}
	return 0, false
}

// Places returns where the items of a page are among ids.
func Places(page, ids []string) (list []uint32, err error) {
	for _, id := range page {
		i := slices.Index(ids, id)
		if i < 0 {
			return nil, fmt.Errorf("page has %q, which is not among the items", id)
		}
		list = append(list, uint32(i))
	}
	return list, nil
}
