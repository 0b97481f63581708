package earnings

import (
	"cmp"
	"slices"

	"vitrine/internal/fields"
	"vitrine/service/api"
)

// Cohorts sum a placement's decisions by the time when they were made, oldest first. Sales are reported before other
// decisions expire, so decisions close out of order, and those closed early contain too many sales. A cohort therefore
// counts as a whole, once its last decision has closed and all earlier cohorts have counted. Its sums are compared with
// values known when it began.
//
// A cohort is lost, and never counts, if more than one in [api.FewLost] of its decisions left memory before their outcome: too
// many of the decisions that stay are then sales.
type Cohorts[T any] []*Cohort[T]

// Cohort sums the decisions from one part of the attribution window: see [Watch.Cohort].
type Cohort[T any] struct {
	Number  int64  // time / length
	Open    uint64 // decisions that have not closed
	Made    uint64 // all decisions
	Evicted uint64 // those that left memory before their outcome
	Sums    T
}

// Lost reports whether the cohort never counts.
func (c *Cohort[T]) Lost() bool { return api.FewLost*c.Evicted > c.Made }

func (l Cohorts[T]) find(number int64) (at int, found bool) {
	return slices.BinarySearchFunc(l, number, func(c *Cohort[T], n int64) int { return cmp.Compare(c.Number, n) })
}

// Enter adds an open decision to the cohort with a number. For a new cohort, begin returns its sums.
func (l *Cohorts[T]) Enter(number int64, begin func() T) {
	at, found := l.find(number)
	if !found {
		*l = slices.Insert(*l, at, &Cohort[T]{Number: number, Sums: begin()})
	}
	(*l)[at].Open++
	(*l)[at].Made++
}

// Leave removes a closed decision, and returns the sums to count it in, or nil if its cohort contains no open decision.
func (l Cohorts[T]) Leave(number int64) *T {
	at, found := l.find(number)
	if !found || l[at].Open == 0 {
		return nil
	}
	l[at].Open--
	return &l[at].Sums
}

// Lose notes that a decision leaves memory before its outcome. Call it before Leave.
func (l Cohorts[T]) Lose(number int64) {
	if at, found := l.find(number); found {
		l[at].Evicted++
	}
}

// Sums returns the sums of a cohort that does not count yet, or nil.
func (l Cohorts[T]) Sums(number int64) *T {
	at, found := l.find(number)
	if !found {
		return nil
	}
	return &l[at].Sums
}

// Take removes and returns the oldest cohort, lost or not, if it lies before the present one and all its decisions have
// closed. Otherwise it returns nil.
func (l *Cohorts[T]) Take(present int64) *Cohort[T] {
	if len(*l) == 0 || (*l)[0].Open > 0 || (*l)[0].Number >= present {
		return nil
	}
	c := (*l)[0]
	*l = slices.Delete(*l, 0, 1)
	return c
}

// Next is Take for cohorts that count. It drops lost ones.
func (l *Cohorts[T]) Next(present int64) *Cohort[T] {
	c := l.Take(present)
	for c != nil && c.Lost() {
		c = l.Take(present)
	}
	return c
}

// Copy returns a deep copy, given a way to copy sums.
func (l Cohorts[T]) Copy(sums func(*T) T) Cohorts[T] {
	own := slices.Clone(l)
	for i, c := range own {
		own[i] = &Cohort[T]{c.Number, c.Open, c.Made, c.Evicted, sums(&c.Sums)}
	}
	return own
}

// Fields encodes or decodes the cohorts. begin returns sums to decode into.
func (l *Cohorts[T]) Fields(f *fields.Fields, begin func() T, sums func(*T, *fields.Fields)) {
	fields.List(f, (*[]*Cohort[T])(l), func(c **Cohort[T], f *fields.Fields) {
		if f.Reads() {
			*c = &Cohort[T]{Sums: begin()}
		}
		f.Int64(&(*c).Number)
		f.Uvarint(&(*c).Open, &(*c).Made, &(*c).Evicted)
		sums(&(*c).Sums, f)
	})
	fields.Ascending(f, "cohorts", *l, func(c **Cohort[T]) int64 { return (*c).Number })
}
