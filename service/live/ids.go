package live

import "hash/maphash"

// IDs holds hashes of the last of many ids, in a ring.
type IDs struct {
	hashes []uint64
	has    map[uint64]bool
	next   int
}

const idBytes = 64 // in the ring and in the map

var seed = maphash.MakeSeed()

// Add adds an id, in place of the oldest one if there are too many for the bytes.
func (d *IDs) Add(id string, bytes int) {
	if d.has == nil {
		d.has = map[uint64]bool{}
	}
	h := maphash.String(seed, id)
	if len(d.hashes) < bytes/idBytes {
		d.hashes = append(d.hashes, h)
	} else {
		d.next %= len(d.hashes)
		delete(d.has, d.hashes[d.next])
		d.hashes[d.next] = h
		d.next++
	}
	d.has[h] = true
}

// Knows reports whether an id is there.
func (d *IDs) Knows(id string) bool { return d.has[maphash.String(seed, id)] }
