package page

import (
	"fmt"
	"slices"
	"sync"

	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/feature"
	"vitrine/service/offer"
)

// Decider makes decisions in memory that it uses again.
type Decider struct {
	Entry []byte      // for its caller
	Whole offer.Whole // the candidates of the last decision, if the log does not have them

	plan
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
	draws     stream.Stream
	coin      stream.Stream
	estimates offer.Estimates
}

var deciders = sync.Pool{New: func() any { return &Decider{index: map[string]int{}} }}

// NewDecider returns a decider for one goroutine, which calls Release at the end.
func NewDecider() *Decider { return deciders.Get().(*Decider) }

// Release gives the memory back. Call it only if nobody reads a decision of d any more.
func (d *Decider) Release() {
	if cap(d.rows) > maxScratch {
		return
	}
	clear(d.index)
	clear(d.items)
	d.placer.Clear()
	d.plan, d.estimates, d.short, d.overflow = plan{}, offer.Estimates{}, nil, false
	d.Whole.Placement = ""
	deciders.Put(d)
}

// Read returns a request with its values by slot, in d's memory.
func (d *Decider) Read(v *View, r *api.Request) (*Request, error) {
	s := v.Config.Schema()
	q := &Request{Request: r}
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

// maxScratch bounds the rows that a decider keeps.
const maxScratch = 1 << 19
