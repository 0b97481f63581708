package decision

import (
	"cmp"
	"container/heap"
	"slices"
)

// due are the open decisions of a placement, the one whose attribution window ends first at the top. Their
// order is that of their times, and not that of the log: a decision that was made while the clock was
// ahead must not hold up the others.
type due []*record

func (d *due) add(r *record)    { heap.Push(d, r) }
func (d *due) remove(r *record) { heap.Remove(d, r.at) }

// late returns the decisions whose window is over, in their order, and no more than most.
func (d due) late(now int64, most int) []*record {
	var found []*record
	var visit func(i int)
	visit = func(i int) {
		if i >= len(d) || len(found) == most || !d[i].isLate(now) {
			return // what is below is not late either
		}
		found = append(found, d[i])
		visit(2*i + 1)
		visit(2*i + 2)
	}
	visit(0)
	slices.SortFunc(found, func(a, b *record) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.number, b.number)) })
	return found
}

// Len implements heap.Interface.
func (d due) Len() int { return len(d) }

// Less implements heap.Interface. Of two at one time the earlier decision is first.
func (d due) Less(i, j int) bool {
	if d[i].time != d[j].time {
		return d[i].time < d[j].time
	}
	return d[i].number < d[j].number
}

// Swap implements heap.Interface.
func (d due) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].at, d[j].at = i, j
}

// Push implements heap.Interface.
func (d *due) Push(x any) {
	r := x.(*record)
	r.at = len(*d)
	*d = append(*d, r)
}

// Pop implements heap.Interface.
func (d *due) Pop() any {
	last := len(*d) - 1
	r := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return r
}
