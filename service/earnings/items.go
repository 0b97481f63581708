package earnings

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"vitrine/internal/confseq"
	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// Items count which items a placement's closed decisions showed and sold: by item, by place and in the last decisions.
// If there are too many items, those shown least are summed up.
type Items struct {
	sold    map[string]*Sold
	Others  Sold   // dropped items
	Dropped uint64 // number of drops; an item dropped twice counts twice
	Places  []Sold // from first place on

	all    span
	recent []span // recentLength decisions each, except the last
}

// Sold counts on how many pages an item was shown and taken, and what it earned.
type Sold struct {
	Shown, Taken uint64
	Revenue      float64
	Last         uint64 // log entry of the last offer
}

func (s *Sold) add(o Sold) {
	s.Shown, s.Taken, s.Last = s.Shown+o.Shown, s.Taken+o.Taken, max(s.Last, o.Last)
	s.Revenue += o.Revenue
}

// span sums up consecutive closed decisions.
type span struct {
	decisions, estimated uint64 // the second counts those with a prediction
	earned, predicted    float64
	arms                 [3]api.Totals // offer.ByPolicy, offer.ByChance, offer.ByBaseline
}

func (s *span) add(o *span) {
	s.decisions, s.estimated = s.decisions+o.decisions, s.estimated+o.estimated
	s.earned += o.earned
	s.predicted += o.predicted
	for i := range s.arms {
		s.arms[i].Add(&o.arms[i])
	}
}

const (
	// ItemBytes is the memory of two items, because up to twice as many items as counted may wait to be dropped.
	ItemBytes = 700

	maxSold      = 1000 // items
	minSold      = 16
	soldShare    = 64 // fraction of the placement's memory
	maxPlaces    = 50
	recentLength = 100
	maxRecent    = 10
)

// MaxItems returns the number of items with counts of their own, given the placement's memory.
func MaxItems(memory int) int { return max(minSold, min(maxSold, memory/soldShare/ItemBytes)) }

// closed counts a decision.
func (t *Items) closed(o *offer.Closed, maxItems int) {
	t.show(o.IDs(), o.Entry, o.Takes(), maxItems)
	s := spanOf(o)
	t.all.add(&s)
	if n := len(t.recent); n == 0 || t.recent[n-1].decisions == recentLength {
		if n == maxRecent {
			t.recent = slices.Delete(t.recent, 0, 1)
		}
		t.recent = append(t.recent, span{})
	}
	t.recent[len(t.recent)-1].add(&s)
}

// show counts the items in an offer, and those that were taken.
func (t *Items) show(ids []string, entry uint64, taken eventlog.Basket, maxItems int) {
	if t.sold == nil {
		t.sold = map[string]*Sold{}
	}
	for k, id := range ids {
		one := Sold{Shown: 1, Last: entry}
		if len(taken) > 0 && int(taken[0].Place) == k+1 {
			one.Taken, one.Revenue, taken = 1, taken[0].Value, taken[1:]
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

// spanOf returns a span of one decision.
func spanOf(o *offer.Closed) span {
	s := span{decisions: 1}
	if o.Predicted {
		s.estimated, s.earned, s.predicted = 1, o.PerUnit(), o.Expected
	}
	if o.Mode != offer.ByImport {
		s.arms[o.Mode-offer.ByPolicy] = *o.Group()
	}
	return s
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
	ids = ids[:min(len(ids), maxSold)]
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
	c.Places, c.recent = slices.Clone(t.Places), slices.Clone(t.recent)
	return c
}

func (s *Sold) fields(f *fields.Fields) {
	f.Uvarint(&s.Shown, &s.Taken, &s.Last)
	f.Float(&s.Revenue)
}

func (s *span) fields(f *fields.Fields) {
	f.Uvarint(&s.decisions, &s.estimated)
	f.Float(&s.earned, &s.predicted)
	offer.GroupFields(f, s.arms[:])
}

func (t *Items) fields(f *fields.Fields) {
	fields.Map(f, &t.sold, (*Sold).fields)
	t.Others.fields(f)
	f.Uvarint(&t.Dropped)
	fields.List(f, &t.Places, (*Sold).fields)
	t.all.fields(f)
	fields.List(f, &t.recent, (*span).fields)
	f.Check(len(t.sold) <= 2*maxSold && len(t.Places) <= maxPlaces && len(t.recent) <= maxRecent,
		"the counts of %d items, %d places and %d spans", len(t.sold), len(t.Places), len(t.recent))
}

func (s *span) report() api.Span {
	return api.Span{
		Decisions: s.decisions, Estimated: s.estimated, Earned: s.earned, Predicted: s.predicted,
		ByPolicy: s.arms[0], ByChance: s.arms[1], ByBaseline: s.arms[2],
	}
}

// Drift compares the recent decisions with earlier ones, or returns nil without decisions.
func (t *Items) Drift() *api.Drift {
	var recent span
	for i := range t.recent {
		recent.add(&t.recent[i])
	}
	before := t.all
	if before.decisions -= recent.decisions; before.decisions == 0 {
		return nil
	}
	before.estimated -= recent.estimated
	before.earned -= recent.earned
	before.predicted -= recent.predicted
	for i := range before.arms {
		a, b := &before.arms[i], &recent.arms[i]
		a.Rounds, a.Purchases = a.Rounds-b.Rounds, a.Purchases-b.Purchases
		a.Revenue -= b.Revenue
		a.Squares = max(0, a.Squares-b.Squares)
	}
	return &api.Drift{Recent: recent.report(), Before: before.report(),
		Fell: fell(&recent.arms[0], &before.arms[0], t.all.decisions)}
}

const (
	fellError = 0.01
	fellShare = 0.8
)

// fell reports whether the policy certainly sells less often than fellShare times the earlier rate. There may be as
// many looks as decisions: the look after n decisions spends the error fellError/(n(n+1)).
func fell(recent, before *api.Totals, looks uint64) bool {
	alpha := fellError / 2 / (float64(looks) * float64(looks+1))
	_, now := confseq.Share(float64(recent.Purchases), float64(recent.Rounds), alpha)
	then, _ := confseq.Share(float64(before.Purchases), float64(before.Rounds), alpha)
	return now < fellShare*then
}
