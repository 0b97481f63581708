package decision

import (
	"fmt"
	"hash/maphash"

	"vitrine/service/api"
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
		api.Abbreviate(id, largestDecision), ErrEvicted, p.config.Memory, p.name, holds, p.config.AttributionWindow)
}

// evictions are the names of evicted decisions that are forgotten, the last ones of each placement, so that a late
// outcome of one is told why. They are no part of the state: without them the decision is not found.
type evictions struct {
	seed maphash.Seed
	of   map[*placement]*ring
}

// ring are the hashes of one placement, in a circle once there are as many as may be.
type ring struct {
	hashes []uint64
	has    map[uint64]bool
	next   int
}

const (
	evictedBytes = 64 // of a name: in the ring and in the map
	evictedShare = 16 // of the placement's memory
)

func newEvictions() evictions {
	return evictions{maphash.MakeSeed(), map[*placement]*ring{}}
}

func (v *evictions) add(p *placement, id string) {
	r := v.of[p]
	if r == nil {
		r = &ring{has: map[uint64]bool{}}
		v.of[p] = r
	}
	h := maphash.String(v.seed, id)
	if most := p.config.Memory / evictedShare / evictedBytes; len(r.hashes) < most {
		r.hashes = append(r.hashes, h)
	} else {
		r.next %= len(r.hashes)
		delete(r.has, r.hashes[r.next])
		r.hashes[r.next] = h
		r.next++
	}
	r.has[h] = true
}

// has reports whether a placement's decision is known to have been evicted.
func (v *evictions) has(p *placement, id string) bool {
	r := v.of[p]
	return r != nil && r.has[maphash.String(v.seed, id)]
}

func (v *evictions) forget(p *placement) { delete(v.of, p) }
