package page

import (
	"sync"

	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/feature"
	"vitrine/service/offer"
)

// Decider makes decisions in memory that it reuses.
type Decider struct {
	Entry []byte           // scratch for the caller
	Whole offer.Candidates // candidates of the last decision, if the log does not keep them

	plan
	index     map[string]int
	items     []api.Item
	placer    feature.Placer
	revenue   []float64
	rows      []float64 // N×d
	u         []float64
	part      []float64   // rows of some items
	recorded  []float64   // rows and revenues that the log keeps
	width     int         // d
	short     *candidates // computes rows on demand; nil if rows holds all of them
	overflow  bool        // whether such a row has an infinite or too large column
	user      []float64   // the user's row
	fromItem  []float64   // map from an item's columns to its row
	selected  []int32     // slots of the catalogue's candidates
	answer    []byte
	draws     stream.Stream
	coin      stream.Stream
	estimates offer.Estimates
}

var deciders = sync.Pool{New: func() any { return &Decider{index: map[string]int{}} }}

// NewDecider returns a decider for one goroutine. Call Release at the end.
func NewDecider() *Decider { return deciders.Get().(*Decider) }

// Release returns the memory to a pool. Do not call it while anyone still reads a decision of d.
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

// maxScratch bounds the rows that a decider keeps.
const maxScratch = 1 << 19
