package engine

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"
	"strings"
	"time"

	"vitrine/service/api"
)

// due are the open decisions of a placement, the one whose attribution window ends first at the top. They are
// ordered by time, not by the log: a decision made while the clock was ahead must not delay the others.
type due struct {
	heap  dueHeap
	bytes int
	moves []move // of the clock, that windows of open decisions moved with
	held  int    // open decisions from before the last move
}

// move is a move of the clock. The windows of earlier decisions move with it.
type move struct {
	entry    uint64 // of the ClockMoved
	time, by int64
}

func (d *due) add(r *record) {
	heap.Push(&d.heap, r)
	d.bytes += r.size()
	if d.isHeld(r) {
		d.held++
	}
}

func (d *due) remove(r *record) {
	heap.Remove(&d.heap, r.at)
	d.bytes -= r.size()
	if d.isHeld(r) {
		d.held--
	}
}

// isHeld reports whether a decision was open when the clock moved last.
func (d *due) isHeld(r *record) bool {
	return len(d.moves) > 0 && r.entry < d.moves[len(d.moves)-1].entry
}

// move moves the windows of all open decisions, which keeps their order. Moves from before the oldest one are forgotten after a day.
func (d *due) move(m move) {
	oldest := d.oldest(m.entry)
	d.moves = append(slices.DeleteFunc(d.moves, func(o move) bool { return o.entry < oldest && time.Duration(m.time-o.time).Abs() > 24*time.Hour }), m)
	d.held = len(d.heap)
}

// report tells of the decisions that were open when the clock moved last, nil if none is open any more.
func (d *due) report() *api.Held {
	if d.held == 0 {
		return nil
	}
	m := d.moves[len(d.moves)-1]
	return &api.Held{Decisions: d.held, Time: time.Unix(0, m.time).UTC(), Seconds: time.Duration(m.by).Seconds()}
}

// since returns when the window of a decision began, by the present clock.
func (d *due) since(r *record) int64 {
	t := r.time
	for _, m := range d.moves {
		if r.entry < m.entry {
			t += m.by
		}
	}
	return t
}

// all yields the decisions in their order. They must not change meanwhile.
func (d *due) all() iter.Seq[*record] {
	return func(yield func(*record) bool) {
		next := frontier{of: d.heap}
		next.add(0)
		for len(next.at) > 0 {
			i := heap.Pop(&next).(int)
			if !yield(d.heap[i]) {
				return
			}
			next.add(2*i + 1)
			next.add(2*i + 2)
		}
	}
}

// oldest returns the smaller of an entry and the first entry of an open decision.
func (d *due) oldest(later uint64) uint64 {
	for _, r := range d.heap {
		if r.entry > 0 {
			later = min(later, r.entry)
		}
	}
	return later
}

// sorted returns the decisions in their order.
func (d *due) sorted() []*record {
	s := slices.Clone(d.heap)
	slices.SortFunc(s, compareDue)
	return s
}

// compareDue orders by time, and decisions of one time by their order.
func compareDue(a, b *record) int {
	if a, b := a.since(), b.since(); a != b { // cmp.Or would compare the ids, which are elsewhere in memory
		return cmp.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(a.entry, b.entry), strings.Compare(a.id, b.id))
}

// dueHeap is a heap.Interface.
type dueHeap []*record

func (d dueHeap) Len() int           { return len(d) }
func (d dueHeap) Less(i, j int) bool { return compareDue(d[i], d[j]) < 0 }

func (d dueHeap) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].at, d[j].at = i, j
}

func (d *dueHeap) Push(x any) {
	r := x.(*record)
	r.at = len(*d)
	*d = append(*d, r)
}

func (d *dueHeap) Pop() any {
	last := len(*d) - 1
	r := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return r
}

// frontier is a heap.Interface of the places in a heap that can be next in its order.
type frontier struct {
	of dueHeap
	at []int
}

func (f *frontier) add(i int) {
	if i < len(f.of) {
		heap.Push(f, i)
	}
}

func (f *frontier) Len() int           { return len(f.at) }
func (f *frontier) Less(i, j int) bool { return f.of.Less(f.at[i], f.at[j]) }
func (f *frontier) Swap(i, j int)      { f.at[i], f.at[j] = f.at[j], f.at[i] }
func (f *frontier) Push(x any)         { f.at = append(f.at, x.(int)) }

func (f *frontier) Pop() any {
	last := len(f.at) - 1
	i := f.at[last]
	f.at = f.at[:last]
	return i
}
