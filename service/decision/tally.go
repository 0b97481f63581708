package decision

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"vitrine/internal/state"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// tally counts what the closed decisions of a placement have shown and sold: by item, by place and in the last decisions. It
// is part of the state, and bounded: of too many items those that were shown least are summed up.
type tally struct {
	late    bool // whether it began with a snapshot of before format 13
	items   map[string]*sold
	others  sold   // of the items that were dropped
	dropped uint64 // their number; an item that is dropped twice counts twice
	places  []sold // from the first place on

	all    span
	recent []span // of recentLength decisions each, but the last
}

// sold counts how often something was shown and taken.
type sold struct {
	shown, taken uint64
	revenue      float64
	last         uint64 // the entry of the last offer
}

func (s *sold) add(o sold) {
	s.shown, s.taken, s.last = s.shown+o.shown, s.taken+o.taken, max(s.last, o.last)
	s.revenue += o.revenue
}

// span sums up decisions that closed one after the other.
type span struct {
	decisions, estimated uint64 // those with a prediction
	earned, predicted    float64
	arms                 [3]api.Group // offer.ByPolicy, offer.ByChance, offer.ByBaseline
}

func (s *span) add(o *span) {
	s.decisions, s.estimated = s.decisions+o.decisions, s.estimated+o.estimated
	s.earned += o.earned
	s.predicted += o.predicted
	for i := range s.arms {
		s.arms[i].Add(&o.arms[i])
	}
}

const (
	soldBytes    = 700  // for two items: that many may wait to be dropped
	maxSold      = 1000 // items
	minSold      = 16
	soldShare    = 64 // of the placement's memory
	maxPlaces    = 50
	recentLength = 100
	maxRecent    = 10
)

// maxSoldItems returns how many items have a count of their own.
func (c *Config) maxSoldItems() int { return max(minSold, min(maxSold, c.Memory/soldShare/soldBytes)) }

// closed counts a decision.
func (t *tally) closed(o *offer.Closed, maxItems int) {
	if t.items == nil {
		t.items = map[string]*sold{}
	}
	for k, i := range o.Shown {
		one := sold{shown: 1, last: o.Entry}
		if o.Choice == k+1 {
			one.taken, one.revenue = 1, o.Earned()
		}
		if k < maxPlaces {
			if k == len(t.places) {
				t.places = append(t.places, sold{})
			}
			t.places[k].add(one)
		}
		item := t.items[o.ItemIDs[i]]
		if item == nil {
			item = new(sold)
			t.items[strings.Clone(o.ItemIDs[i])] = item
		}
		item.add(one)
	}
	if len(t.items) > 2*maxItems {
		t.drop(maxItems)
	}
	s := spanOf(o)
	t.all.add(s)
	if n := len(t.recent); n == 0 || t.recent[n-1].decisions == recentLength {
		if n == maxRecent {
			t.recent = slices.Delete(t.recent, 0, 1)
		}
		t.recent = append(t.recent, span{})
	}
	t.recent[len(t.recent)-1].add(s)
}

// spanOf returns the span of one decision.
func spanOf(o *offer.Closed) *span {
	s := &span{decisions: 1}
	if o.Predicted {
		s.estimated, s.earned, s.predicted = 1, o.Earned(), o.Expected
	}
	if o.Mode != offer.ByImport {
		s.arms[o.Mode-offer.ByPolicy] = *o.Group()
	}
	return s
}

// drop keeps the items that were shown most, and of those shown as often the last ones.
func (t *tally) drop(keep int) {
	for _, id := range t.byShown()[keep:] {
		t.others.add(*t.items[id])
		t.dropped++
		delete(t.items, id)
	}
}

// byShown returns the items, those that were shown most first.
func (t *tally) byShown() []string {
	return slices.SortedFunc(maps.Keys(t.items), func(a, b string) int {
		x, y := t.items[a], t.items[b]
		return cmp.Or(cmp.Compare(y.shown, x.shown), cmp.Compare(y.last, x.last), strings.Compare(a, b))
	})
}

// copy returns the tally of a snapshot, which the writer does not change.
func (t *tally) copy() tally {
	c := *t
	c.items = make(map[string]*sold, len(t.items))
	for id, s := range t.items {
		c.items[id] = new(*s)
	}
	c.places, c.recent = slices.Clone(t.places), slices.Clone(t.recent)
	return c
}

func (s *sold) encode(e *state.Encoder) {
	e.Uint64(s.shown)
	e.Uint64(s.taken)
	e.Float(s.revenue)
	e.Uint64(s.last)
}

func (s *sold) decode(d decoder) {
	s.shown, s.taken, s.revenue, s.last = d.Uint64(), d.Uint64(), d.Float(), d.Uint64()
}

func (s *span) numbers() (n state.Numbers) {
	n.Integers(&s.decisions, &s.estimated)
	n.Floats(&s.earned, &s.predicted)
	groups(&n, s.arms[:])
	return n
}

func (t *tally) encode(e *state.Encoder) {
	e.Flag(t.late)
	e.Count(len(t.items))
	for _, id := range slices.Sorted(maps.Keys(t.items)) {
		e.String(id)
		t.items[id].encode(e)
	}
	t.others.encode(e)
	e.Uint64(t.dropped)
	e.Count(len(t.places))
	for i := range t.places {
		t.places[i].encode(e)
	}
	t.all.numbers().Encode(e)
	e.Count(len(t.recent))
	for i := range t.recent {
		t.recent[i].numbers().Encode(e)
	}
}

var errTally = errors.New("the counts of items are not in order")

// decode reads the tally of a snapshot. In earlier formats it begins after the snapshot's last entry.
func (t *tally) decode(d decoder) {
	if d.format < 13 {
		t.late = true
		return
	}
	t.late = d.Flag()
	t.items = map[string]*sold{}
	before := ""
	for n := range d.Count() {
		id, s := d.String(), new(sold)
		s.decode(d)
		if d.Err() != nil {
			return
		}
		if n > 0 && id <= before || n > 2*maxSold {
			d.Fail(fmt.Errorf("%w: %q after %q", errTally, id, before))
			return
		}
		t.items[id], before = s, id
	}
	t.others.decode(d)
	t.dropped = d.Uint64()
	for range d.Count() {
		var s sold
		s.decode(d)
		if d.Err() != nil {
			return
		}
		t.places = append(t.places, s)
	}
	t.all.numbers().Decode(d.Decoder)
	for range d.Count() {
		var s span
		s.numbers().Decode(d.Decoder)
		if d.Err() != nil {
			return
		}
		t.recent = append(t.recent, s)
	}
	if len(t.places) > maxPlaces || len(t.recent) > maxRecent {
		d.Fail(errTally)
	}
}
