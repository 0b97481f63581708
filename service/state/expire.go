package state

import (
	"maps"
	"slices"
	"time"

	"vitrine/service/eventlog"
	"vitrine/service/expiry"
)

// EvictBefore evicts open decisions from before an entry with attribution windows that began before the time since. It
// returns their number, at most MaxExpiry.
func (b *Batch) EvictBefore(entry uint64, since, now int64) (n int) {
	for _, name := range slices.Sorted(maps.Keys(b.State.Placements)) {
		for r := range b.State.Placements[name].Open.All() {
			if n == MaxExpiry {
				return n
			}
			if r.Entry < entry && r.since() < since && !b.touched[r.key()] {
				b.close(r, nil, now, &eventlog.Evicted{Decision: r.id})
				n++
			}
		}
	}
	return n
}

// MaxExpiry is the maximal number of decisions that expire in one proposal.
const MaxExpiry = 1000

// Late returns the first of a placement's overdue decisions, in order, and whether its memory lacks room for the bytes.
func (s *State) Late(name string, now int64, most, bytes int) (late []*Lookup, over bool) {
	p := s.Placements[name]
	if p == nil {
		return nil, false
	}
	for r := range p.Open.All() {
		if !r.isLate(now) || len(late) == most {
			break
		}
		late = append(late, &Lookup{Record: r, Was: *r, Offer: s.Offers.Of(r.Entry)})
	}
	return late, p.Open.Bytes+bytes > p.Config.MemoryBytes
}

// ExpireDue expires late decisions, and evicts those beyond the placement's memory, in the order of their expiry.
func (b *Batch) ExpireDue(name string, late []*Lookup, now int64, urgent bool) int {
	p := b.State.Placements[name]
	if p == nil {
		return 0
	}
	n := 0
	for _, f := range late {
		r := f.Record
		switch {
		case b.touched[r.key()] || b.State.decisions.find(p, r.id) != r || !r.Status.Waits() || !r.isLate(now):
		case f.Offer == nil && r.Status != Deferred: // the items shown are unknown
			b.close(r, nil, now, &eventlog.Evicted{Decision: r.id})
			n++
		case urgent || b.canExpire(r, f.Offer):
			b.expire(r, f.Offer, now)
			n++
		}
	}
	made, _ := b.makeRoom(p, p.Open.Bytes+b.open[p]-p.Config.MemoryBytes, now, MaxExpiry)
	return n + made
}

// clockMoved moves the attribution windows of open decisions.
func (s *State) clockMoved(p *Placement, sequence uint64, time int64, b *eventlog.ClockMoved) error {
	p.Open.Move(expiry.Move{Entry: sequence, Time: time, By: b.By})
	p.Earnings.Guard.MoveClock(b.By)
	return nil
}

// Jumped returns by how much the clock moved ahead in the time span before now, and when it moved last, or 0.
func (s *State) Jumped(now int64, span time.Duration) (by, at int64) {
	for _, p := range s.Placements {
		sum, last := int64(0), int64(0)
		for _, m := range p.Open.Moves {
			if now-m.Time < int64(span) {
				sum, last = sum+m.By, max(last, m.Time)
			}
		}
		if sum > by {
			by, at = sum, last
		}
	}
	return by, at
}
