package catalogue

import (
	"context"
	"sync"

	"vitrine/service/budget"
)

// A request may need a fact about every item: whether it satisfies a filter, or its group. A catalogue keeps such lists
// and updates them in slices: it takes the read lock, looks at some items, and unlocks. Changes go on between slices,
// and the items that they touch are looked at again at the end. The writer changes catalogues and writes the log for
// all placements. It waits for one slice, never for a whole list.

type lists struct {
	mu      sync.Mutex
	filters map[string]*Filter
	groups  map[GroupsBy]*Groups
	budget  *budget.Budget // charged for groups
}

// list is a fact about every item. Its methods are called with both the list's and the catalogue's locks held.
type list interface {
	progress() *sweep
	begin(n int)                   // forget everything; n items will follow
	fit(n int)                     // make room for n items
	look(c *Catalogue, slot int32) // look at an item, maybe again after a change
	cost() int                     // comparisons per look
	isWorn(n int) bool             // whether rebuilding is better than updating
}

// sweep tracks a list's progress.
type sweep struct {
	mu    sync.Mutex // taken after the lock of the catalogue
	begun bool
	next  int    // first item not looked at yet
	seen  uint64 // first change not looked at yet
}

func (s *sweep) progress() *sweep { return s }

// changes lists changed slots in order. Changes are numbered; old ones are forgotten.
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

var sliceItems = 4096 // items per slice, which take a fraction of a millisecond; shorter in tests

const sliceComparisons = 1 << 16 // comparisons per slice, for expensive filters

// slice looks at some items of a list. It returns how many it looked at and whether the list is complete. The caller
// holds the catalogue's read lock.
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
	// From largeItems on, a decision holds the catalogue's lock long enough for others to notice. At most largeAtOnce
	// decisions do so at once.
	largeItems  = 1 << 15
	largeAtOnce = 2
)

// Enter waits until the caller may lock a large catalogue for a decision among its items, or until ctx ends.
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

// behind returns how many items a list must still look at, and whether it began.
func (c *Catalogue) behind(l list) (items int, begun bool) {
	c.RLock()
	defer c.RUnlock()
	s := l.progress()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun || s.seen < c.changes.first {
		return c.Len(), s.begun
	}
	return max(0, c.Len()-s.next) + int(c.changes.end()-s.seen), true
}

// complete brings a list up to date; changes may follow at once. The work is charged to the caller's account in ctx, if
// there is one. A list that is only a few changes behind is never refused.
func (c *Catalogue) complete(ctx context.Context, l list) error {
	w := workOf(ctx)
	if items, begun := c.behind(l); items > sliceItems || !begun {
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

// CatchUp brings a filter and groups up to date for a caller that holds the read lock. It returns false after many
// changes: then it is better to unlock and complete the lists again.
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
