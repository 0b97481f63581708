package decision

import (
	"fmt"
	"slices"
	"sync"

	"vitrine"
	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/feature"
	"vitrine/service/offer"
)

// decider is the scratch of a decision.
type decider struct {
	index     map[string]int
	items     []api.Item
	values    api.Values // of items that have theirs in another order
	slots     []slotOf
	revenue   []float64
	rows      []float64 // N×d
	u         []float64
	part      []float64   // rows of some items
	recorded  []float64   // rows and revenues of the items in the log
	width     int         // d
	short     *candidates // whose rows are only computed if they are needed; nil if rows has all
	overflow  bool        // whether such a row has a column that is not finite or too large
	user      []float64   // the row of the user
	fromItem  []float64   // the map from the columns of an item to its row
	selected  []int32     // candidates from the catalogue
	answer    []byte
	entry     []byte
	draws     stream.Stream
	coin      stream.Stream
	estimates offer.Estimates
	abandoned bool

	considered considered
	whole      whole
}

// considered is what a decision was made of.
type considered struct {
	policy published
	worker *worker
	x      *vitrine.Context
}

var deciders = sync.Pool{New: func() any { return &decider{index: map[string]int{}} }}

func (d *decider) release() {
	if d.abandoned || cap(d.rows) > maxScratch {
		return
	}
	clear(d.index)
	clear(d.items)
	clear(d.values)
	clear(d.slots)
	d.estimates, d.short, d.overflow, d.considered = offer.Estimates{}, nil, false, considered{}
	d.whole.placement = ""
	deciders.Put(d)
}

// place returns a request with its values by slot, in d's memory.
func (d *decider) place(r *api.Request, s *feature.Schema) (*request, error) {
	q := &request{Request: r}
	n := len(r.Items)
	d.items = slices.Grow(d.items[:0], n)[:n]
	d.values, d.slots = d.values[:0], d.slots[:0]
	for i := range r.Items {
		values, err := d.bySlot(r.Items[i].Features, s.NumItem(), s.Item)
		if err != nil {
			return nil, err.at(fmt.Sprintf("/items/%d/features/", i), s.ItemNames)
		}
		d.items[i] = api.Item{ID: r.Items[i].ID, Features: values}
		if v := r.Items[i].Revenue; v != nil {
			if q.revenue == nil {
				d.revenue = resize(d.revenue, n)
				q.revenue = d.revenue
				for j := range q.revenue {
					q.revenue[j] = 1
				}
			}
			q.revenue[i] = *v
		}
	}
	q.items = d.items
	if r.User != nil {
		d.slots = d.slots[:0]
		user, err := d.bySlot(r.User, s.NumUser(), s.User)
		if err != nil {
			return nil, err.at("/user/", s.UserNames)
		}
		q.user = user
	}
	return q, q.nameSlots()
}

// slotOf is the slot that a schema gives to the values of a name.
type slotOf struct {
	name string
	slot int
}

// misplaced is a value without a slot, or a second one of the same slot.
type misplaced struct {
	name      string
	duplicate bool
}

func (m *misplaced) at(field string, names func() string) error {
	field += api.Pointer(m.name)
	if m.duplicate {
		return api.Fieldf(field, "duplicate key")
	}
	return api.Fieldf(field, "unknown key %q: must be one of %s", api.Abbreviate(m.name, 40), names())
}

// bySlot returns the values indexed by slot: themselves if they are, otherwise a copy in d.values. The
// slots of the previous item are tried first, since most items have the same names in the same order.
func (d *decider) bySlot(values api.Values, width int, find func(name string) (slot int, ok bool)) (api.Values, *misplaced) {
	ordered := len(values) == width
	for k := range values {
		name := values[k].Name
		if k == len(d.slots) || d.slots[k].name != name {
			slot, ok := find(name)
			if !ok {
				return nil, &misplaced{name: name}
			}
			d.slots = append(d.slots[:k], slotOf{name, slot})
		}
		ordered = ordered && d.slots[k].slot == k
	}
	if ordered {
		return values, nil
	}
	from := len(d.values)
	d.values = append(d.values, make(api.Values, width)...)
	placed := d.values[from:len(d.values):len(d.values)]
	for k := range values {
		to := &placed[d.slots[k].slot]
		if to.Kind != api.Missing {
			return nil, &misplaced{name: values[k].Name, duplicate: true}
		}
		*to = values[k]
	}
	return placed, nil
}

// maxScratch bounds the scratch of a decider that is reused.
const maxScratch = 1 << 19
