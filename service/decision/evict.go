package decision

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	"vitrine/service/api"
	"vitrine/service/eventlog"
)

// makeRoom ends the wait for the outcomes of decisions until their placement has so many bytes more, of most of them, and returns
// their number. The first to expire are the first to go. One whose window is over has expired, and has to be read
// before: errFull. Of the others nobody knows what became of them: they are evicted, and teach nothing.
func (b *batch) makeRoom(p *placement, bytes int, now int64, most int) (n int, err error) {
	if bytes <= 0 {
		return 0, nil
	}
	for r := range p.open.all() {
		switch {
		case bytes <= 0 || n == most:
			return n, nil
		case b.touched[r.key()]:
			continue
		case r.isLate(now) && r.status != deferred:
			return n, errFull
		case r.isLate(now):
			b.expire(r, nil, now)
		default:
			b.close(r, nil, now, &eventlog.Evicted{Decision: r.id})
		}
		bytes -= r.size()
		n++
	}
	if bytes > 0 { // the batch itself fills the memory
		return n, errLater
	}
	return n, nil
}

// EvictBefore ends the wait for the outcomes of the decisions whose offers come before an entry of the log, so that the log
// need not have these, and returns their number. Nothing is learned from them.
func (e *Engine) EvictBefore(ctx context.Context, entry uint64, now int64) (total int, err error) {
	for {
		n := 0 // the writer's until submit has its answer
		err := e.submit(ctx, func(b *batch) error { n = b.evictBefore(entry, now); return nil })
		if total += n; err != nil || n < largestExpiry {
			return total, err
		}
	}
}

func (b *batch) evictBefore(entry uint64, now int64) (n int) {
	for _, name := range slices.Sorted(maps.Keys(b.state.placements)) {
		for r := range b.state.placements[name].open.all() {
			if n == largestExpiry {
				return n
			}
			if r.entry > 0 && r.entry < entry && !b.touched[r.key()] {
				b.close(r, nil, now, &eventlog.Evicted{Decision: r.id})
				n++
			}
		}
	}
	return n
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
