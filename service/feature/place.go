package feature

import (
	"vitrine/internal/hint"
	"vitrine/service/api"
)

// Placer puts values into the slots of a schema. It remembers the slots of the last names, because most items list the
// same names in the same order, and reuses its memory.
type Placer struct {
	slots  []slotOf
	values api.Values // reordered values
}

// slotOf is the schema's slot for a name.
type slotOf struct {
	name string
	slot int
}

// Reset switches to another schema and makes the memory available again.
func (p *Placer) Reset() { p.slots, p.values = p.slots[:0], p.values[:0] }

func (p *Placer) Clear() {
	clear(p.slots)
	clear(p.values)
}

// Item returns an item's values indexed by slot: the given slice if it is in order, otherwise a copy in p's memory.
// field returns the slice's place in the request.
func (p *Placer) Item(values api.Values, s *Schema, field func() string) (api.Values, error) {
	return p.place(values, s.NumItem(), s.Item, field, s.ItemNames, "items")
}

// User does the same for the user's values.
func (p *Placer) User(values api.Values, s *Schema) (api.Values, error) {
	p.slots = p.slots[:0]
	return p.place(values, s.NumUser(), s.User, func() string { return "/shopper/" }, s.UserNames, "shoppers")
}

func (p *Placer) place(values api.Values, width int, find func(name string) (slot int, ok bool),
	field func() string, names func() []string, whose string) (api.Values, error) {
	ordered := len(values) == width
	for k := range values {
		name := values[k].Name
		if k == len(p.slots) || p.slots[k].name != name {
			slot, ok := find(name)
			if !ok {
				advice := ": the placement has no features of " + whose
				if legal := names(); legal != nil {
					advice = hint.Legal(name, legal)
				}
				return nil, api.Fieldf(field()+api.Pointer(name), "unknown key %q%s", api.Abbreviate(name, 40), advice)
			}
			p.slots = append(p.slots[:k], slotOf{name, slot})
		}
		ordered = ordered && p.slots[k].slot == k
	}
	if ordered {
		return values, nil
	}
	from := len(p.values)
	p.values = append(p.values, make(api.Values, width)...)
	placed := p.values[from:len(p.values):len(p.values)]
	for k := range values {
		to := &placed[p.slots[k].slot]
		if to.Kind != api.Missing {
			return nil, api.Fieldf(field()+api.Pointer(values[k].Name), "duplicate key")
		}
		*to = values[k]
	}
	return placed, nil
}
