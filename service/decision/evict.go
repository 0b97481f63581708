package decision

import (
	"fmt"
	"hash/maphash"

	"vitrine/service/eventlog"
)

// makeRoom ends the wait for the outcome of a decision that memory has no room for. Where its window is
// over it has expired. Otherwise nobody knows what became of it: it is evicted, and teaches nothing. It reports
// false where the decision has expired and the learner has no room for the round.
func (b *batch) makeRoom(r *record, now int64) bool {
	if r.isLate(now) {
		if !b.canExpire(r) {
			return false
		}
		b.expire(r, now)
		return true
	}
	b.close(r, now, &eventlog.Evicted{Decision: r.id})
	return true
}

func tooSmall(p *placement, id string) error {
	holds := ""
	if s := p.pace.seconds(p.config.Memory); s > 0 {
		holds = fmt.Sprintf(" hold %.3g seconds of decisions at the present rate, and", s)
	}
	return fmt.Errorf("decision %q: %w: the %d bytes of %q%s must hold the attribution window of %s: make its memory larger",
		abbreviate(id, largestDecision), ErrEvicted, p.config.Memory, p.name, holds, p.config.AttributionWindow)
}

// evictions are the names of evicted decisions that are forgotten, the last ones of each placement, so that a late
// outcome of one is told why. They are no part of the state: without them the decision is not found.
type evictions struct {
	seed maphash.Seed
	of   map[uint64]*placement // by the hash of the name
	ring map[*placement]*ring
}

// ring are the hashes of one placement, in a circle once there are as many as may be.
type ring struct {
	hashes []uint64
	next   int
}

const (
	evictedBytes = 64 // of a name: in the ring and in the map
	evictedShare = 16 // of the placement's memory
)

func newEvictions() evictions {
	return evictions{maphash.MakeSeed(), map[uint64]*placement{}, map[*placement]*ring{}}
}

func (v *evictions) add(p *placement, id string) {
	r := v.ring[p]
	if r == nil {
		r = new(ring)
		v.ring[p] = r
	}
	h := maphash.String(v.seed, id)
	if most := p.config.Memory / evictedShare / evictedBytes; len(r.hashes) < most {
		r.hashes = append(r.hashes, h)
	} else {
		r.next %= len(r.hashes)
		delete(v.of, r.hashes[r.next])
		r.hashes[r.next] = h
		r.next++
	}
	v.of[h] = p
}

// find returns the placement of an evicted decision, nil where it is not known to be one.
func (v *evictions) find(id string) *placement { return v.of[maphash.String(v.seed, id)] }

func (v *evictions) forget(p *placement) {
	if r := v.ring[p]; r != nil {
		for _, h := range r.hashes {
			delete(v.of, h)
		}
		delete(v.ring, p)
	}
}
