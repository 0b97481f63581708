package catalogue

import "slices"

// maxNamed limits the ids that a selection names.
const maxNamed = 100

// Selection are items that a request may be offered.
type Selection struct {
	Slots []int32 // in increasing order; meaningless if All
	All   bool    // every item of the catalogue

	Unknown, Unavailable []string // candidates that the request may not be offered, the first 100 of each
	Missing              int      // the number of both
}

// Select returns the items with the ids, or all items if ids is nil, that may be shown at a time and satisfy
// a filter; "" is satisfied by all. Errors are those of a filter, *[FilterError].
func (c *Catalogue) Select(dst []int32, ids []string, filter string, now int64) (s Selection, err error) {
	var satisfied *filtered
	if filter != "" {
		if satisfied, err = c.filter(filter); err != nil {
			return s, err
		}
		defer satisfied.mu.Unlock()
	}
	if ids == nil && satisfied == nil && c.limited == 0 {
		return Selection{All: true}, nil
	}
	s.Slots = dst[:0]
	if ids == nil {
		for slot := range int32(c.Len()) {
			if satisfied.has(slot) && c.isOpen(slot, now) {
				s.Slots = append(s.Slots, slot)
			}
		}
		return s, nil
	}
	for _, id := range ids {
		slot, ok := c.index.find(id)
		switch {
		case !ok:
			s.Unknown = s.miss(s.Unknown, id)
		case !c.isOpen(slot, now):
			s.Unavailable = s.miss(s.Unavailable, id)
		case satisfied.has(slot):
			s.Slots = append(s.Slots, slot)
		}
	}
	slices.Sort(s.Slots)
	s.Slots = slices.Compact(s.Slots)
	return s, nil
}

func (s *Selection) miss(list []string, id string) []string {
	s.Missing++
	if len(list) < maxNamed {
		list = append(list, id)
	}
	return list
}
