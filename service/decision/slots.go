package decision

import (
	"fmt"
	"slices"

	"vitrine"
	"vitrine/assortment"
	"vitrine/service/api"
)

// Slot is a place for an item. A request with slots fills all of them: the k-th
// item shown is in the k-th slot.
//
// Of the sets that fill them the policy chooses as ever, and a set drawn by
// chance is one of these. The first slot has the item of the largest choice
// probability with which the others can be filled, the next one that of the
// remaining ones, and so on.
type Slot struct {
	Exclude []string // ids of items that it does not take
}

const largestNote = 1 << 14 // bytes

// transversal returns the sets that fill the slots.
func (r *Request) transversal(c *Config, index map[string]int) (vitrine.Constraint, error) {
	for _, other := range []struct {
		field string
		has   bool
	}{{"/size", r.Size != 0}, {"/include", r.Include != nil}, {"/at_most", len(r.AtMost)+len(c.AtMost) > 0}} {
		if other.has {
			return nil, api.Fieldf(other.field, "does not go together with slots")
		}
	}
	if len(r.Slots) == 0 {
		return nil, api.Fieldf("/slots", "must have at least one slot")
	}
	if len(r.Slots) > c.MaxSize {
		return nil, api.Fieldf("/slots", "%d slots, the placement shows at most %d items", len(r.Slots), c.MaxSize)
	}
	everywhere, err := find("/exclude", r.Exclude, index)
	if err != nil {
		return nil, err
	}
	slots := make([]assortment.Slot, len(r.Slots))
	for k, s := range r.Slots {
		out, err := find(fmt.Sprintf("/slots/%d/exclude", k), s.Exclude, index)
		if err != nil {
			return nil, err
		}
		slots[k] = assortment.Slot{Name: fmt.Sprintf("slot %d", k+1), Exclude: append(out, everywhere...)}
	}
	family, err := assortment.NewTransversal(len(r.Items), slots, len(slots))
	if err != nil {
		return nil, api.Fieldf("/slots", "%v", err)
	}
	return family, nil
}

// certain notes what the policy itself would have shown, where it was without a draw.
func (d *decider) certain(r *Request, own vitrine.Offer, shown vitrine.Assortment, byChance bool) {
	e := &d.estimates
	if e.certain = own.Propensity == 1; !e.certain || !byChance || slices.Equal(shown, own.Assortment) {
		return
	}
	e.own = make([]string, len(own.Assortment))
	for k, i := range own.Assortment {
		e.own[k] = r.Items[i].ID
	}
}

// assign puts the items of an order into the slots.
func (d *decider) assign(family *assortment.Transversal, order []int32) {
	items := make([]int, len(order))
	p := map[int]float64{}
	for k, i := range order {
		items[k] = int(i)
		if d.estimates.probability != nil {
			p[int(i)] = d.estimates.probability[k]
		}
	}
	for k, i := range family.Assign(nil, items) {
		order[k] = int32(i)
		if d.estimates.probability != nil {
			d.estimates.probability[k] = p[i]
		}
	}
}
