package learner

import (
	"cmp"
	"slices"

	"vitrine/internal/fields"
)

// ordering keeps the sales that wait. A caller knows a sale at once, but often learns only at the end of the attribution
// window that a page sold nothing. With sales alone a learner would take nearly all shoppers for buyers at first, and
// too many later. So a sale waits until all earlier decisions have ended, or a later one without a sale is learned
// (docs/adr/0120-sales-wait.md). Two sales may be ahead.
type ordering struct {
	settled uint64   // no sale of a decision up to this entry waits
	ahead   []uint64 // the later decisions whose sales are learned
	held    []sale   // in the order of their decisions
	bytes   int      // of their rounds
}

// sale is a sale that waits.
type sale struct {
	decision uint64 // entry
	task
}

// maxAhead is the number of sales that may be ahead. More of them mislead where few buy: to a shop that sells on one page
// in a hundred, eight sales are the news of 800 pages.
const maxAhead = 2

// admit returns the rounds to learn after the round of a decision. The sales that wait take at most the given bytes;
// the oldest make room.
func (o *ordering) admit(s sale, maximum int) (due []task) {
	if s.round.Choice == 0 {
		return append(o.settle(s.decision, maximum), s.task)
	}
	at, _ := slices.BinarySearchFunc(o.held, s, func(a, b sale) int { return cmp.Compare(a.decision, b.decision) })
	o.held = slices.Insert(o.held, at, s)
	o.bytes += s.bytes
	return o.settle(0, maximum)
}

// settle lets the sales of decisions up to an entry go, and returns the rounds to learn.
func (o *ordering) settle(entry uint64, maximum int) (due []task) {
	if entry > o.settled {
		o.settled = entry
		o.ahead = slices.DeleteFunc(o.ahead, func(decision uint64) bool { return decision <= entry })
	}
	for len(o.held) > 0 {
		switch decision := o.held[0].decision; {
		case decision <= o.settled:
		case len(o.ahead) < maxAhead:
			o.ahead = append(o.ahead, decision)
		case o.bytes <= maximum:
			return due
		}
		due = append(due, o.held[0].task)
		o.bytes -= o.held[0].bytes
		o.held[0] = sale{}
		o.held = o.held[1:]
	}
	return due
}

// drop forgets the sales that wait.
func (o *ordering) drop() { *o = ordering{settled: o.settled} }

// clone returns a copy that does not change.
func (o *ordering) clone() ordering {
	c := *o
	c.ahead, c.held = slices.Clone(o.ahead), slices.Clone(o.held)
	return c
}

func (o *ordering) fields(f *fields.Fields) {
	f.Uvarint(&o.settled)
	fields.Integers(f, &o.ahead)
	fields.List(f, &o.held, func(s *sale, f *fields.Fields) {
		f.Uvarint(&s.decision)
		s.task.fields(f)
		f.Check(s.what == toObserve && s.round.Choice > 0, "a sale that waits is task %d", s.what)
	})
	if f.Reads() {
		for _, s := range o.held {
			o.bytes += s.bytes
		}
	}
	f.Check(len(o.ahead) <= maxAhead, "%d sales are ahead", len(o.ahead))
	fields.Ascending(f, "sales", o.held, func(s *sale) uint64 { return s.decision })
}
