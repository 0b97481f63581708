package state

import (
	"time"

	"vitrine/service/eventlog"
)

// Jumped returns by how much the clock has moved ahead in the time span before now, and when it moved last, or 0.
func (s *State) Jumped(now int64, span time.Duration) (by, at int64) {
	for _, p := range s.Placements {
		sum, last := int64(0), int64(0)
		for _, m := range p.Open.moves {
			if now-m.time < int64(span) {
				sum, last = sum+m.by, max(last, m.time)
			}
		}
		if sum > by {
			by, at = sum, last
		}
	}
	return by, at
}

// clockMoved moves the attribution windows of open decisions.
func (s *State) clockMoved(p *Placement, sequence uint64, time int64, b *eventlog.ClockMoved) error {
	p.Open.move(clockMove{sequence, time, b.By})
	p.Earnings.Guard.MoveClock(b.By)
	return nil
}
