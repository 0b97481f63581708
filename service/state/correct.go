package state

import (
	"fmt"
	"slices"

	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// maxCorrections is the max number of corrections of a decision.
const maxCorrections = 100

// Correct corrects a decision's earnings.
func (b *Batch) Correct(r *Record, o *offer.Offer, c *api.Correction, now int64) error {
	place := o.Place(c.Item)
	conflict := func(format string, args ...any) error {
		return fmt.Errorf("correction %q of decision %q: %w: %s", c.ID, r.id, ErrConflict, fmt.Sprintf(format, args...))
	}
	before := r.rare().corrections
	at := slices.IndexFunc(before, func(other correction) bool { return other.id == c.ID })
	was, others := r.took(int16(place))
	switch {
	case place == 0:
		return r.notShown(c.Item)
	case at >= 0 && int(before[at].place) == place && before[at].is(c):
		return nil
	case at >= 0:
		return conflict("another correction has this id")
	case r.Status.Waits() || r.Status != chosen && r.Status != late:
		return conflict("no outcome was reported: report it first")
	case !was && (c.Value == nil || *c.Value < 0):
		return conflict("item %q was not taken, so it cannot be returned or withdrawn", c.Item)
	case r.isWithdrawn(int16(place)):
		return conflict("correction %q has withdrawn the sale",
			before[slices.IndexFunc(before,
				func(b correction) bool { return b.withdraws && int(b.place) == place })].id)
	case len(before) == maxCorrections:
		return conflict("the decision has %d corrections, which is the limit", maxCorrections)
	}
	body := r.corrected(o, int32(place), r.earned(o))
	body.Adds = !was
	if r.Status == chosen {
		closed := &offer.Closed{Offer: o, Basket: r.rare().basket}
		body.InTime, body.Bound, body.Unit, body.Segment = true, closed.Bound(), o.Unit, r.placement.segment(closed)
	}
	switch body.Correction, body.Others, body.Withdraws = c.ID, others, c.Value == nil; {
	case !body.Withdraws:
		body.Value = *c.Value
	case others == 0:
		body.Value = -body.Before // so that it is taken back whole
	default:
		body.Value = 0 - r.earnedBy(o, place) // never -0
	}
	b.note(r, nil, now, body)
	return nil
}

// earnedBy sums what the item at a place has earned.
func (r *Record) earnedBy(o *offer.Offer, place int) (sum float64) {
	for _, t := range r.takes(o) {
		if int(t.Place) == place {
			sum = t.Value
		}
	}
	for _, b := range r.rare().corrections {
		if int(b.place) == place {
			sum += b.value
		}
	}
	return sum
}

// is reports whether the caller's correction of this id is this one.
func (c *correction) is(other *api.Correction) bool {
	return c.withdraws == (other.Value == nil) && (c.withdraws || c.value == *other.Value)
}

// correct applies a late outcome or a correction. Entries of the same commit may have made the placement forget the
// decision: then only the sums change.
func (s *State) correct(p *Placement, now int64, c *eventlog.Corrected) error {
	if c.Entry > s.Position.Sequence || c.Mode < offer.ByPolicy || c.Mode > offer.ByImport {
		return fmt.Errorf("a correction of decision %q, which entry %d has offered in mode %d", c.Decision, c.Entry,
			c.Mode)
	}
	r := s.decisions.find(p, c.Decision)
	if r != nil {
		if err := r.checkCorrected(c); err != nil {
			return err
		}
	}
	p.Earnings.Corrected(c, earnings.MaxItems(p.Config.MemoryBytes))
	for _, e := range p.comparisons() {
		if e != nil {
			e.Correct(c, p.Earnings.Guard.Watch.Cohort())
		}
	}
	if c.Viewed {
		p.memory.Note(c.Shopper, now, c.Shown, 1, 0)
	}
	p.noteTakes(c.Shopper, func() []string { return c.Shown }, c.Takes(), c.Taken(), now)
	if r == nil {
		return nil
	}
	p.closed.bytes -= r.Size()
	r.amend(c)
	p.closed.bytes += r.Size()
	s.forget(p)
	return nil
}

// amend notes a late outcome or a correction.
func (r *Record) amend(c *eventlog.Corrected) {
	if c.Correction == "" {
		r.Status, r.choice = late, int16(c.Choice)
		r.keep(c.Basket)
		return
	}
	more := []correction{{id: c.Correction, place: int16(c.Choice), value: c.Value, withdraws: c.Withdraws,
		adds: c.Adds}}
	r.extras = &recordExtras{basket: r.rare().basket, corrections: slices.Concat(r.rare().corrections, more)}
}

// checkCorrected reports a correction that is impossible in this state.
func (r *Record) checkCorrected(c *eventlog.Corrected) error {
	ended := r.Status == withdrawn || r.Status == evicted
	was, others := r.took(int16(c.Choice))
	switch isLate := c.Correction == ""; {
	case r.Entry != c.Entry || len(c.Shown) != int(r.shown):
		return fmt.Errorf("a correction of decision %q of entry %d, which entry %d has offered", c.Decision, c.Entry,
			r.Entry)
	case isLate && (r.Status != expired && !ended || ended != c.Counts):
		return fmt.Errorf("decision %q is %s, and its outcome comes late", r.id, r.Status)
	case !isLate && (r.Status != chosen && (r.Status != late || c.InTime) || was == c.Adds || others != c.Others ||
		r.isWithdrawn(int16(c.Choice)) || len(r.rare().corrections) >= maxCorrections):
		return fmt.Errorf("decision %q is %s with item %d, and item %d is corrected", r.id, r.Status, r.choice,
			c.Choice)
	}
	return nil
}
