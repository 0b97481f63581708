package page

import (
	"sync"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/feature"
	"vitrine/service/offer"
)

// Request is an [api.Request] with its values in the order of the placement's schema.
type Request struct {
	*api.Request
	Now    int64         // Unix nanoseconds
	Number func() uint64 // called once the request is known to be valid; returns the decision's number within the placement
	NewID  func() string // called if the request names no decision; a trial needs no id
	Holds  bool          // keep the catalogue locked until the decision is made

	items   []api.Item // N
	user    api.Values // nil if the request does not describe a user
	revenue []float64  // N, r_i ≥ 0; nil means 1 for every item
	note    string     // slot ids, as in the log; "" without ids
	stock   candidates
	isTrial bool                                    // the request is only tried
	said    *offer.FromCatalogue                    // of a trial, which owns its candidates
	groups  map[catalogue.GroupsBy]assortment.Limit // of a trial's candidates, by limited attribute or group
	spaced  bool                                    // from the log, with the spaces of the candidates
	work    *assortment.Work                        // search steps under limits; nil without limits, and before the first search
	unmet   []api.Unmet                             // lower bounds that no page meets, and excluded includes
	hidden  []string                                // candidates that the shopper has bought
}

// candidates are a request's candidates from the catalogue. They follow the items that the request brings.
type candidates struct {
	catalogue.Selection
	items  *catalogue.Catalogue // nil if the request does not use it
	groups map[catalogue.GroupsBy]*catalogue.Groups
	from   int // number of items that the request brings

	unlocks func() // releases the catalogue's read lock; nil if it is not held
	n       int    // number of items in the catalogue
	version uint64
	early   bool // the catalogue is unlocked before the rows are copied, so its lists must be copied too

	since, copied catalogue.Position // when the candidates were found, and when the last rows were copied
}

// Decision is the result of a request.
type Decision struct {
	offer.Offer      // shares memory with its decider
	Clipped     int  // number of feature values that were cut to their range
	Estimated   bool // whether the policy estimates utilities
	Usable      bool // whether the estimates are finite
}

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

// plan holds a decision in the making.
type plan struct {
	view     *View
	request  *Request
	to       route
	policy   Policy         // decides
	asked    vitrine.Policy // the same policy, for the rows at hand
	unseen   []feature.Seen
	x        *vitrine.Context
	baseline vitrine.Assortment // the caller's page, in display order
	slots    *assortment.Slots
	own      vitrine.Offer // the policy's offer
	shown    vitrine.Assortment
	order    []int32 // the set shown, in display order
	made     Decision
}

// route is the experiment variant for a request; the zero value without an experiment and a hold-out.
type route struct {
	show    string // api.ShowPolicy, …
	variant string // also api.Holdout
	unit    uint64
	policy  *Policy // the variant's own; nil for the placement's

	isOutside bool // whether the experiment has not started or has ended
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
