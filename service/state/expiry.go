package state

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"
	"strings"
	"time"

	"vitrine/service/api"
)

// expiryQueue holds a placement's open decisions, with the one that expires next at the top. They are ordered by time,
// not by the log: a decision made while the clock was ahead must not delay the others.
type expiryQueue struct {
	Heap  expiryHeap
	bytes int
	moves []clockMove // of the clock, that windows of open decisions moved with
	held  int         // open decisions from before the last move
}

// move is a move of the clock. The windows of earlier decisions move with it.
type clockMove struct {
	entry    uint64 // of the ClockMoved
	time, by int64
}

func (d *expiryQueue) add(r *Record) {
	heap.Push(&d.Heap, r)
	d.bytes += r.size()
	if d.isHeld(r) {
		d.held++
	}
}

func (d *expiryQueue) remove(r *Record) {
	heap.Remove(&d.Heap, r.at)
	d.bytes -= r.size()
	if d.isHeld(r) {
		d.held--
	}
}

// isHeld reports whether a decision was open when the clock moved last.
func (d *expiryQueue) isHeld(r *Record) bool {
	return len(d.moves) > 0 && r.Entry < d.moves[len(d.moves)-1].entry
}

// move moves the windows of all open decisions, keeping their order. Moves from before the oldest one are forgotten
// after a day.
func (d *expiryQueue) move(m clockMove) {
	oldest := d.oldest(m.entry)
	d.moves = append(slices.DeleteFunc(d.moves, func(o clockMove) bool {
		return o.entry < oldest && time.Duration(m.time-o.time).Abs() > 24*time.Hour
	}), m)
	d.held = len(d.Heap)
}

// report describes the decisions that were open at the clock's last move, or returns nil if all have ended.
func (d *expiryQueue) report() *api.Held {
	if d.held == 0 {
		return nil
	}
	m := d.moves[len(d.moves)-1]
	return &api.Held{Decisions: d.held, Time: time.Unix(0, m.time).UTC(), Seconds: time.Duration(m.by).Seconds()}
}

// since returns when the window of a decision began, by the present clock.
func (d *expiryQueue) since(r *Record) int64 {
	t := r.time
	for _, m := range d.moves {
		if r.Entry < m.entry {
			t += m.by
		}
	}
	return t
}

// all yields the decisions in their order. They must not change meanwhile.
func (d *expiryQueue) all() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		next := frontier{of: d.Heap}
		next.add(0)
		for len(next.at) > 0 {
			i := heap.Pop(&next).(int)
			if !yield(d.Heap[i]) {
				return
			}
			next.add(2*i + 1)
			next.add(2*i + 2)
		}
	}
}

// oldest returns the smaller of an entry and the first entry of an open decision.
func (d *expiryQueue) oldest(later uint64) uint64 {
	for _, r := range d.Heap {
		if r.Entry > 0 {
			later = min(later, r.Entry)
		}
	}
	return later
}

// sorted returns the decisions in their order.
func (d *expiryQueue) sorted() []*Record {
	s := slices.Clone(d.Heap)
	slices.SortFunc(s, compareExpiry)
	return s
}

// compareDue orders by time, and decisions of one time by their order.
func compareExpiry(a, b *Record) int {
	if a, b := a.since(), b.since(); a != b { // cmp.Or would compare the ids, which are elsewhere in memory
		return cmp.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(a.Entry, b.Entry), strings.Compare(a.id, b.id))
}

// dueHeap is a heap.Interface.
type expiryHeap []*Record

func (d expiryHeap) Len() int { return len(d) }

func (d expiryHeap) Less(i, j int) bool { return compareExpiry(d[i], d[j]) < 0 }

func (d expiryHeap) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].at, d[j].at = i, j
}

func (d *expiryHeap) Push(x any) {
	r := x.(*Record)
	r.at = len(*d)
	*d = append(*d, r)
}

func (d *expiryHeap) Pop() any {
	last := len(*d) - 1
	r := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return r
}

// frontier is a heap.Interface of the places in a heap that can be next in its order.
type frontier struct {
	of expiryHeap
	at []int
}

func (f *frontier) add(i int) {
	if i < len(f.of) {
		heap.Push(f, i)
	}
}

func (f *frontier) Len() int { return len(f.at) }

func (f *frontier) Less(i, j int) bool { return f.of.Less(f.at[i], f.at[j]) }

func (f *frontier) Swap(i, j int) { f.at[i], f.at[j] = f.at[j], f.at[i] }

func (f *frontier) Push(x any) { f.at = append(f.at, x.(int)) }

func (f *frontier) Pop() any {
	last := len(f.at) - 1
	i := f.at[last]
	f.at = f.at[:last]
	return i
}
