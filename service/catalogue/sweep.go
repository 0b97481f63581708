package catalogue

import (
	"context"
	"sync"

	"vitrine/service/budget"
)

// A request may need something that is known of every item: whether it satisfies a filter, or its group. A catalogue keeps such
// lists, and brings one up to date in slices: it locks itself for reading, looks at some items, and unlocks. Changes between two
// slices go on, and the items that they touched are looked at again at the end. The writer, which changes catalogues and writes the
// log for all placements, therefore waits for one slice and never for a whole list.

// lists holds the filters and groups that the catalogue keeps up to date.
type lists struct {
	mu      sync.Mutex
	filters map[string]*Filter // by text
	groups  map[GroupsBy]*Groups
	budget  *budget.Budget // of the groups
}

// list is something that is known of every item. The methods are called with the lock of the list and that of the catalogue.
type list interface {
	progress() *sweep
	begin(n int)                   // forget everything: n items will be looked at
	fit(n int)                     // make room for n items
	look(c *Catalogue, slot int32) // look at an item, again if it has changed
	cost() int                     // of a look, in comparisons
	isWorn(n int) bool             // whether it is better to begin again
}

// sweep is how far a list has come.
type sweep struct {
	mu    sync.Mutex // taken after the lock of the catalogue
	begun bool
	next  int    // the items before it have been looked at
	seen  uint64 // the changes before it have been
}

func (s *sweep) progress() *sweep { return s }

// changes are the slots that have changed, in their order. Each change has a number; of old ones the slots are forgotten.
type changes struct {
	first uint64 // the number of slots[0]
	slots []int32
}

const maxChanges = 1 << 16

func (l *changes) end() uint64 { return l.first + uint64(len(l.slots)) }

func (l *changes) add(slot int32) {
	if len(l.slots) == maxChanges {
		const forgotten = maxChanges / 2
		l.first += forgotten
		l.slots = append(l.slots[:0], l.slots[forgotten:]...)
	}
	l.slots = append(l.slots, slot)
}

var sliceItems = 4096 // of a slice, a fraction of a millisecond; tests have shorter ones

const sliceComparisons = 1 << 16 // of a slice, of a filter with many

// slice looks at some items of a list. It returns how many those were, and whether none are left. The caller has locked the
// catalogue for reading.
func (c *Catalogue) slice(l list) (looked int, done bool) {
	s := l.progress()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := c.Len()
	if !s.begun || s.seen < c.changes.first || s.seen < c.changes.end() && l.isWorn(n) {
		l.begin(n)
		s.begun, s.next, s.seen = true, 0, c.changes.end()
	}
	l.fit(n)
	s.next = min(s.next, n)
	most := min(sliceItems, max(sliceComparisons/l.cost(), 1))
	for ; s.next < n && looked < most; looked++ {
		l.look(c, int32(s.next))
		s.next++
	}
	for ; s.seen < c.changes.end() && looked < most; looked++ {
		if slot := c.changes.slots[s.seen-c.changes.first]; int(slot) < s.next {
			l.look(c, slot)
		}
		s.seen++
	}
	return looked, s.next == n && s.seen == c.changes.end()
}

const (
	// largeItems is the size of a catalogue from which on decisions lock it for a time that others notice. largeAtOnce of them
	// do so at once.
	largeItems  = 1 << 15
	largeAtOnce = 2
)

// Enter waits until the caller may lock a large catalogue for as long as a decision among its items needs it, until ctx ends.
func (c *Catalogue) Enter(ctx context.Context) (leave func(), err error) {
	if c.Head().Items < largeItems {
		return func() {}, nil
	}
	select {
	case c.large <- struct{}{}:
		return func() { <-c.large }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// behind returns how many items a list has to look at.
func (c *Catalogue) behind(l list) int {
	c.RLock()
	defer c.RUnlock()
	s := l.progress()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun || s.seen < c.changes.first {
		return c.Len()
	}
	return max(0, c.Len()-s.next) + int(c.changes.end()-s.seen)
}

// complete brings a list up to date. Changes may come as soon as it returns. The work is charged to the caller's account, which
// ctx may have; a list that only has to follow a few changes is never refused.
func (c *Catalogue) complete(ctx context.Context, l list) error {
	w := workOf(ctx)
	if c.behind(l) > sliceItems || !l.progress().isBegun() {
		leave, err := w.enter(ctx)
		if err != nil {
			return err
		}
		defer leave()
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.RLock()
		looked, done := c.slice(l)
		c.RUnlock()
		w.Charge(looked * l.cost())
		if done {
			return nil
		}
	}
}

func (s *sweep) isBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// CatchUp brings a filter and groups up to date for a caller who has locked the catalogue for reading, and reports whether it
// did: after many changes it is better to unlock, and to complete them again.
func (c *Catalogue) CatchUp(p *Filter, groups ...*Groups) bool {
	if p != nil {
		if _, done := c.slice(p); !done {
			return false
		}
	}
	for _, g := range groups {
		if _, done := c.slice(g); !done {
			return false
		}
	}
	return true
}
