package decision

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"vitrine"
	"vitrine/assortment"
	"vitrine/service/api"
)

// Slots. A request with slots fills all of them: the k-th item shown is in the k-th slot.
//
// Of the sets that fill them the policy chooses as ever, and a set drawn by
// chance is one of these. The first slot has the item of the largest choice
// probability with which the others can be filled, the next one that of the
// remaining ones, and so on.

const (
	maxSlotID = 1024    // bytes
	maxNote   = 1 << 14 // of the ids of all slots
)

// nameSlots notes the ids of the slots: all have one, or none has.
func (r *request) nameSlots() error {
	if len(r.Slots) == 0 {
		return nil
	}
	ids := make([]string, len(r.Slots))
	for k, s := range r.Slots {
		field := fmt.Sprintf("/slots/%d/id", k)
		switch {
		case (s.ID == "") != (r.Slots[0].ID == ""):
			return api.Fieldf(field, "all slots have an id, or none has")
		case len(s.ID) > maxSlotID || !utf8.ValidString(s.ID):
			return api.Fieldf(field, "must have at most %d bytes of UTF-8", maxSlotID)
		case s.ID != "" && slices.Contains(ids[:k], s.ID):
			return api.Fieldf(field, "%q is the id of an earlier slot too", s.ID)
		}
		ids[k] = s.ID
	}
	if ids[0] == "" {
		return nil
	}
	note, err := json.Marshal(ids)
	if len(note) > maxNote {
		return api.Fieldf("/slots", "the ids take more than %d bytes", maxNote)
	}
	r.note = string(note)
	return err
}

// slotIDs returns those of a note, nil where it has none.
func slotIDs(note string) (ids []string) {
	if note == "" || json.Unmarshal([]byte(note), &ids) != nil { // Go programs could note anything
		return nil
	}
	return ids
}

// transversal returns the sets that fill the slots.
func (r *request) transversal(c *Config, index map[string]int) (vitrine.Constraint, error) {
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
func (d *decider) certain(r *request, own vitrine.Offer, shown vitrine.Assortment, byChance bool) {
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
