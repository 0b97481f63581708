package earnings

import (
	"slices"

	"vitrine/internal/fields"
)

// Peaks list the decisions that earned most, among those that earned more than the dearest item on their page: at most
// maxPeaks. A bound is the dearest item's revenue or the largest peak. Unlike a maximum, the list takes corrections: a
// mistyped value no longer bounds anything once it is corrected.
//
// Methods replace the list, so copies may share it.
type Peaks[T any] []Peak[T]

// Peak is one of these decisions.
type Peak[T any] struct {
	Entry uint64 // log entry of the offer
	Value float64
	Of    T
}

const maxPeaks = 4

// Add adds a decision. If there are too many, it removes and returns the smallest peak, which no longer takes
// corrections.
func (l *Peaks[T]) Add(p Peak[T]) (out Peak[T], isFull bool) {
	n := len(*l)
	if n < maxPeaks {
		list := make([]Peak[T], n+1)
		copy(list, *l)
		list[n] = p
		*l = list
		return out, false
	}
	at := 0
	for i := range *l {
		if (*l)[i].Value < (*l)[at].Value {
			at = i
		}
	}
	if out = (*l)[at]; p.Value <= out.Value {
		return p, true
	}
	*l = slices.Clone(*l)
	(*l)[at] = p
	return out, true
}

// Correct sets a decision's earnings. It reports whether the decision is a peak.
func (l *Peaks[T]) Correct(entry uint64, value float64) bool {
	at := l.find(entry)
	if at >= 0 {
		*l = slices.Clone(*l)
		(*l)[at].Value = value
	}
	return at >= 0
}

// find returns the index of a decision, or -1.
func (l Peaks[T]) find(entry uint64) int {
	return slices.IndexFunc(l, func(p Peak[T]) bool { return p.Entry == entry })
}

// Fields encodes or decodes the peaks.
func (l *Peaks[T]) Fields(f *fields.Fields, of func(*T, *fields.Fields)) {
	fields.List(f, (*[]Peak[T])(l), func(p *Peak[T], f *fields.Fields) {
		f.Uvarint(&p.Entry)
		f.Float(&p.Value)
		of(&p.Of, f)
	})
	f.Check(len(*l) <= maxPeaks, "%d peaks", len(*l))
}
