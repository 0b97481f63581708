package state

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

const (
	rareBytes       = 96
	correctionBytes = 32
	takeBytes       = 16
)

// Size returns the bytes that the record counts for in the placement's memory: at least its real size, and a
// function of the state only.
func (r *Record) Size() int {
	size := setup.RecordBytes + idBytes(r.id)
	if r.extras != nil {
		size += rareBytes + len(r.extras.passed) + takeBytes*len(r.extras.basket)
		for _, m := range r.extras.measured {
			size += correctionBytes + idBytes(m.Name)
		}
		for i := range r.extras.corrections {
			size += correctionBytes + idBytes(r.extras.corrections[i].id)
		}
	}
	return size
}

// isOf reports whether the decision was made with the learner that began at an entry.
func (r *Record) isOf(learner uint64) bool {
	return r.Entry > learner
}

// Began returns the time, entry and id by whose order decisions expire. It implements [expiry.Waiting].
func (r *Record) Began() (time int64, entry uint64, id string) { return r.time, r.Entry, r.id }

// Place implements [expiry.Waiting].
func (r *Record) Place() *int { return &r.at }

// since returns when the attribution window began: when the decision was made, moved with the clock.
func (r *Record) since() int64 { return r.placement.Open.Since(r) }

// isLate reports whether the attribution window is over.
func (r *Record) isLate(now int64) bool { return now-r.since() > int64(r.placement.Config.Window()) }

// hasPassed reports whether the item at a place, from 1 on, is reported as not taken.
func (r *Record) hasPassed(place int) bool {
	passed := r.rare().passed
	return passed != nil && passed[place-1]
}

func (r *Record) countPassed() (n int) {
	for _, p := range r.rare().passed {
		if p {
			n++
		}
	}
	return n
}

// rare returns the fields that few decisions need.
func (r *Record) rare() *recordExtras {
	if r.extras == nil {
		return &noExtras
	}
	return r.extras
}

var noExtras recordExtras

// become gives an open decision other rare fields.
func (r *Record) become(next recordExtras) {
	r.placement.Open.Bytes -= r.Size()
	r.extras = &next
	r.placement.Open.Bytes += r.Size()
}

// takes returns the items taken, given the offer.
func (r *Record) takes(o *offer.Offer) eventlog.Basket {
	return (&offer.Closed{Offer: o, Choice: int(r.choice), Basket: r.rare().basket}).Takes()
}

// earned sums the decision's earnings, in the order in which they came.
func (r *Record) earned(o *offer.Offer) (sum float64) {
	for _, t := range r.takes(o) {
		sum += t.Value
	}
	for _, c := range r.rare().corrections {
		sum += c.value
	}
	return sum
}

// isWithdrawn reports whether the sale of the item at a place was withdrawn.
func (r *Record) isWithdrawn(place int16) bool {
	return slices.ContainsFunc(r.rare().corrections, func(c correction) bool { return c.withdraws && c.place == place })
}

// took reports whether the item at a place was taken, by the outcome or later, and how many others still count as taken.
// An item is withdrawn at most once.
func (r *Record) took(place int16) (was bool, others int) {
	basket := r.rare().basket
	_, was = slices.BinarySearchFunc(basket, int32(place), func(t eventlog.Take, place int32) int {
		return cmp.Compare(t.Place, place)
	})
	if others = len(basket); basket == nil && r.choice > 0 {
		was, others = r.choice == place, 1
	}
	for _, c := range r.rare().corrections {
		switch {
		case c.adds:
			was, others = was || c.place == place, others+1
		case c.withdraws:
			others--
		}
	}
	if was && !r.isWithdrawn(place) {
		others--
	}
	return was, others
}

// measure notes measurements. Values of the same names are replaced.
func (r *Record) measure(list []eventlog.Measurement) {
	next := *r.rare()
	next.measured = slices.DeleteFunc(slices.Clone(next.measured), func(old eventlog.Measurement) bool {
		return slices.ContainsFunc(list, func(m eventlog.Measurement) bool { return m.Name == old.Name })
	})
	next.measured = append(next.measured, list...)
	slices.SortFunc(next.measured, func(a, b eventlog.Measurement) int { return strings.Compare(a.Name, b.Name) })
	r.become(next)
}

// pass notes items that were not taken. At least one item must remain.
func (r *Record) pass(p *eventlog.ItemsDeclined) error {
	reported := r.rare().reported + p.Reward
	if reported > 1 || r.countPassed()+len(p.Items) >= int(r.shown) {
		return fmt.Errorf("of the %d items of decision %q %v are passed with a reward of %v, after %d with %v", r.shown,
			r.id, p.Items, p.Reward, r.countPassed(), r.rare().reported)
	}
	for _, place := range p.Items {
		if int(place) > int(r.shown) || r.hasPassed(int(place)) {
			return fmt.Errorf("item %d of the %d of decision %q is not there to be passed", place, r.shown, r.id)
		}
	}
	next := *r.rare()
	next.reported = reported
	if next.passed = slices.Clone(next.passed); next.passed == nil {
		next.passed = make([]bool, r.shown)
	}
	for _, place := range p.Items {
		next.passed[place-1] = true
	}
	r.Status = open
	r.become(next)
	return nil
}

// read reads a decision's offer from the log. The error wraps eventlog.ErrRemoved if the entry was removed; otherwise
// it is ctx's or ErrUnread.
func (r *Record) read(ctx context.Context, log eventlog.Reader) (*offer.Offer, error) {
	o, err := offer.Read(ctx, log, r.Entry, r.placement.Name, r.id)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("decision %q: %w: %w", r.id, ErrUnread, err)
	}
	return o, nil
}

func (s *closedRecords) push(r *Record) {
	s.records = append(s.records, r)
	s.bytes += r.Size()
}

func (s *closedRecords) pop() *Record {
	r := s.records[0]
	s.records[0] = nil
	s.records = s.records[1:]
	s.bytes -= r.Size()
	return r
}

func (s *closedRecords) remove(r *Record) {
	s.records = slices.DeleteFunc(s.records, func(o *Record) bool { return o == r })
	s.bytes -= r.Size()
}

func (r *Record) key() decisionKey { return decisionKey{r.placement, r.id} }

// find returns the decision that a placement calls id, or nil.
func (x index) find(p *Placement, id string) *Record {
	r := x[id]
	for r != nil && r.placement != p {
		r = r.twin
	}
	return r
}

func (x index) add(r *Record) {
	r.twin = x[r.id]
	x[r.id] = r
}

func (x index) remove(r *Record) {
	first := x[r.id]
	switch {
	case first != r:
		for first.twin != r {
			first = first.twin
		}
		first.twin = r.twin
	case r.twin == nil:
		delete(x, r.id)
	default:
		x[r.id] = r.twin
	}
	r.twin = nil
}

// idBytes returns the bytes of an id, rounded up as by an allocator.
func idBytes(id string) int { return len(id) + 16 }

// Waits reports whether an outcome can come.
func (s status) Waits() bool { return s == open || s == Deferred }

func (s status) String() string {
	return [...]string{"open", "chosen", "expired", "deferred", "withdrawn", "evicted", "late"}[s]
}

// corrected returns a correction by 0 of a decision with the given earnings.
func (r *Record) corrected(o *offer.Offer, choice int32, earned float64) *eventlog.Corrected {
	return &eventlog.Corrected{
		Decision: r.id, Entry: r.Entry, Made: r.time, Mode: o.Mode, Variant: o.Variant, Shopper: o.Shopper,
		Shown: o.IDs(), Choice: choice, Before: earned,
	}
}
