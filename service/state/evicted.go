package state

import (
	"hash/maphash"

	"vitrine/service/setup"
)

// evictedIDs holds hashes of a placement's last evicted and forgotten decisions, in a ring, so that a late outcome gets
// ErrEvicted. They are not part of the state: without them the error is ErrNotFound.
type evictedIDs struct {
	hashes []uint64
	has    map[uint64]bool
	next   int
}

const (
	evictedBytes = 64 // of a name: in the circle and in the map
)

var evictedSeed = maphash.MakeSeed()

// add adds a decision, in place of the oldest one if there are too many for a part of the placement's memory.
func (d *evictedIDs) add(id string, memory int) {
	if d.has == nil {
		d.has = map[uint64]bool{}
	}
	h := maphash.String(evictedSeed, id)
	if len(d.hashes) < memory/setup.EvictedShare/evictedBytes {
		d.hashes = append(d.hashes, h)
	} else {
		d.next %= len(d.hashes)
		delete(d.has, d.hashes[d.next])
		d.hashes[d.next] = h
		d.next++
	}
	d.has[h] = true
}

// knows reports whether a decision is known as evicted.
func (d *evictedIDs) knows(id string) bool { return d.has[maphash.String(evictedSeed, id)] }
