package earnings

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"vitrine/internal/fields"
	"vitrine/internal/precise"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// Items count which items a placement's closed decisions showed and sold, by item and by place. If there are too many
// items, those shown least are summed up.
type Items struct {
	sold    map[string]*Sold
	Others  Sold   // dropped items
	Dropped uint64 // number of drops; an item dropped twice counts twice
	Places  []Sold // from first place on
}

// Sold counts on how many pages an item was shown and taken, and what it earned.
type Sold struct {
	Shown, Taken uint64
	Revenue      precise.Sum
	Last         uint64 // log entry of the last offer
}

func (s *Sold) add(o Sold) {
	s.Shown, s.Taken, s.Last = s.Shown+o.Shown, s.Taken+o.Taken, max(s.Last, o.Last)
	s.Revenue.Join(o.Revenue)
}

const (
	// ItemBytes is the memory of two items, because up to twice as many items as counted may wait to be dropped.
	ItemBytes = 700

	maxSold   = 10_000 // items
	maxTop    = 1000   // items of Top
	minSold   = 16
	soldShare = 16 // fraction of the placement's memory
	maxPlaces = 50
)

// MaxItems returns the number of items with counts of their own, given the placement's memory.
func MaxItems(memory int) int { return max(minSold, min(maxSold, memory/soldShare/ItemBytes)) }

// closed counts a decision.
func (t *Items) closed(o *offer.Closed, maxItems int) { t.show(o.IDs(), o.Entry, o.Takes(), maxItems) }

// show counts the items in an offer, and those that were taken.
func (t *Items) show(ids []string, entry uint64, taken eventlog.Basket, maxItems int) {
	if t.sold == nil {
		t.sold = map[string]*Sold{}
	}
	for k, id := range ids {
		one := Sold{Shown: 1, Last: entry}
		if len(taken) > 0 && int(taken[0].Place) == k+1 {
			one.Taken, one.Revenue, taken = 1, precise.Of(taken[0].Value), taken[1:]
		}
		if k < maxPlaces {
			if k == len(t.Places) {
				t.Places = append(t.Places, Sold{})
			}
			t.Places[k].add(one)
		}
		item := t.sold[id]
		if item == nil {
			item = new(Sold)
			t.sold[strings.Clone(id)] = item
		}
		item.add(one)
	}
	if len(t.sold) > 2*maxItems {
		t.drop(maxItems)
	}
}

// drop keeps the items shown most; ties go to the latest.
func (t *Items) drop(keep int) {
	for _, id := range t.Counted()[keep:] {
		t.Others.add(*t.sold[id])
		t.Dropped++
		delete(t.sold, id)
	}
}

// Counted returns the items, the ones shown most first.
func (t *Items) Counted() []string {
	return slices.SortedFunc(maps.Keys(t.sold), func(a, b string) int {
		x, y := t.sold[a], t.sold[b]
		return cmp.Or(cmp.Compare(y.Shown, x.Shown), cmp.Compare(y.Last, x.Last), strings.Compare(a, b))
	})
}

// Top returns the items shown most, and their counts.
func (t *Items) Top() (ids []string, sold []Sold) {
	ids = t.Counted()
	ids = ids[:min(len(ids), maxTop)]
	for _, id := range ids {
		sold = append(sold, *t.sold[id])
	}
	return ids, sold
}

// Sold returns the counts of an item; ok is false if it has none of its own.
func (t *Items) Sold(id string) (s Sold, ok bool) {
	if of := t.sold[id]; of != nil {
		return *of, true
	}
	return Sold{}, false
}

// Copy returns a deep copy.
func (t *Items) Copy() Items {
	c := *t
	c.sold = make(map[string]*Sold, len(t.sold))
	for id, s := range t.sold {
		c.sold[id] = new(*s)
	}
	c.Places = slices.Clone(t.Places)
	return c
}

func (s *Sold) fields(f *fields.Fields) {
	f.Uvarint(&s.Shown, &s.Taken, &s.Last)
	f.Float(s.Revenue.Parts())
}

func (t *Items) fields(f *fields.Fields) {
	fields.Map(f, &t.sold, (*Sold).fields)
	t.Others.fields(f)
	f.Uvarint(&t.Dropped)
	fields.List(f, &t.Places, (*Sold).fields)
	f.Check(len(t.sold) <= 2*maxSold && len(t.Places) <= maxPlaces, "the counts of %d items and %d places",
		len(t.sold), len(t.Places))
}
