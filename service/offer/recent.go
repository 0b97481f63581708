package offer

// Recent holds the latest offers that the log holds and that are still open, as decoded from it, so that an early outcome
// neither reads nor decodes its offer again. Callers must not change the offers. The zero value is empty.
type Recent struct {
	slots  []kept // by the entry modulo their number; nil before the first
	Bytes  int
	oldest uint64 // no earlier entry is there
}

type kept struct {
	entry uint64
	offer *Offer // nil of a free slot
	bytes int
}

const (
	recentEntries = 1 << 14 // entries between the oldest and the last one
	recentBytes   = 8 << 20
	maxKeptSlots  = 64 // candidates of an offer, which are not among its bytes
)

// Add keeps the offer of an entry, which is later than all before, unless the offer is large. The oldest offers leave
// room for it.
func (s *Recent) Add(entry uint64, o *Offer, bytes int) {
	if o.Payload != nil || o.Catalogue != nil && len(o.Catalogue.Slots) > maxKeptSlots {
		return
	}
	if s.slots == nil {
		s.slots, s.oldest = make([]kept, recentEntries), entry
	}
	for s.oldest < entry && (entry-s.oldest >= recentEntries || s.Bytes+bytes > recentBytes) {
		s.Drop(s.oldest)
		s.oldest++
	}
	s.slots[entry%recentEntries] = kept{entry, o, bytes}
	s.Bytes += bytes
}

// Of returns the offer of an entry, nil if it is not there.
func (s *Recent) Of(entry uint64) *Offer {
	if s.slots == nil {
		return nil
	}
	if at := s.slots[entry%recentEntries]; at.entry == entry {
		return at.offer
	}
	return nil
}

// Drop frees the offer of an entry, if it is there.
func (s *Recent) Drop(entry uint64) {
	if s.Of(entry) != nil {
		s.Bytes -= s.slots[entry%recentEntries].bytes
		s.slots[entry%recentEntries] = kept{}
	}
}
