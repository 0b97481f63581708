// Package expiry orders decisions that wait for their outcomes by when their windows began, by a clock that may move.
package expiry

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"
	"strings"
	"time"

	"vitrine/internal/fields"
	"vitrine/service/api"
)

// Queue holds a placement's open decisions, with the one that expires next at the top. They are ordered by time, not by
// the log: a decision made while the clock was ahead must not delay the others. The zero value is empty.
type Queue[R Waiting] struct {
	Bytes int
	Moves []Move // of the clock, that windows of open decisions moved with
	heap  []R
	held  int // open decisions from before the last move
}

// Waiting is a decision.
type Waiting interface {
	Began() (time int64, entry uint64, id string) // of its window, by the clock of then
	Size() int                                    // in bytes
	Place() *int                                  // where the queue notes its place
}

// Move is a move of the clock. The windows of earlier decisions move with it.
type Move struct {
	Entry    uint64 // of the ClockMoved
	Time, By int64
}

// Fields encodes or decodes a move.
func (m *Move) Fields(f *fields.Fields) {
	f.Uvarint(&m.Entry)
	f.Int64(&m.Time, &m.By)
}

// Len returns the number of decisions.
func (q *Queue[R]) Len() int { return len(q.heap) }

// Add adds a decision.
func (q *Queue[R]) Add(r R) {
	heap.Push((*order[R])(q), r)
	q.Bytes += r.Size()
	if q.isHeld(r) {
		q.held++
	}
}

// Remove removes a decision.
func (q *Queue[R]) Remove(r R) {
	heap.Remove((*order[R])(q), *r.Place())
	q.Bytes -= r.Size()
	if q.isHeld(r) {
		q.held--
	}
}

// isHeld reports whether a decision was open when the clock moved last.
func (q *Queue[R]) isHeld(r R) bool {
	_, entry, _ := r.Began()
	return len(q.Moves) > 0 && entry < q.Moves[len(q.Moves)-1].Entry
}

// Move moves the windows of all decisions, keeping their order. Moves from before the oldest one are forgotten after a
// day. A move by 0 is none.
func (q *Queue[R]) Move(m Move) {
	if m.By == 0 {
		return
	}
	oldest := q.Oldest(m.Entry)
	q.Moves = append(slices.DeleteFunc(q.Moves, func(o Move) bool {
		return o.Entry < oldest && time.Duration(m.Time-o.Time).Abs() > 24*time.Hour
	}), m)
	q.held = len(q.heap)
}

// Held describes the decisions that were open at the clock's last move, or returns nil if all ended.
func (q *Queue[R]) Held() *api.Held {
	if q.held == 0 {
		return nil
	}
	m := q.Moves[len(q.Moves)-1]
	return &api.Held{Decisions: q.held, Time: time.Unix(0, m.Time).UTC(), Seconds: time.Duration(m.By).Seconds()}
}

// Since returns when the window of a decision began, by the present clock.
func (q *Queue[R]) Since(r R) int64 {
	t, entry, _ := r.Began()
	for _, m := range q.Moves {
		if entry < m.Entry {
			t += m.By
		}
	}
	return t
}

// Each yields the decisions in any order, quickly. They must not change meanwhile.
func (q *Queue[R]) Each() iter.Seq[R] { return slices.Values(q.heap) }

// Before returns the last entry before the decision that expires first, or the given entry if no decision waits.
func (q *Queue[R]) Before(entry uint64) uint64 {
	if len(q.heap) > 0 {
		_, first, _ := q.heap[0].Began()
		return first - 1
	}
	return entry
}

// All yields the decisions in their order. They must not change meanwhile.
func (q *Queue[R]) All() iter.Seq[R] {
	return func(yield func(R) bool) {
		next := frontier[R]{of: (*order[R])(q)}
		next.add(0)
		for len(next.at) > 0 {
			i := heap.Pop(&next).(int)
			if !yield(q.heap[i]) {
				return
			}
			next.add(2*i + 1)
			next.add(2*i + 2)
		}
	}
}

// Oldest returns the smaller of an entry and the first entry of a decision.
func (q *Queue[R]) Oldest(later uint64) uint64 {
	for _, r := range q.heap {
		if _, entry, _ := r.Began(); entry > 0 {
			later = min(later, entry)
		}
	}
	return later
}

// Sorted returns the decisions in their order.
func (q *Queue[R]) Sorted() []R {
	s := slices.Clone(q.heap)
	slices.SortFunc(s, q.Compare)
	return s
}

// Compare orders by time, and decisions of one time by their entries and ids.
func (q *Queue[R]) Compare(a, b R) int {
	if a, b := q.Since(a), q.Since(b); a != b { // cmp.Or would compare the ids, which are elsewhere in memory
		return cmp.Compare(a, b)
	}
	_, entry, id := a.Began()
	_, other, otherID := b.Began()
	return cmp.Or(cmp.Compare(entry, other), strings.Compare(id, otherID))
}

// order is the queue as a heap.Interface.
type order[R Waiting] Queue[R]

func (o *order[R]) Len() int { return len(o.heap) }

func (o *order[R]) Less(i, j int) bool { return (*Queue[R])(o).Compare(o.heap[i], o.heap[j]) < 0 }

func (o *order[R]) Swap(i, j int) {
	o.heap[i], o.heap[j] = o.heap[j], o.heap[i]
	*o.heap[i].Place(), *o.heap[j].Place() = i, j
}

func (o *order[R]) Push(x any) {
	r := x.(R)
	*r.Place() = len(o.heap)
	o.heap = append(o.heap, r)
}

func (o *order[R]) Pop() any {
	last := len(o.heap) - 1
	r := o.heap[last]
	clear(o.heap[last:])
	o.heap = o.heap[:last]
	return r
}

// frontier is a heap.Interface of the places in a queue that can be next in its order.
type frontier[R Waiting] struct {
	of *order[R]
	at []int
}

func (f *frontier[R]) add(i int) {
	if i < f.of.Len() {
		heap.Push(f, i)
	}
}

func (f *frontier[R]) Len() int { return len(f.at) }

func (f *frontier[R]) Less(i, j int) bool { return f.of.Less(f.at[i], f.at[j]) }

func (f *frontier[R]) Swap(i, j int) { f.at[i], f.at[j] = f.at[j], f.at[i] }

func (f *frontier[R]) Push(x any) { f.at = append(f.at, x.(int)) }

func (f *frontier[R]) Pop() any {
	last := len(f.at) - 1
	i := f.at[last]
	f.at = f.at[:last]
	return i
}
