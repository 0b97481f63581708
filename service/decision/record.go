package decision

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/service/eventlog"
)

// record is what is remembered of a decision. Once it has its outcome it loses
// rows, revenues, place and passed.
type record struct {
	placement *placement
	id        string
	request   [32]byte
	time      int64
	learner   uint64    // the placement's learner at that time
	shown     []string  // K
	n         int       // rows that were recorded
	rows      []float64 // n×d
	revenues  []float64 // n; nil means 1
	place     []int32   // K, the rows of what is shown
	mode      uint8
	version   uint64
	estimates
	propensity float64

	status     status
	choice     int32   // 0 or a position in shown, from 1 on
	passed     []bool  // which of shown were not taken, as far as was told; nil where nothing was; shownSize has room for it
	told       float64 // the sum of their rewards
	size       int     // bytes
	prev, next *record
	twin       *record // in the index
	at         int     // in due
}

type status uint8

const (
	open status = iota
	chosen
	expired
	deferred  // waits to be activated
	withdrawn // and was not in time: nothing is learned from it
	evicted   // there was no memory to wait: nothing is learned from it
)

// waits reports whether an outcome may come.
func (s status) waits() bool { return s == open || s == deferred }

// recordBytes is what a record takes beside its slices, with its place in the
// map of decisions.
const recordBytes = 648

// recordSize returns what a record without its rows counts for in a placement's
// memory: a number of the decision alone, and at least the bytes that it takes.
func recordSize(id string, shown []string) int {
	size := recordBytes + 2*len(id)
	for _, s := range shown {
		size += shownSize(len(s))
	}
	return size
}

// shownSize is the part of a shown item: its id, rounded up as an allocator may,
// and its probability.
func shownSize(id int) int { return 2*id + 24 + 16 + 8 }

// rowBytes is what an open record has more: so many numbers, and the places of what is shown.
// An allocator rounds up by a quarter at most.
func rowBytes(numbers, shown int) int { return 5 * (8*numbers + 4*shown) / 4 }

func (r *record) rowBytes() int { return rowBytes(len(r.rows)+len(r.revenues), len(r.place)) }

// offeredSize returns what the open record of an offer counts for, with what only
// some decisions have.
func offeredSize(o *eventlog.Offered, extra int) int {
	size := recordBytes + extra + 2*len(o.Decision) + rowBytes(len(o.Features)+len(o.Revenue), len(o.Shown))
	for _, i := range o.Shown {
		size += shownSize(len(o.ItemIDs[i]))
	}
	return size
}

// roundBytes is what its round takes, once it waits for the learner.
func (r *record) roundBytes() int { return 400 + r.rowBytes() + 8*len(r.place) }

// largestRecord bounds the size of an open record. What it keeps of rows has
// been through the log.
func (c *Config) largestRecord() int {
	rows := c.MaxSize
	if c.Record == "all" {
		rows = c.MaxItems
	}
	return recordBytes + 2*largestID + c.MaxSize*shownSize(largestID) + rowBytes(min(rows*(c.schema.Width()+1), largestBatch/8), c.MaxSize)
}

// newRecord keeps of an offer what its outcome will need. It shares no memory with it.
func newRecord(p *placement, time int64, o *eventlog.Offered) (*record, error) {
	e, err := decodeEstimates(o.Answer, len(o.Shown))
	if err != nil {
		return nil, err
	}
	k, d := len(o.Shown), o.Width
	if d != p.config.schema.Width() || k > p.config.MaxSize {
		return nil, fmt.Errorf("the offer is of %d items of %d features, the placement shows %d of %d", k, d, p.config.MaxSize, p.config.schema.Width())
	}
	if o.Mode < ByPolicy || o.Mode > ByBaseline {
		return nil, fmt.Errorf("the offer was found in way %d, which this program does not know", o.Mode)
	}
	for i, v := range o.Revenue {
		if v > vitrine.MaxRevenue {
			return nil, fmt.Errorf("item %d has the revenue %v, the largest is %v", i, v, vitrine.MaxRevenue)
		}
	}
	r := &record{
		placement: p, id: strings.Clone(o.Decision), request: o.Request, time: time, learner: p.learner,
		shown: make([]string, k), n: len(o.ItemIDs),
		rows: slices.Clone(o.Features), revenues: slices.Clone(o.Revenue), place: slices.Clone(o.Shown),
		mode: o.Mode, version: o.PolicyVersion, propensity: o.Propensity, estimates: e,
	}
	for j, i := range o.Shown {
		r.shown[j] = strings.Clone(o.ItemIDs[i])
	}
	if e.deferred {
		r.status = deferred
	}
	r.size = offeredSize(o, e.extraBytes())
	return r, nil
}

// earned returns the revenue of the record's choice.
func (r *record) earned() float64 {
	switch {
	case r.choice == 0:
		return 0
	case r.revenues == nil:
		return 1
	}
	return r.revenues[r.place[r.choice-1]]
}

// round returns what the learner observes: the rows that were recorded, in the
// order of the request. The record gives them away.
func (r *record) round() vitrine.Round {
	x := &vitrine.Context{Revenue: r.revenues}
	if r.n > 0 {
		x.Features = mat.NewDense(r.n, len(r.rows)/r.n, r.rows)
	}
	s := make(vitrine.Assortment, len(r.place))
	for k, i := range r.place {
		s[k] = int(i)
	}
	slices.Sort(s)
	choice := vitrine.Outside
	if r.choice > 0 {
		at, _ := slices.BinarySearch(s, int(r.place[r.choice-1]))
		choice = vitrine.Choice(at + 1)
	}
	return vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: s, Propensity: r.propensity}, Choice: choice}
}

// list is a queue of records, the oldest first, that any of them can leave.
type list struct {
	first, last *record
	len, bytes  int
}

func (l *list) push(r *record) {
	r.prev, r.next = l.last, nil
	if l.last == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
	l.len++
	l.bytes += r.size
}

func (l *list) remove(r *record) {
	if r.prev == nil {
		l.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		l.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
	l.len--
	l.bytes -= r.size
}
