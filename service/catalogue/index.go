package catalogue

import "hash/maphash"

// index finds slots by item id. It is a hash table of slots with linear probing (Knuth, The Art of Computer
// Programming, vol. 3, section 6.4). It stores no pointers and at most 8 bytes per item, a fifth of a map by id,
// because the ids stay in the records.
type index struct {
	seed  maphash.Seed
	table []int32 // length is a power of two; entries are slot + 1, or 0 if free
	n     int
	id    func(slot int32) string
}

func newIndex(id func(slot int32) string) index { return index{seed: maphash.MakeSeed(), id: id} }

// home returns the place where the search for an id begins.
func (x *index) home(id string) int { return int(maphash.String(x.seed, id)) & (len(x.table) - 1) }

// at returns the place of an id, or the free place where it belongs. The table must not be full.
func (x *index) at(id string) int {
	at := x.home(id)
	for x.table[at] != 0 && x.id(x.table[at]-1) != id {
		at = (at + 1) & (len(x.table) - 1)
	}
	return at
}

func (x *index) find(id string) (slot int32, ok bool) {
	if x.n == 0 {
		return 0, false
	}
	slot = x.table[x.at(id)] - 1
	return slot, slot >= 0
}

// add adds a new id. The slot must already hold its record.
func (x *index) add(id string, slot int32) {
	if 4*(x.n+1) > 3*len(x.table) {
		old := x.table
		x.table = make([]int32, max(16, 2*len(old)))
		for _, s := range old {
			if s != 0 {
				x.table[x.at(x.id(s-1))] = s
			}
		}
	}
	x.table[x.at(id)] = slot + 1
	x.n++
}

// remove removes an id while its slot still holds the record. Later entries move up, so that searches still find them.
func (x *index) remove(id string) {
	last := len(x.table) - 1
	free := x.at(id)
	x.table[free] = 0
	x.n--
	for at := (free + 1) & last; x.table[at] != 0; at = (at + 1) & last {
		home := x.home(x.id(x.table[at] - 1))
		if (at-home)&last >= (at-free)&last { // its search passes the free place
			x.table[free], x.table[at], free = x.table[at], 0, at
		}
	}
}
