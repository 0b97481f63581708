package decision

import (
	"fmt"
	"slices"
	"sync"

	"vitrine"
	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/feature"
	"vitrine/service/learner"
	"vitrine/service/offer"
)

// decider is the scratch of a decision.
type decider struct {
	index     map[string]int
	items     []api.Item
	placer    feature.Placer
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
	whole      offer.Whole
}

// considered is what a decision was made of.
type considered struct {
	policy learner.Published
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
	d.placer.Clear()
	d.estimates, d.short, d.overflow, d.considered = offer.Estimates{}, nil, false, considered{}
	d.whole.Placement = ""
	deciders.Put(d)
}

// place returns a request with its values by slot, in d's memory.
func (d *decider) place(r *api.Request, s *feature.Schema) (*request, error) {
	q := &request{Request: r}
	n := len(r.Items)
	d.items = slices.Grow(d.items[:0], n)[:n]
	d.placer.Reset()
	for i := range r.Items {
		values, err := d.placer.Item(r.Items[i].Features, s, func() string { return fmt.Sprintf("/items/%d/features/", i) })
		if err != nil {
			return nil, err
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
		user, err := d.placer.User(r.User, s)
		if err != nil {
			return nil, err
		}
		q.user = user
	}
	return q, q.nameSlots()
}

// maxScratch bounds the scratch of a decider that is reused.
const maxScratch = 1 << 19
