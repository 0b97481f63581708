package decision

import (
	"fmt"
	"slices"
	"sync"

	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/feature"
)

// decider is the scratch of a decision.
type decider struct {
	index     map[string]int
	items     []feature.Item
	values    []feature.Value // of all items
	names     []named
	revenue   []float64
	rows      []float64 // N×d
	u         []float64
	part      []float64 // rows of some items
	recorded  []float64 // rows and revenues of those in the log
	answer    []byte
	entry     []byte
	draws     stream.Stream
	coin      stream.Stream
	estimates estimates
	abandoned bool
}

var deciders = sync.Pool{New: func() any { return &decider{index: map[string]int{}} }}

func (d *decider) release() {
	if d.abandoned || cap(d.rows) > maxScratch {
		return
	}
	clear(d.index)
	clear(d.items)
	clear(d.values)
	clear(d.names)
	d.estimates = estimates{}
	deciders.Put(d)
}

// place returns a request with its values in their places, in d's memory.
func (d *decider) place(r *api.Request, s *feature.Schema) (*request, error) {
	q := &request{Request: r}
	n, width := len(r.Items), s.NumItem()
	d.items = slices.Grow(d.items[:0], n)[:n]
	d.values = slices.Grow(d.values[:0], n*width)[:n*width]
	clear(d.values)
	d.names = d.names[:0]
	for i := range r.Items {
		values := d.values[i*width : (i+1)*width : (i+1)*width]
		if err := d.put(values, r.Items[i].Features, s.Item); err != nil {
			return nil, err.at(fmt.Sprintf("/items/%d/features/", i), s.ItemNames)
		}
		d.items[i] = feature.Item{ID: r.Items[i].ID, Features: values}
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
		d.names = d.names[:0]
		q.user = make([]feature.Value, s.NumUser())
		if err := d.put(q.user, r.User, s.User); err != nil {
			return nil, err.at("/user/", s.UserNames)
		}
	}
	return q, q.nameSlots()
}

// named is where a schema has the values of a name.
type named struct {
	name string
	slot int
}

// misplaced is a value without a place, or whose place is taken.
type misplaced struct {
	name  string
	taken bool
}

func (m *misplaced) at(field string, names func() string) error {
	field += api.Pointer(m.name)
	if m.taken {
		return api.Fieldf(field, "duplicate key")
	}
	return api.Fieldf(field, "unknown key %q: must be one of %s", api.Abbreviate(m.name, 40), names())
}

// put stores values where find says. Most items have theirs in the same order.
func (d *decider) put(dst []feature.Value, values api.Values, find func(name string) (slot int, ok bool)) *misplaced {
	for k := range values {
		v := &values[k]
		if k == len(d.names) || d.names[k].name != v.Name {
			slot, ok := find(v.Name)
			if !ok {
				return &misplaced{name: v.Name}
			}
			d.names = append(d.names[:k], named{v.Name, slot})
		}
		to := &dst[d.names[k].slot]
		if to.Kind != feature.Missing {
			return &misplaced{name: v.Name, taken: true}
		}
		*to = feature.Value{Kind: v.Kind, Number: v.Number, Text: v.Text}
	}
	return nil
}

// maxScratch bounds the numbers of a decider that is kept for other requests.
const maxScratch = 1 << 19
